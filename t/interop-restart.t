#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A real node is killed and comes back at the same place: clients that stay connected to the
gateway get errors meanwhile, never silence, and answers again afterwards."""
import os
import socket
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

# pylint: disable=wrong-import-position
import gateway
import nodes
import tap

KINDS = ("http", "ws", "ipc")


def works(client):
    """Whether the chain id comes back; an error is no, silence is a failure."""
    reply = client.call("eth_chainId", [])
    return reply.result == b'"0x7a69"'


def restart(kind):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="egw-restart-") as folder:
        path = os.path.join(folder, "n.ipc")
        with nodes.Anvil(port=port, path=path) as node, \
                gateway.Gateway([{"name": "anvil", "url": node.urls[kind]}], level="info") as gw:
            clients = [gw.client(k) for k in KINDS]
            for client in clients:
                tap.check(works(client), "before, over " + client.kind)
            node.process.kill()
            node.process.wait()
            for client in clients:
                tap.check(not works(client), "while it is away, over " + client.kind)
            with nodes.Anvil(port=port, path=path):
                began = time.monotonic()
                for client in clients:
                    tap.eventually(lambda c=client: works(c), 20, "again, over " + client.kind,
                                   0.05)
                tap.diag("%s: back after %.2f s" % (kind, time.monotonic() - began))
                for client in clients:
                    client.close()


gateway.need_program()
if nodes.program("anvil") is None:
    tap.skip_all("anvil is not installed (t/interop/install node)")
tap.watchdog(200)
for upstream in KINDS:
    tap.run("anvil is killed and comes back, upstream over %s" % upstream, restart, upstream)
tap.done()
