# SPDX-License-Identifier: MIT
"""The same requests straight at a node and through the gateway: result and error must be the
same bytes. requests_about() makes some hundreds of them, right ones and wrong ones; compare()
asks them over each client transport and each upstream transport, one by one, in batches and
pipelined."""
import re

import clients
import gateway
import interop
import nodes
import rawjson
import tap

KINDS = ("http", "ipc", "ws")
BATCH = 25

# Answers that depend on when they are given, at either node; only their kind is compared.
TIMED = re.compile(rb'"pending"|txpool_|eth_pendingTransactions|eth_syncing')

# Not of this test: they change something, or the gateway answers them itself.
_NOT_READ = re.compile(r"^(eth_send|eth_sign|eth_(un)?subscribe|eth_new|eth_uninstall|eth_getFilter"
                       r"|eth_fillTransaction|engine_|admin_|miner_|personal_|testing_|debug_set"
                       r"|debug_(start|stop|write|free|mem|gc|cpu|block|go|mutex|chaindb|vmodule"
                       r"|verbosity|standard)|anvil_|evm_|hardhat_|clique_|les_)")


class Request:
    """A method and the bytes of its params (None: no params member)."""

    def __init__(self, method, params):
        self.method = method
        self.params = params if params is None or isinstance(params, bytes) \
            else rawjson.compact(params)

    def bytes(self, ident):
        return clients.request(self.method, self.params, ident)

    def bytes_direct(self, ident):
        """What a node is asked: the gateway writes [] where a client left params out."""
        return clients.request(self.method, b"[]" if self.params is None else self.params, ident)

    @property
    def timed(self):
        return bool(TIMED.search(self.bytes(1)))

    def __str__(self):
        return "%s %s" % (self.method, (self.params or b"-")[:160].decode("utf-8", "replace"))


def block_references(facts):
    """Ways to name a block, right and wrong."""
    known, unknown = facts["big_hash"], facts["unknown_hash"]
    number = facts["big_block"]
    return ["latest", "earliest", "safe", "finalized", "pending", hex(number), hex(number - 1),
            "0x0", "0x01", "0x", "1", "", "LATEST", "newest", hex(number + 1), "0xffffffffffffffff",
            "0x1ffffffffffffffff", 1, -1, None, True, known, unknown, known[:40],
            {"blockNumber": hex(number)}, {"blockNumber": "latest"}, {"blockHash": known},
            {"blockHash": known, "requireCanonical": True},
            {"blockHash": known, "requireCanonical": False}, {"blockHash": unknown},
            {"blockHash": unknown, "requireCanonical": True},
            {"blockHash": known, "blockNumber": hex(number)}, {"blockNumber": 1}, {}, [], ["0x1"]]


def _by_block(facts):
    who, contract = facts["accounts"][0], facts["contract"]
    call = {"to": contract, "data": nodes.call_data("values(uint256)", 3)}
    shapes = [("eth_getBalance", lambda b: [who, b]), ("eth_getCode", lambda b: [contract, b]),
              ("eth_getTransactionCount", lambda b: [who, b]),
              ("eth_getStorageAt", lambda b: [contract, "0x0", b]),
              ("eth_call", lambda b: [call, b]), ("eth_estimateGas", lambda b: [call, b]),
              ("eth_getProof", lambda b: [contract, ["0x0"], b]),
              ("eth_getBlockByNumber", lambda b: [b, False]),
              ("eth_getBlockByNumber", lambda b: [b, True]),
              ("eth_getBlockReceipts", lambda b: [b]),
              ("eth_getBlockTransactionCountByNumber", lambda b: [b]),
              ("eth_getUncleCountByBlockNumber", lambda b: [b]),
              ("eth_getTransactionByBlockNumberAndIndex", lambda b: [b, "0x0"]),
              ("eth_feeHistory", lambda b: ["0x2", b, [25, 75]]),
              ("eth_createAccessList", lambda b: [call, b]),
              ("debug_traceBlockByNumber", lambda b: [b, {"tracer": "callTracer"}]),
              ("debug_getRawHeader", lambda b: [b])]
    for method, make in shapes:
        for reference in block_references(facts):
            yield Request(method, make(reference))


