#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gateway against geth asked directly: a development chain with the test contract, and the
chain of the execution-apis recordings with the recorded requests; the same bytes over each pair
of transports."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

# pylint: disable=wrong-import-position
import differential
import gateway
import nodes
import tap


def development():
    with nodes.Geth() as node:
        facts = nodes.furnish_geth(node)
        differential.compare("geth --dev", node, differential.requests_about(facts))


def recorded():
    chain = gateway.test_data("execution-apis")
    record = gateway.test_data("replay", "execution-apis.io")
    if chain is None or record is None:
        tap.run("geth on the recorded chain", skip)
        return
    with nodes.Geth(chain) as node:
        requests = differential.recorded(record)
        facts = nodes.facts_of_chain(node)
        differential.compare("geth on the recorded chain", node,
                             requests + differential.requests_about(facts, brief=True))


def skip():
    raise tap.Skip("no test data (EGW_TEST_DATA)")


gateway.need_program()
if nodes.program("geth") is None:
    tap.skip_all("geth is not installed (t/interop/install geth)")
tap.watchdog(900)
development()
recorded()
tap.done()
