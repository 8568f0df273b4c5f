#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ethers v6 through the gateway: HTTP with its own batching, WebSocket, IPC."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

# pylint: disable=wrong-import-position
import shutil

import interop

interop.main(["node", interop.script("ethers.mjs")],
             None if shutil.which("node") and interop.node_package("ethers")
             else "ethers is not installed",
             sure=("network", "full block by number", "logs", "call", "many at once",
                   "send raw transaction and receipt", "new block and event"))