def _by_hash(facts):
    known, unknown = facts["big_hash"], facts["unknown_hash"]
    tx = facts["paid"]
    for value in (known, unknown, known.upper().replace("0X", "0x"), known[:-1], known[2:], "0x",
                  tx, None, 7):
        for method in ("eth_getBlockByHash",):
            yield Request(method, [value, False])
            yield Request(method, [value, True])
        for method in ("eth_getBlockTransactionCountByHash", "eth_getUncleCountByBlockHash",
                       "debug_traceBlockByHash"):
            yield Request(method, [value])
        yield Request("eth_getTransactionByBlockHashAndIndex", [value, "0x1"])
        yield Request("eth_getTransactionByBlockHashAndIndex", [value, "0xffff"])
    for value in [tx, unknown, facts["deployed"], tx[:-2], None, known] + facts["noted"]:
        for method in ("eth_getTransactionByHash", "eth_getTransactionReceipt",
                       "eth_getRawTransactionByHash", "debug_traceTransaction"):
            yield Request(method, [value])


def _logs(facts):
    contract, who = facts["contract"], facts["accounts"][0]
    topic = "0x" + nodes.word(who)
    number = hex(facts["big_block"])
    noted = facts["noted_hash"]
    for extra in ({}, {"address": contract}, {"address": [contract, who]}, {"topics": [None, topic]},
                  {"topics": [[], [topic, facts["unknown_hash"]]]}, {"topics": []},
                  {"topics": [facts["unknown_hash"]]}, {"address": "0x12"}, {"topics": ["0x1"]},
                  {"topics": "x"}, {"address": None, "topics": None}):
        for span in ({"fromBlock": "0x0", "toBlock": number}, {"fromBlock": "earliest"},
                     {"blockHash": noted}, {"blockHash": facts["unknown_hash"]},
                     {"fromBlock": "0x0", "toBlock": "latest"},
                     {"fromBlock": number, "toBlock": "0x1"},
                     {"fromBlock": hex(10 ** 8), "toBlock": hex(10 ** 8 + 1)},
                     {"blockHash": noted, "fromBlock": "0x1"}):
            yield Request("eth_getLogs", [{**span, **extra}])


def _calls(facts):
    contract, who = facts["contract"], facts["accounts"][0]
    data = nodes.call_data("sum(uint256,uint256)", 40, 2)
    bodies = [{"to": contract, "data": data}, {"to": contract, "input": data},
              {"to": contract, "data": data, "input": data},
              {"to": contract, "data": data, "input": "0x00"},
              {"to": contract, "data": nodes.call_data("refuse(uint256)", 7)},
              {"to": contract, "data": nodes.call_data("fail()")},
              {"to": contract, "data": nodes.call_data("panic(uint256)", 0)},
              {"to": contract, "data": nodes.call_data("panic(uint256)", 3)},
              {"to": contract, "data": nodes.text_data("echo(string)", "gr\u00fc\u00df\u20ac\U0001f600" * 50)},
              {"to": contract, "data": "0xdeadbeef"}, {"to": contract, "data": "0xabc"},
              {"to": contract, "data": "zz"}, {"to": "0x12", "data": data}, {"data": data}, {}, None,
              {"to": who, "data": data}, {"to": contract, "from": who, "data": data, "gas": "0x1"},
              {"to": contract, "data": data, "gas": "0xffffffffff"},
              {"to": contract, "from": who, "data": data, "gasPrice": "0x1"},
              {"to": contract, "data": data, "value": hex(10 ** 30)},
              {"to": contract, "data": data, "unknown": 1},
              {"to": contract, "data": facts["bytecode"]}, {"data": facts["bytecode"]}]
    for body in bodies:
        for method in ("eth_call", "eth_estimateGas", "eth_createAccessList"):
            yield Request(method, [body, "latest"])
        yield Request("debug_traceCall", [body, "latest", {"tracer": "callTracer"}])
    state = {contract: {"stateDiff": {"0x" + nodes.word(0): "0x" + nodes.word(1)}}}
    for override in (state, {contract: {"code": "0x60006000fd"}}, {who: {"balance": "0x0"}}, {},
                     {contract: {"state": {}, "stateDiff": {}}}, {"x": {}}, 7):
        yield Request("eth_call", [bodies[0], "latest", override])
    yield Request("eth_simulateV1", [{"blockStateCalls": [{"calls": [bodies[0], bodies[5]]}]},
                                     facts["big_hash"]])


