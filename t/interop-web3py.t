#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""web3.py through the gateway: HTTPProvider, AsyncHTTPProvider, WebSocketProvider,
IPCProvider, AsyncIPCProvider; reads, reverts, transactions, batches, subscriptions."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

# pylint: disable=wrong-import-position
import interop

interop.main([interop.python() or "", interop.script("web3py.py")],
             None if interop.python() else "web3.py is not installed",
             sure=("chain id", "full block by number", "logs", "call", "batch", "subscriptions",
                   "send raw transaction", "send raw transaction and receipt", "block filter"))
