#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour F and I14: subscriptions and filters that the gateway serves by itself."""
import os
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from chain import word
from clients import NoAnswer, Reply, event_parts, request
from fakenode import HANDLED
from gateway import sanitized
from wire import row

SERVED = {"live": True, "network": {"poll_interval": "100ms"}}
ANY = "http ws ipc ws+http"           # nodes in front of which all is the same


def subscribe(client, *params):
    return rawjson.parse(client.call("eth_subscribe", list(params)).ok())


def told(client, timeout=None):
    """(subscription, result) of the next event."""
    name, result = event_parts(client.event(timeout))
    return rawjson.parse(name), rawjson.parse(result)


def expect_heads(client, sub, heads):
    got = [told(client) for _ in heads]
    tap.eq([(name, head["hash"]) for name, head in got], [(sub, h["hash"]) for h in heads], "heads")


def logs_of(env, heads):
    """What the nodes have of these blocks, as key() sees it."""
    return [key(log) for head in heads for log in rawjson.parse(env.want(
        "eth_getLogs", rawjson.compact([{"blockHash": head["hash"]}])))]


def key(log):
    return log["blockHash"], log["logIndex"], bool(log.get("removed"))


def expect_logs(client, sub, keys):
    got = [told(client) for _ in keys]
    tap.eq([(name, key(log)) for name, log in got], [(sub, k) for k in keys], "logs")


def open_at_nodes(env, kind):
    return sum(k == kind for node in env.nodes for _, _, k in node.subscriptions())


def gone(env):
    """Nothing is left of any subscription, at the nodes neither but for the gateway's own heads."""
    return env.gw.metric("ethrpcgw_subscriptions") == 0 and \
        not open_at_nodes(env, "newPendingTransactions") and not open_at_nodes(env, "logs")


class Miner(threading.Thread):
    """Blocks at a pace, until it is told to end."""

    def __init__(self, chain, pace):
        super().__init__(daemon=True)
        self.chain, self.pace, self.over = chain, pace, threading.Event()
        self.times = {}                # when each block was made
        self.start()

    def run(self):
        while not self.over.wait(self.pace):
            with self.chain.lock:
                self.times[len(self.chain.headers)] = time.monotonic()
                self.chain.mine()

    def end(self):
        self.over.set()
        self.join()


# --- F3 to F7: the answer first, loss of nodes -----------------------------------------------

@row("F3", "no event before the answer to its eth_subscribe", clients="ws ipc", upstreams=ANY,
     **SERVED)
def f3(env, client):
    miner = Miner(env.chain, 0.004)
    subs = {}
    for i in range(40):
        kind = ["newHeads"] if i % 2 else ["logs", {}]
        client.send(request("eth_subscribe", kind, i))
        while True:
            event, raw = client._next(8)  # pylint: disable=protected-access
            if not event:
                break
            tap.check(told(client)[0] in subs, "an event came before the answer: %r" % raw[:200])
        subs[rawjson.parse(Reply(raw).ok())] = kind
    miner.end()


@row("F4", "node dies while clients subscribe", clients="ws ipc", upstreams="http ws ipc",
     fresh=True,
     **SERVED)
def f4(env, first):
    env.node.script = lambda req: HANDLED if req.method.startswith("eth_getBlockBy") else None
    clients = [first] + [env.client(first.kind) for _ in range(9)]
    for i, client in enumerate(clients):
        client.send(request("eth_subscribe", ["newHeads"], i))
    tap.eventually(lambda: env.asked("eth_getBlockByNumber"), 5, "the node is asked for its head")
    env.node.script = None
    env.node.cut()
    got = [Reply(client.recv()) for client in clients]
    tap.eq([r.id for r in got], [b"%d" % i for i in range(10)], "ids")

    def again(client):
        reply = client.call("eth_subscribe", ["newHeads"], b'"again"')
        return reply if reply.error is None else None

    subs = []
    for client, reply in zip(clients, got):
        if reply.error is not None:
            reply = tap.eventually(lambda c=client: again(c), 8, "it can subscribe later")
        subs.append(rawjson.parse(reply.result))
    head = env.chain.mine()
    for client, sub in zip(clients, subs):
        expect_heads(client, sub, [head])
        client.quiet(0.02)
        client.close()


