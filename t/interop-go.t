#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""go-ethereum's client through the gateway: HTTP, WebSocket, IPC."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

# pylint: disable=wrong-import-position
import interop
import nodes

PROGRAM = os.path.join(nodes.tools_dir(), "bin", "interop-go")

interop.main([PROGRAM], None if os.access(PROGRAM, os.X_OK) else "the Go client is not built",
             sure=("chain id", "full block by number", "logs", "call", "many at once", "batch",
                   "send raw transaction and receipt", "subscriptions"))
