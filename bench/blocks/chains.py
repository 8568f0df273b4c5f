# SPDX-License-Identifier: MIT
"""Nodes with a chain of full blocks, for bench/blocks.py: geth and anvil with blocks made once and
kept in the folder of the interop tools (t/interop/install), and ethrpc-gw itself as a stand-in
that serves a recording."""
import http.client
import json
import os
import shutil
import sys
import time

from peers import BUILD, HERE, free_port, listening
from walk import write_recording

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "t", "lib"))
from nodes import program, tools_dir    # noqa: E402

SOURCE = os.path.dirname(HERE)
TRANSFERS = 150                  # of each block
PATIENCE = 180                   # seconds that a server may take to start

STAND_IN = """workers = %(workers)d;
log = { level = "warn"; };
limits = { max_in_flight = 100000; max_connections_per_client = 1000; };
listen = ( { name = "tcp"; address = "127.0.0.1"; port = %(port)d; }, { path = "%(path)s"; } );
networks = ( { name = "main"; middleware = ( );
               upstreams = ( { name = "recording"; url = "replay:%(recording)s";
                               service_time = "%(delay)dms"; missing = "notfound"; } ); } );
"""


class Missing(Exception):
    """Why there is no such chain here."""


class Node:
    """A running node: where it is asked, its process, its newest full block, and what it says is
    final."""

    def __init__(self, port, path, process, tip=None):
        self.port, self.path, self.process = port, path, process
        asker = Asker(port)
        self.tip = tip or int(asker.ask("eth_blockNumber"), 16)
        self.final = int(asker.ask("eth_getBlockByNumber", "finalized", False)["number"], 16)


class Asker:
    """Calls over HTTP, one after the other."""

    def __init__(self, port):
        self.conn = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def post(self, body):
        self.conn.request("POST", "/", body, {"Content-Type": "application/json"})
        return self.conn.getresponse().read()

    def send(self, calls):
        """An array of calls; each must succeed."""
        for answer in json.loads(self.post(json.dumps(calls))):
            if "error" in answer:
                raise SystemExit("the node says %s" % answer["error"])

    def ask(self, method, *params):
        answer = json.loads(self.post(json.dumps(call(method, *params))))
        if "error" in answer:
            raise SystemExit("%s: the node says %s" % (method, answer["error"]))
        return answer["result"]


def call(method, *params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}


def transfer(sender, nonce, i):
    return call("eth_sendTransaction", {
        "from": sender, "to": "0x%040x" % (0x1000000 + i), "value": hex(10 ** 9 + i),
        "gas": "0x5208", "nonce": hex(nonce), "maxFeePerGas": hex(2 * 10 ** 9),
        "maxPriorityFeePerGas": hex(10 ** 6 * (TRANSFERS + 50 - i))})


def kept(name):
    folder = os.path.join(tools_dir(), "bench-blocks")
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, name)


def progress(name, n, blocks):
    if n % 50 == 0 or n == blocks:
        print("  %s: made %d of %d blocks" % (name, n, blocks), file=sys.stderr)


def ended(process):
    """So that it writes what it has to disk."""
    process.terminate()
    if process.wait(120) != 0:
        raise SystemExit("the node ended with %d when its chain was made" % process.returncode)


# --- geth -----------------------------------------------------------------------------------


def run_geth(servers, data, cpus):
    port, path = free_port(), os.path.join(servers.dir, "geth.ipc")
    process = servers.start([
        program("geth"), "--dev", "--datadir", data, "--cache", "256", "--verbosity", "1",
        "--nodiscover", "--http", "--http.port", str(port), "--ws", "--ws.port", str(port),
        "--authrpc.port", "0", "--port", "0", "--ipcpath", path, "--txpool.accountslots", "1000",
        "--txpool.accountqueue", "1000", "--dev.gaslimit", "30000000"], cpus)
    listening(port, process, PATIENCE)
    return port, path, process


def fill_geth(node, blocks):
    """A block is made as soon as a transaction can be in one: so the first nonce comes last."""
    sender = node.ask("eth_accounts")[0]
    nonce = 0
    for n in range(1, blocks + 1):
        node.send([transfer(sender, nonce + i, i) for i in [*range(1, TRANSFERS), 0]])
        nonce += TRANSFERS
        while int(node.ask("eth_getTransactionCount", sender, "latest"), 16) < nonce:
            time.sleep(0.002)
        progress("geth", n, blocks)