@row("F5", "unsubscribing one of two", clients="ws ipc", upstreams=ANY, **SERVED)
def f5(env, client):
    with env.client(client.kind) as b:
        filter_ = {"address": "0x" + "0c" * 20}
        sub_a, sub_b = subscribe(client, "logs", filter_), subscribe(b, "logs", filter_)
        tap.check(sub_a != sub_b, "ids differ")
        head = env.chain.mine()
        expect_logs(client, sub_a, logs_of(env, [head]))
        expect_logs(b, sub_b, logs_of(env, [head]))
        tap.eq(client.call("eth_unsubscribe", [sub_a]).ok(), b"true", "A unsubscribes")
        tap.eq(client.call("eth_unsubscribe", [sub_a]).ok(), b"false", "true only once")
        tap.eq(client.call("eth_unsubscribe", ["0x123456"]).ok(), b"false", "an unknown one")
        tap.eq(client.call("eth_unsubscribe", [sub_b]).ok(), b"false", "another's")
        head = env.chain.mine()
        expect_logs(b, sub_b, logs_of(env, [head]))
        client.quiet(0.1)
        tap.eq(b.call("eth_unsubscribe", [sub_b]).ok(), b"true", "B unsubscribes")
        tap.eventually(lambda: gone(env), 1, "nothing is left")


@row("F7", "connections cut twice while blocks appear", clients="ws ipc",
     upstreams="ws ws+ws http+ipc",
     fresh=True, **SERVED)
def f7(env, client):
    sub, logs = subscribe(client, "newHeads"), subscribe(client, "logs")
    heads = [env.chain.mine()]
    for _ in range(2):
        for node in env.nodes:
            node.cut(True)
        heads.append(env.chain.mine())
    heads += [env.chain.mine() for _ in range(4)]
    got = [told(client) for _ in range(2 * len(heads))]
    tap.eq([h["hash"] for name, h in got if name == sub], [h["hash"] for h in heads], "heads")
    tap.eq([key(g) for name, g in got if name == logs], logs_of(env, heads), "logs")
    client.quiet(0.1)


# --- F11 to F13: feeds that fall silent, clients that leave ----------------------------------

# A node alone, whose silence is not known from another's heads, is found out by its polls.
@row("F11", "heads stop, pings go on", clients="ws ipc", upstreams="ws+ws ws+ipc ws",
     fresh=True,
     **SERVED)
def f11(env, client):
    alone = len(env.nodes) == 1
    sub = subscribe(client, "newHeads")
    expect_heads(client, sub, [env.chain.mine()])
    first = env.chain.number() + 1
    env.node.push_heads = False       # it goes on answering calls and pings
    miner = Miner(env.chain, 0.15)
    delays = []
    for number in range(first, first + 14):
        name, head = told(client)
        tap.eq((name, head["number"]), (sub, hex(number)), "the next head")
        delays.append(time.monotonic() - miner.times[number])
    miner.end()
    tap.at_most(max(delays), tap.limit(6.0 if alone else 1.0), "the longest delay")


@row("F12", "a client with many subscriptions resets", clients="ws ipc", upstreams=ANY,
     **SERVED)
def f12(env, client):
    for i in range(40):
        subscribe(client, "newHeads")
        subscribe(client, "logs", {"address": "0x" + "%02x" % i * 20})
        subscribe(client, "newPendingTransactions")
    tap.eq(env.gw.metric("ethrpcgw_subscriptions"), 120, "subscriptions")
    if env.node.kind in ("ws", "ipc"):
        tap.eventually(lambda: open_at_nodes(env, "newPendingTransactions"), 5, "one at the node")
    client.reset()
    tap.eventually(lambda: gone(env), 1, "all is freed within a second, upstream too")
    if env.node.kind in ("ws", "ipc"):
        tap.check(env.node.open_conns(), "the upstream connection stays")


@row("F13", "300 cycles and 100 resets leave nothing", clients="ws ipc", upstreams="http ws",
     fresh=True,
     **SERVED)
def f13(env, client):
    client.call("eth_unsubscribe", [subscribe(client, "newHeads")])
    rss = 0

    def fds():
        """Descriptors but for those to the node, of which http keeps some for later."""
        return env.gw.fds() - len(env.node.open_conns())

    tap.eventually(lambda: len(env.node.open_conns()) >= 2, 5, "both workers' links")
    before = fds()
    for i in range(300):
        sub = subscribe(client, *(["newHeads"], ["logs", {}], ["newPendingTransactions"])[i % 3])
        tap.eq(client.call("eth_unsubscribe", [sub]).ok(), b"true", "unsubscribed")
        if i == 100:
            rss = env.gw.rss()
    for i in range(100):
        other = env.client(client.kind)
        subscribe(other, "logs", {})
        other.reset()
    tap.eventually(lambda: gone(env), 2, "nothing is left")
    tap.eventually(lambda: fds() <= before + 2, 5, "descriptors are back")
    if not sanitized():
        tap.at_most(env.gw.rss() - rss, 8 << 20, "growth of memory")


