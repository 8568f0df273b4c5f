#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gateway against anvil asked directly: the same bytes for some hundreds of read requests,
right and wrong, over each pair of transports."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

# pylint: disable=wrong-import-position
import differential
import gateway
import nodes
import tap

gateway.need_program()
if nodes.program("anvil") is None:
    tap.skip_all("anvil is not installed (t/interop/install node)")
tap.watchdog(600)
with nodes.Anvil() as node:
    facts = nodes.furnish(node, big=30)
    facts["bytecode"] = nodes.probe()["bytecode"]
    differential.compare("anvil", node, differential.requests_about(facts))
tap.done()
