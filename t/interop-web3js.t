#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""web3.js 4 through the gateway: HTTP, WebSocket, IPC."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

# pylint: disable=wrong-import-position
import shutil

import interop

interop.main(["node", interop.script("web3js.mjs")],
             None if shutil.which("node") and interop.node_package("web3")
             else "web3.js is not installed",
             sure=("chain id", "full block by number", "logs", "call", "many at once", "batch",
                   "send raw transaction and receipt", "subscriptions"))