# --- F20, F21: what is told ------------------------------------------------------------------

@row("F20", "a reorganisation and a jump", clients="ws ipc", upstreams=ANY, **SERVED)
def f20(env, client):
    sub = subscribe(client, "newHeads")
    heads = [env.chain.mine()]
    expect_heads(client, sub, heads)
    expect_heads(client, sub, env.chain.reorg(1))
    expect_heads(client, sub, [env.chain.mine()])
    skipped = [env.chain.mine(quiet=True) for _ in range(3)]
    expect_heads(client, sub, skipped + [env.chain.mine()])
    client.quiet(0.1)


@row("F20", "reorganisations %s deep, heads and logs", clients="ws ipc", upstreams=ANY,
     each=["1", "2", "5", "10"], **SERVED)
def f20_deep(env, client, depth):
    heads = subscribe(client, "newHeads")
    old = [env.chain.mine() for _ in range(int(depth))]
    expect_heads(client, heads, old)
    with env.client(client.kind) as late, env.client(client.kind) as b:
        logs = subscribe(b, "logs")
        late_logs = subscribe(late, "logs")
        last = env.chain.mine()
        expect_heads(client, heads, [last])
        expect_logs(b, logs, logs_of(env, [last]))
        expect_logs(late, late_logs, logs_of(env, [last]))
        was = logs_of(env, [last])
        new = env.chain.reorg(int(depth) + 1)
        expect_heads(client, heads, new)
        # Of what is taken away each is told what it was given.
        back = [(block, index, True) for block, index, _ in reversed(was)]
        expect_logs(b, logs, back + logs_of(env, new))
        was = logs_of(env, new)
        new = env.chain.reorg(int(depth))
        back = [(block, index, True) for block, index, _ in reversed(was[-len(new):])]
        expect_logs(b, logs, back + logs_of(env, new))
        expect_heads(client, heads, new)
        for one in (client, b):
            one.quiet(0.05)


@row("F21", "two nodes feed the same heads", clients="ws ipc", upstreams="ws+ws ws+ipc",
     **SERVED)
def f21(env, client):
    sub, logs = subscribe(client, "newHeads"), subscribe(client, "logs")
    late = env.nodes[1]
    late.push_heads = False
    heads = []
    for _ in range(10):
        heads.append(env.chain.mine())
        late.at(0.03, lambda head=heads[-1]: late.notify_all("newHeads", head))
    got = [told(client) for _ in range(20)]
    tap.eq([h["hash"] for name, h in got if name == sub], [h["hash"] for h in heads], "heads")
    tap.eq([key(g) for name, g in got if name == logs], logs_of(env, heads), "logs")
    client.quiet(0.15)


@row("F23", "a head is the node's own bytes", clients="ws ipc", upstreams="ws ipc", **SERVED)
def f23(env, client):
    env.node.head_hook = lambda head: [dict(head, strange={"a": [1.50, None]})]
    subscribe(client, "newHeads")
    head = env.chain.mine()
    tap.eq(event_parts(client.event())[1],
           rawjson.compact(dict(head, strange={"a": [1.50, None]})), "the head")


@row("F+", "a node of http has blocks, not heads: their bodies are left out", clients="ws",
     upstreams="http",
     **SERVED)
def bodies(env, client):
    sub = subscribe(client, "newHeads")
    head = env.chain.mine()
    name, got = told(client)
    tap.eq((name, got["hash"], got["extraData"]), (sub, head["hash"], head["extraData"]), "the head")
    tap.lacks(got, "transactions", "the head")
    tap.lacks(got, "uncles", "the head")


@row("F+", "filters of logs: %s", clients="ws ipc", upstreams="http ws",
     each=[("the address", {"address": "0x" + "0C" * 20}, True),
           ("one of addresses", {"address": ["0x" + "11" * 20, "0x" + "0c" * 20]}, True),
           ("another address", {"address": "0x" + "11" * 20}, False),
           ("a topic it has not", {"topics": [word("t")]}, False),
           ("any topics", {"topics": []}, True),
           ("null", None, True)], **SERVED)
def log_filters(env, client, filter_, wanted):
    sub = subscribe(client, "logs", filter_)
    heads = [env.chain.mine() for _ in range(2)]
    if wanted:
        expect_logs(client, sub, logs_of(env, heads))
    client.quiet(0.15)