def _bytes(facts):
    """Params whose bytes must go through as they are."""
    who = facts["accounts"][0].encode()
    for params in (b' [ "%s" , "0x1" ] ' % who, b'["%s",\n"0x1"\t]' % who,
                   b'["\\u0030x%s","0x1"]' % who[2:], b'["%s","\\u0030x1"]' % who,
                   b'["%s","latest",null]' % who, b'["%s"]' % who, b'[]', b'{}', None,
                   b'["%s",1.0]' % who, b'["%s",1e0]' % who, b'["%s",123456789012345678901234567890]' % who,
                   b'["%s","la\xc3\xbcest"]' % who, b'["%s","\\ud83d\\ude00"]' % who,
                   b'["%s","0x1","more","%s"]' % (who, b"x" * 70000),
                   b'[[[[[[[[]]]]]]]]', b'["%s",{"blockNumber":"0x1","blockNumber":"0x2"}]' % who):
        yield Request("eth_getBalance", params)


def _others(facts):
    for method in ("eth_chainId", "net_version", "net_listening", "web3_clientVersion",
                   "eth_blockNumber", "eth_gasPrice", "eth_maxPriorityFeePerGas", "eth_blobBaseFee",
                   "eth_mining", "eth_hashrate", "eth_protocolVersion",
                   "eth_syncing", "net_peerCount", "eth_noSuchMethod",
                   "eth_config", "rpc_modules", "txpool_status", "debug_getBadBlocks"):
        yield Request(method, [])
        yield Request(method, None)
    for params in (["0x68656c6c6f"], ["0x"], ["xyz"], [], [7], ["0x1"], ["0x" + "ab" * 40000]):
        yield Request("web3_sha3", params)
    for count, rewards in (("0x0", []), ("0x400", None), (4, [50]), ("0x1", [90, 10]),
                           ("0x1", [101]), ("x", [])):
        yield Request("eth_feeHistory", [count, hex(facts["big_block"]), rewards])


def requests_about(facts, brief=False):
    """All of them; facts as nodes.furnish() gives them. Brief: those by hash and the calls."""
    out = []
    for make in (_by_hash, _calls) if brief else (_by_block, _by_hash, _logs, _calls, _bytes,
                                                  _others):
        out += list(make(facts))
    return out


def recorded(path):
    """The read requests of a file of recorded exchanges."""
    out = []
    with open(path, "rb") as file:
        for line in file:
            if not line.startswith(b">> "):
                continue
            fields = dict(rawjson.members(line[3:].strip()))
            method = rawjson.parse(fields["method"])
            if not _NOT_READ.match(method):
                out.append(Request(method, fields.get("params")))
    return out


# --- asking -----------------------------------------------------------------------------

def one_by_one(client, requests):
    return [outcome(client.raw(r.bytes(i + 1)), i + 1) for i, r in enumerate(requests)]


def straight(client, requests):
    return [outcome(client.raw(r.bytes_direct(i)), i) for i, r in enumerate(requests)]