def start_geth(servers, options, cpus):
    if not program("geth"):
        raise Missing("geth is not installed (t/interop/install geth)")
    blocks = max(options.blocks, 1000)
    data = kept("geth-%d" % blocks)
    if not os.path.isdir(data):
        fresh = os.path.join(servers.dir, "geth-fresh")
        port, _, process = run_geth(servers, fresh, "0-%d" % (os.cpu_count() - 1))
        fill_geth(Asker(port), blocks)
        ended(process)
        servers.processes.remove(process)
        shutil.rmtree(data + ".new", ignore_errors=True)
        shutil.move(fresh, data + ".new")
        os.rename(data + ".new", data)
    mine = os.path.join(servers.dir, "geth")
    shutil.copytree(data, mine)
    return Node(*run_geth(servers, mine, cpus))


# --- anvil ----------------------------------------------------------------------------------


def run_anvil(servers, cpus, *arguments):
    port, path = free_port(), os.path.join(servers.dir, "anvil.ipc")
    process = servers.start([
        program("anvil"), "--silent", "--port", str(port), "--ipc", path, "--threads", "2",
        "--timestamp", "1700000000", "--prune-history", *arguments], cpus)
    listening(port, process, PATIENCE)
    return port, path, process


def fill_anvil(node, blocks):
    """The same chain each time."""
    node.ask("anvil_setBlockTimestampInterval", 12)
    node.ask("evm_setAutomine", False)
    senders = node.ask("eth_accounts")
    many = len(senders)
    for n in range(blocks):
        node.send([transfer(senders[i % many], n * (TRANSFERS // many) + i // many, i)
                   for i in range(TRANSFERS)])
        node.ask("evm_mine")
        progress("anvil", n + 1, blocks)


def start_anvil(servers, options, cpus):
    if not program("anvil"):
        raise Missing("anvil is not installed (t/interop/install node)")
    state = kept("anvil-%d.json" % options.blocks)
    if not os.path.exists(state):
        fresh = os.path.join(servers.dir, "anvil-fresh.json")
        port, _, process = run_anvil(servers, "0-%d" % (os.cpu_count() - 1),
                                     "--dump-state", fresh)
        fill_anvil(Asker(port), options.blocks)
        ended(process)
        servers.processes.remove(process)
        shutil.move(fresh, state + ".new")
        os.rename(state + ".new", state)
    return Node(*run_anvil(servers, cpus, "--load-state", state))


# --- recordings -----------------------------------------------------------------------------


def stand_in(servers, recording, tip, options, cpus, delay=None):
    """ethrpc-gw that answers from a recording, each call after the service time."""
    port, path = free_port(), os.path.join(servers.dir, "node-%d.ipc" % len(servers.processes))
    conf = servers.config("node-%d.conf" % port, STAND_IN % {
        "port": port, "path": path, "recording": recording, "workers": options.servers,
        "delay": options.service_ms if delay is None else delay})
    env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"))
    process = servers.start([os.path.join(BUILD, "ethrpc-gw"), "--config", conf], cpus, env=env)
    listening(port, process, PATIENCE)
    return Node(port, path, process, tip)


def recording_of(servers, name, write):
    path = os.path.join(servers.dir, name + ".io")
    if not os.path.exists(path):
        print("  writing the recording", file=sys.stderr)
        write(path)
    return path


def start_replay(servers, options, cpus, delay=None):
    path = recording_of(servers, "replay-%d" % options.blocks,
                        lambda path: write_recording(path, options.blocks))
    return stand_in(servers, path, options.blocks, options, cpus, delay)


def recorded_file():
    for folder in (os.environ.get("EGW_TEST_DATA"),
                   os.path.join(os.path.dirname(SOURCE), "shared", "data")):
        path = folder and os.path.join(folder, "replay", "mainnet-blocks-and-misc.io")
        if path and os.path.exists(path):
            return path
    raise Missing("mainnet-blocks-and-misc.io is not there (EGW_TEST_DATA)")


def mainnet_blocks(path, least=200000):
    """The recorded full blocks of at least so many bytes."""
    asked = None
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith(">> "):
                asked = json.loads(line[3:])
            elif line.startswith("<< ") and len(line) >= least and \
                    asked["method"] == "eth_getBlockByNumber" and asked["params"][1] is True:
                yield json.loads(line[3:])["result"]


def start_mainnet(servers, options, cpus, delay=None):
    """The recorded blocks over and over, renumbered so that they are a chain."""
    found = list(mainnet_blocks(recorded_file()))
    path = recording_of(servers, "mainnet-%d" % options.blocks,
                        lambda path: write_recording(path, options.blocks, found))
    return stand_in(servers, path, options.blocks, options, cpus, delay)


CHAINS = {"geth": start_geth, "anvil": start_anvil, "replay": start_replay,
          "mainnet": start_mainnet}