# --- bounds ----------------------------------------------------------------------------------

@row("F+", "no more subscriptions than allowed", clients="ws ipc", upstreams="http ws",
     live=True,
     limits={"max_subscriptions": 5})
def caps(env, client):
    subs = [subscribe(client, *(["newHeads"], ["logs"])[i % 2]) for i in range(5)]
    for kind in ("newHeads", "logs", "newPendingTransactions"):
        client.call("eth_subscribe", [kind]).refused(-32006)
    with env.client(client.kind) as other:
        subscribe(other, "newHeads")
    tap.eq(client.call("eth_unsubscribe", [subs[0]]).ok(), b"true", "one fewer")
    subscribe(client, "newHeads")
    client.call("eth_subscribe", ["newHeads"]).refused(-32006)


@row("F+", "whether nodes are being synchronised", clients="ws ipc", upstreams="http ws")
def syncing(env, client):
    sub = subscribe(client, "syncing")
    tap.eventually(lambda: env.node.count("eth_syncing"), 8, "the node is asked")
    client.quiet(0.1)
    status = {"startingBlock": "0x0", "currentBlock": "0x5", "highestBlock": "0x9"}
    env.node.script = lambda req: req.result(rawjson.compact(status)) \
        if req.method == "eth_syncing" else None
    params = rawjson.parse(client.event(8))["params"]
    tap.eq((params["subscription"], params["result"]), (sub, {"syncing": True, "status": status}),
           "it is")
    env.node.script = None
    tap.eq(rawjson.parse(client.event(8))["params"]["result"], False, "no more")
    tap.eq(client.call("eth_unsubscribe", [sub]).ok(), b"true", "unsubscribed")


@row("F+", "the limit of all clients together", clients="ws ipc", upstreams="http",
     network={"max_subscriptions": 3}, fresh=True)
def cap_of_all(env, client):
    with env.client(client.kind) as other, env.client("http") as http:
        subs = [subscribe(client, "newHeads"), subscribe(other, "logs")]
        name = http.call("eth_newBlockFilter").ok()
        other.call("eth_subscribe", ["newHeads"]).refused(-32006)
        http.call("eth_newFilter", [{}]).refused(-32006)
        tap.eq(http.call("eth_uninstallFilter", b"[%s]" % name).ok(), b"true", "one fewer")
        subscribe(other, "newHeads")
        client.call("eth_subscribe", ["newHeads"]).refused(-32006)
        tap.eq(client.call("eth_unsubscribe", [subs[0]]).ok(), b"true", "one fewer again")


@row("F+", "a subscriber that does not read", clients="-", upstreams="ws", fresh=True,
     live=True,
     limits={"max_queue": "1MiB"})
def slow(env):
    with env.client("ws", rcvbuf=4096) as lazy, env.client("ws") as client:
        for _ in range(20):
            subscribe(lazy, "newHeads")
        sub = subscribe(client, "newHeads")
        extra, delays = "0x" + "ab" * 30000, []

        def overflown():
            began = time.monotonic()
            head = env.chain.mine(extraData=extra)
            expect_heads(client, sub, [head])
            delays.append(time.monotonic() - began)
            return env.gw.metric("ethrpcgw_subscriptions") == 1

        tap.eventually(overflown, 30, "it is ended")
        tap.eq(lazy.wait_close(), 1013, "close code")
        tap.at_most(max(delays), tap.limit(1.0), "the longest delay of another one")
        tap.check(env.gw.alive(), "it lives")


# --- pending transactions --------------------------------------------------------------------

@row("F+", "pending transactions of two nodes", clients="ws ipc", upstreams="ws+ws ws+ipc",
     fresh=True,
     **SERVED)
def pending(env, client):
    sub, full = subscribe(client, "newPendingTransactions"), \
        subscribe(client, "newPendingTransactions", True)
    tap.eventually(lambda: open_at_nodes(env, "newPendingTransactions") == 4, 5,
                   "a stream of each kind at each node")
    # Whichever stream brings what: a hash is told to who wants hashes, a body to who wants bodies.
    for i in range(10):
        for node in env.nodes:
            for conn, name, kind in node.subscriptions():
                if kind == "newPendingTransactions":
                    node.notify(conn, name, word("tx", i))
                    node.notify(conn, name, {"hash": word("tx", i), "nonce": hex(i)})
    got = [told(client) for _ in range(20)]
    tap.eq([r for name, r in got if name == sub], [word("tx", i) for i in range(10)], "hashes")
    tap.eq([r for name, r in got if name == full],
           [{"hash": word("tx", i), "nonce": hex(i)} for i in range(10)], "bodies")
    client.quiet(0.1)
    client.call("eth_unsubscribe", [sub]).ok()
    tap.eventually(lambda: open_at_nodes(env, "newPendingTransactions") == 2, 2,
                   "what nobody wants any more is ended at the nodes")


