# SPDX-License-Identifier: MIT
"""Rows of wire behaviour: a case is written once and run over each client transport and each
upstream transport it is about.

    @row("A1", "id %s verbatim", clients="http ws ipc", upstreams="http", each=[b"0", b"-1"])
    def a1(env, client, id): ...

    wire.main()

`upstreams` are alternatives, joined by spaces; "ws+http" is one alternative of two nodes.
`env` has .node, .nodes, .chain, .gw. Rows of one file with the same needs share one gateway,
whose nodes are reset before each case; fresh=True gives a case a gateway of its own."""
import atexit
import shutil
import tempfile

import tap
from fakenode import Node
from chain import Chain, View
from gateway import Gateway, has_stage, has_transport, need_program

_rows = []
_pool = {}


class Env:
    """A gateway with its fake nodes."""

    def __init__(self, kinds, settings):
        self.kinds = kinds.split("+")
        self.folder = tempfile.mkdtemp(prefix="egw-nodes-")
        atexit.register(shutil.rmtree, self.folder, True)
        self.chain = Chain()
        self.nodes = []
        self.gw = None
        options = dict(settings)
        extra = options.pop("upstream", {})
        url_form = options.pop("url_form", "%s://%s")
        if options.pop("live", False):
            self.chain.live = True
        views = options.pop("views", None)
        for i, kind in enumerate(self.kinds):
            chain = self.chain if views is None else View(self.chain, **views[i])
            self.nodes.append(Node(kind, chain, self.folder, "n%d" % i))
        upstreams = [
            dict({
                "name": node.name,
                "url": url_form % tuple(node.url().split("://"))
            }, **extra) for node in self.nodes
        ]
        for i, own in enumerate(options.pop("own", ())):
            upstreams[i].update(own)
        try:
            self.gw = Gateway(upstreams, **options)
        except BaseException:
            self.close(False)
            raise

    @property
    def node(self):
        return self.nodes[0]

    def want(self, method, params=b"[]"):
        """The right raw result."""
        return self.chain.answer(method, params)

    def asked(self, *methods):
        """How often the nodes were asked any of these."""
        return sum(node.count(m) for node in self.nodes for m in methods)

    def connections_stay(self):
        """A check, for later, that the connections there are now have not ended."""
        now = [c for node in self.nodes for c in node.open_conns()]
        tap.check(now, "there are connections to the node")

        def verify():
            tap.eq([c.number for c in now if c.gone], [], "connections to the node that ended")
        return verify

    def untouched(self):
        """Fails if the nodes were asked anything but what a gateway asks by itself."""
        own = ("eth_blockNumber", "eth_chainId", "eth_syncing", "web3_clientVersion",
               "net_version")
        extra = [r.text for node in self.nodes for r in node.seen() if r.method not in own]
        tap.eq(extra, [], "what reached a node")

    def client(self, kind, **options):
        return self.gw.client(kind, **options)

    def clear(self):
        for node in self.nodes:
            node.clear()

    def close(self, properly=True):
        try:
            if self.gw is not None:
                if properly:
                    self.gw.stop()
                else:
                    self.gw.discard()
        finally:
            for node in self.nodes:
                node.close()
            shutil.rmtree(self.folder, ignore_errors=True)


def full(**options):
    """Settings of a gateway with all stages that work on answers, in their order. options: of
    a stage, as failover={...}. With state that is that of blocks, heads polled as in the wire
    cases, and a gateway for each case."""
    stages = [dict({"use": name}, **options.get(name, {}))
              for name in ("methods", "prefetch", "logsplit", "cache", "coalesce",
                           "failover", "batch")
              if has_stage(name)]
    return {"middleware": stages, "live": True, "fresh": True,
            "network": {"poll_interval": "200ms"}}


def row(number, title, clients="http", upstreams="http", each=None, fresh=False, todo=None,
        also=None, **settings):
    """See the top. settings: of the Gateway, and `upstream`: options of each upstream, `own`:
    of one each, `url_form`: a format that makes its URL of the scheme and the rest, `live`:
    state is that of blocks, `views`: what each node sees of the chain (dict(lag, cap)).
    also: the case is run with these settings, too (as those of full())."""
    def register(fn):
        _rows.append((number, title, clients.split(), upstreams.split(), each, fresh, todo,
                      settings, fn))
        if also is not None:
            more = dict(settings, **also)
            more["network"] = dict(also.get("network", {}), **settings.get("network", {}))
            _rows.append((number, title + ", all stages", clients.split(), upstreams.split(),
                          each, more.pop("fresh", fresh), todo, more, fn))
        return fn
    return register


def label(value):
    """A value of `each` for a test's name: its own label, or itself."""
    if isinstance(value, tuple):
        value = value[0]
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    text = text.encode("ascii", "backslashreplace").decode("ascii")
    return text if len(text) <= 50 else text[:47] + "..."


def _key(kinds, settings):
    return kinds + repr(sorted(settings.items(), key=lambda item: item[0]))


def _take(kinds, settings, fresh):
    key = _key(kinds, settings)
    env = None if fresh else _pool.get(key)
    if env is not None and not env.gw.alive():
        _drop(key, env)
        env = None
    if env is None:
        env = Env(kinds, settings)
        if not fresh:
            _pool[key] = env
    env.clear()
    return env


def _drop(key, env):
    _pool.pop(key, None)
    env.close(False)


def _case(kinds, settings, fresh, kind, fn, value):
    for transport in set(kinds.split("+")):
        if not has_transport(transport):
            raise tap.Skip("this build has no transport %s" % transport)
    env = _take(kinds, settings, fresh)
    good = False
    try:
        args = () if value is None else value[1:] if isinstance(value, tuple) else (value,)
        if kind is None:
            fn(env, *args)
        else:
            with env.client(kind) as client:
                fn(env, client, *args)
        tap.check(env.gw.alive(), "the gateway lives")
        complaints = [c for node in env.nodes for c in node.complaints]
        tap.eq(complaints, [], "what the nodes complain about")
        good = True
    except (tap.Skip, tap.Todo):
        good = True
        raise
    except BaseException:
        tap.diag("log: " + env.gw.log()[-1500:].replace("\n", "\n  "))
        raise
    finally:
        if fresh:
            env.close(good)
        elif not good:
            _drop(_key(kinds, settings), env)


def _run_row(item):
    number, title, clients, upstreams, each, fresh, todo, settings, fn = item
    for kinds in upstreams:
        for kind in clients:
            for value in each or [None]:
                own = kind != "-"
                name = "%s %s<-%s %s" % (number, kind if own else "any", kinds,
                                         title % label(value) if value is not None else title)
                if todo is not None:
                    tap.run(name, _todo, todo)
                else:
                    tap.run(name, _case, kinds, settings, fresh, kind if own else None, fn,
                            value)


def _todo(why):
    raise tap.Todo(why)


def main(seconds=170):
    """Runs all rows of the script and prints the plan. Clients "-": the case makes its own."""
    need_program()
    tap.watchdog(seconds)
    for item in _rows:
        _run_row(item)
    for key, env in list(_pool.items()):
        _pool.pop(key)
        tap.run("the gateway with %s ends properly" % "+".join(env.kinds), env.close)
        env.close(False)
    tap.done()