def in_batches(client, requests):
    out = []
    for at in range(0, len(requests), BATCH):
        part = requests[at:at + BATCH]
        idents = ["b-%d" % i if i % 2 else i for i in range(at, at + len(part))]
        raw = client.raw(b"[" + b",".join(r.bytes(i) for r, i in zip(part, idents)) + b"]")
        items = rawjson.elements(raw)
        tap.eq(len(items), len(part), "answers to a batch of %d" % len(part))
        out += [outcome(item, ident) for item, ident in zip(items, idents)]
    return out


def pipelined(client, requests, window=64):
    """Sends a window of requests before it reads the answers, which may come in any order."""
    got = {}
    for at in range(0, len(requests), window):
        part = requests[at:at + window]
        for i, request in enumerate(part):
            client.send(request.bytes(at + i))
        for _ in part:
            raw = client.recv()
            ident = int(dict(rawjson.members(raw))["id"])
            tap.check(ident not in got, "two answers to %d" % ident)
            got[ident] = outcome(raw, ident)
    return [got[i] for i in range(len(requests))]


def outcome(raw, ident):
    """("result" or "error", bytes); the envelope is checked."""
    reply = clients.Reply(raw)
    tap.eq(reply.id, rawjson.compact(ident), "id")
    return ("error", reply.error) if reply.result is None else ("result", reply.result)


def differences(requests, got, want):
    out = []
    for request, one, two in zip(requests, got, want):
        if request.timed:
            same = one[0] == two[0]
        else:
            same = one == two
        if not same:
            out.append("%s\n   gateway: %s %r\n   direct:  %s %r"
                       % (request, one[0], one[1][:300], two[0], two[1][:300]))
    return out


def _agree(requests, got, want):
    found = differences(requests, got, want)
    for text in found[:8]:
        tap.diag(text)
    tap.check(not found, "%d of %d answers differ" % (len(found), len(requests)))


def steady(node, kind, requests):
    """The node's own answers, asked twice: those that change must be among the timed ones."""
    first = straight(node.client(kind), requests)
    second = straight(node.client(kind), requests)
    unsteady = [str(r) for r, a, b in zip(requests, first, second) if a != b and not r.timed]
    tap.check(not unsteady, "the node itself gives changing answers: %r" % unsteady[:5])
    return first


def compare(name, node, requests):
    """The tests of one node: each upstream transport, each client transport, each way."""
    tap.diag("%s: %d requests, %d methods" % (name, len(requests),
                                              len({r.method for r in requests})))
    for out in KINDS:
        want = []
        if not tap.run("%s: its own answers over %s" % (name, out),
                       lambda out=out, want=want: want.extend(steady(node, out, requests))):
            continue
        if not want:
            continue
        errors = sum(1 for kind, _ in want if kind == "error")
        tap.run("%s over %s: both results and errors are asked for" % (name, out),
                lambda errors=errors, want=want: tap.check(20 < errors < len(want) - 50,
                                                           "%d errors" % errors))
        tap.run("%s: all of it, gateway over %s" % (name, out),
                lambda out=out, want=want: _all_ways(name, node, out, requests, want))
        tap.run("%s: all of it, gateway over %s, all stages" % (name, out),
                lambda out=out, want=want: _all_ways(name, node, out, requests, want,
                                                     interop.all_stages()))


def _all_ways(name, node, out, requests, want, stages=None):
    upstream = {"name": "node", "url": node.urls[out]}
    with gateway.Gateway([upstream], level="info", middleware=stages, limits={"max_batch_reply": "256MiB"},
                         network={"timeout": "30s", "attempt_timeout": "20s"}) as gw:
        for kind in KINDS:
            ways = [("one by one", one_by_one), ("in batches", in_batches)]
            if kind != "http":
                ways.append(("pipelined", pipelined))
            for words, way in ways:
                def work(kind=kind, way=way):
                    with gw.client(kind, timeout=60) as client:
                        _agree(requests, way(client, requests), want)
                tap.run("%s: %s in, %s out, %s%s" % (name, kind, out, words,
                                                     ", all stages" if stages else ""), work)