class Pool:
    """A node's filter of pending transactions, for one that does not push."""

    def __init__(self, node):
        self.new, self.filters = [], 0
        node.script = self

    def __call__(self, req):
        if req.method == "eth_newPendingTransactionFilter":
            self.filters += 1
            return req.result(b'"0xf1"')
        if req.method == "eth_getFilterChanges":
            out, self.new = self.new, []
            return req.result(rawjson.compact(out))
        return None


@row("F+", "pending transactions of a node that can't push", clients="ws ipc",
     upstreams="http", fresh=True,
     **SERVED)
def pending_polled(env, client):
    pool = Pool(env.node)
    sub = subscribe(client, "newPendingTransactions")
    tap.eventually(lambda: pool.filters == 1, 5, "a filter at the node")
    name = rawjson.parse(client.call("eth_newPendingTransactionFilter").ok())
    pool.new = [word("tx", 1), word("tx", 2)]
    tap.eq([told(client) for _ in range(2)], [(sub, word("tx", i)) for i in (1, 2)], "hashes")
    pool.new = [word("tx", 2), word("tx", 3)]
    tap.eq(told(client), (sub, word("tx", 3)), "each once")
    tap.eq(rawjson.parse(client.call("eth_getFilterChanges", [name]).ok()),
           [word("tx", i) for i in (1, 2, 3)], "the same for a filter")
    client.quiet(0.25)


@row("F+", "full bodies of transactions where no node can push them", clients="ws",
     upstreams="http",
     **SERVED)
def no_bodies(_, client):
    client.call("eth_subscribe", ["newPendingTransactions", True]).refused(-32057)
    client.call("eth_newPendingTransactionFilter", [True]).refused(-32057)


# --- what is refused, what is passed through -------------------------------------------------

@row("F+", "subscribing with %s", clients="ws ipc", upstreams="http ws",
     each=[("no object", ["logs", 5]), ("a bad address", ["logs", {"address": "0x12"}]),
           ("a bad address in a list", ["logs", {"address": ["0x" + "11" * 20, 7]}]),
           ("bad topics", ["logs", {"topics": "0x00"}]), ("a bad topic", ["logs", {"topics": ["0x1"]}]),
           ("five topics", ["logs", {"topics": [None] * 5}])], **SERVED)
def bad_params(env, client, params):
    client.call("eth_subscribe", params).refused(-32602)
    client.call("eth_newFilter", params[1:]).refused(-32602)
    tap.eq(env.gw.metric("ethrpcgw_subscriptions"), 0, "subscriptions")


@row("F+", "subscribing over HTTP", clients="http", upstreams="http ws", **SERVED)
def over_http(env, client):
    for kind in ("newHeads", "logs", "newPendingTransactions", "syncing"):
        client.call("eth_subscribe", [kind]).refused(-32056)
    tap.eq(env.asked("eth_subscribe") - sum(n.count("eth_subscribe") for n in env.nodes
                                            if n.kind == "ws"), 0, "at the node")


@row("F+", "subscribing as a notification", clients="ws ipc", upstreams="http ws", **SERVED)
def notification(env, client):
    client.silent(request("eth_subscribe", ["newHeads"], None))
    env.chain.mine()
    client.quiet(0.15)
    tap.eq(env.gw.metric("ethrpcgw_subscriptions"), 0, "subscriptions")


@row("F+", "kinds that the gateway does not serve", clients="ws ipc", upstreams="ws ipc",
     **SERVED)
def passed(env, client):
    sub = subscribe(client, "transactionReceipts")
    tap.eq(open_at_nodes(env, "transactionReceipts"), 1, "it is the node's")
    env.node.notify_all("transactionReceipts", {"transactionReceipts": True})
    tap.eq(told(client), (sub, {"transactionReceipts": True}), "its event")
    client.call("eth_subscribe", ["noSuchKind"]).refused(-32602)
    client.call("eth_subscribe", []).refused()
    tap.eq(client.call("eth_unsubscribe", [sub]).ok(), b"true", "it ends")
    tap.eventually(lambda: not open_at_nodes(env, "transactionReceipts"), 2, "at the node, too")


