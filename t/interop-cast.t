#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cast through the gateway: a process for each command, over HTTP, WebSocket and IPC."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

# pylint: disable=wrong-import-position
import interop
import nodes

CAST = nodes.program("cast")
if CAST:
    os.environ["CAST"] = CAST
interop.main([sys.executable, interop.script("cast.py")],
             None if CAST else "cast is not installed",
             sure=("chain id", "full block", "logs", "call", "send and receipt"))
