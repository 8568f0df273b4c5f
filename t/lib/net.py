# SPDX-License-Identifier: MIT
"""A gateway in front of fake nodes, for tests of the head."""
import tempfile

import rawjson
from chain import Chain, View
from fakenode import Node
from gateway import Gateway
from tap import eventually


class Net:
    """A gateway in front of fake nodes. kinds: one for each node; views: their lags (or None:
    the chain itself)."""

    def __init__(self, kinds, views=None, own=(), chain=None, poll="50ms", limits=None,
                 middleware=None, **network):
        self.folder = tempfile.TemporaryDirectory(prefix="egw-head-")
        self.chain = chain or Chain(blocks=30)
        self.nodes = []
        for i, kind in enumerate(kinds):
            see = self.chain if views is None or views[i] is None else View(self.chain, **views[i])
            self.nodes.append(Node(kind, see, self.folder.name, "n%d" % i))
        upstreams = [{"name": n.name, "url": n.url()} for n in self.nodes]
        for i, more in enumerate(own):
            upstreams[i].update(more)
        self.gw = Gateway(upstreams, network=dict({"poll_interval": poll}, **network),
                          limits=limits, middleware=middleware)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gw.stop()
        for node in self.nodes:
            node.close()
        self.folder.cleanup()

    def status(self):
        return rawjson.parse(self.gw.admin("/status")[1])["networks"][0]

    def head(self):
        return self.status()["head"] or {"tip": {"number": None, "hash": None}}

    def tip(self):
        return self.head()["tip"]["number"]

    def at(self, number, what):
        eventually(lambda: self.tip() == number, 8, what)

    def upstream(self, i):
        return self.status()["upstreams"][i]

    def number(self, client):
        return int(client.call("eth_blockNumber").ok().strip(b'"'), 16)