@row("F+", "debug_subscribe", clients="ws ipc", upstreams="ws ipc", **SERVED)
def passed_debug(env, client):
    conns = []

    def script(req):
        if req.method == "debug_subscribe":
            conns.append(req.conn)
            return req.result(b'"0xde"')
        return req.result(b"true") if req.method == "debug_unsubscribe" else None

    env.node.script = script
    sub = rawjson.parse(client.call("debug_subscribe", ["traceChain", "0x1", "0x2"]).ok())
    tap.check(sub != "0xde", "an id of the gateway's own")
    conns[0].push(b'{"jsonrpc":"2.0","method":"debug_subscription",'
                  b'"params":{"subscription":"0xde","result":{"block":"0x2"}}}')
    fields = rawjson.parse(client.event())
    tap.eq((fields["method"], fields["params"]),
           ("debug_subscription", {"subscription": sub, "result": {"block": "0x2"}}), "its event")
    tap.eq(client.call("debug_unsubscribe", [sub]).ok(), b"true", "it ends")
    tap.eventually(lambda: env.node.params_seen("debug_unsubscribe") == [b'["0xde"]'], 2, "at the node")


@row("F+", "other kinds where no node can push", clients="ws ipc", upstreams="http", **SERVED)
def passed_nowhere(_, client):
    client.call("eth_subscribe", ["transactionReceipts"]).refused(-32057)


# --- filters ---------------------------------------------------------------------------------

def changes(client, name):
    return rawjson.parse(client.call("eth_getFilterChanges", [name]).ok())


def poll(client, name, count):
    """What a filter has, until there is so much."""
    got = []
    tap.eventually(lambda: got.extend(changes(client, name)) or len(got) >= count, 8,
                   "%d changes" % count)
    return got


@row("I14", "a filter of logs over a reorganisation", clients="http ws ipc", upstreams=ANY,
     **SERVED)
def i14_reorg(env, client):
    name = rawjson.parse(client.call("eth_newFilter", [{"fromBlock": "0x2", "toBlock": "0x4"}]).ok())
    blocks = rawjson.parse(client.call("eth_newBlockFilter").ok())
    old = [env.chain.mine() for _ in range(3)]
    was = logs_of(env, old)
    tap.eq([key(g) for g in poll(client, name, 3)], was, "new logs")
    new = env.chain.reorg(3)
    want = [(block, index, True) for block, index, _ in reversed(was)] + logs_of(env, new)
    tap.eq([key(g) for g in poll(client, name, len(want))], want, "those taken back, and the new ones")
    tap.eq(poll(client, blocks, 6), [h["hash"] for h in old + new], "blocks")
    tap.eq(changes(client, name), [], "nothing twice")
    logs = rawjson.parse(client.call("eth_getFilterLogs", [name]).ok())
    tap.eq([g["blockNumber"] for g in logs], ["0x2", "0x3", "0x4"], "eth_getFilterLogs keeps its range")
    client.call("eth_getFilterLogs", [blocks]).refused(-32000)


@row("I14", "filters while nodes are lost", clients="http ws ipc", upstreams="http ws+http",
     fresh=True, **SERVED)
def i14_loss(env, client):
    blocks = rawjson.parse(client.call("eth_newBlockFilter").ok())
    logs = rawjson.parse(client.call("eth_newFilter", [{}]).ok())
    heads = []
    for node in env.nodes:
        heads.append(env.chain.mine())
        node.stop(rst=True)
        heads.append(env.chain.mine())
        node.listen()
    heads.append(env.chain.mine())
    tap.eq(poll(client, blocks, len(heads)), [h["hash"] for h in heads], "blocks")
    tap.eq([key(g) for g in poll(client, logs, len(heads))], logs_of(env, heads), "logs")


@row("I14", "wrong ids of filters", clients="http ws ipc", upstreams="http", **SERVED)
def i14_wrong(_, client):
    for method in ("eth_getFilterChanges", "eth_getFilterLogs"):
        for name in ("0x1", "", "0x" + "1" * 32, "x" * 5000):
            client.call(method, [name]).refused(-32000)
        client.call(method, [5]).refused(-32602)
        client.call(method, []).refused(-32602)
    tap.eq(client.call("eth_uninstallFilter", ["0x1"]).ok(), b"false", "none to uninstall")
    client.call("eth_uninstallFilter", []).refused(-32602)


wire.main(400)
