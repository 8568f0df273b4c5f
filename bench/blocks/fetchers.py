# SPDX-License-Identifier: MIT
"""The clients of bench/blocks.py, and whether what they got is right."""
import json
import os
import re
import subprocess
import sys

from chains import Asker, tools_dir
from peers import BUILD, HERE

FOLDER = os.path.join(HERE, "blocks")
PATIENCE = 900                   # seconds for one run


class Wrong(SystemExit):
    """A client has not got what it asked for."""


def place(pid, cpus):
    """Moves a process with all its threads."""
    for task in os.listdir("/proc/%d/task" % pid):
        try:
            os.sched_setaffinity(int(task), cpus)
        except ProcessLookupError:
            pass


def url(kind, server):
    return server.path if kind == "ipc" else "%s://127.0.0.1:%d" % (kind, server.port)


class Client:
    """name: as options have it; label: as tables have it."""

    missing = None               # why it cannot run

    def command(self, kind, server):
        raise NotImplementedError

    def run(self, kind, server, numbers, workers, cpus):
        """One run: what the client prints of it. workers: () or (how many, blocks of a call)."""
        argv = ["taskset", "-c", ",".join(map(str, sorted(cpus))), *self.command(kind, server),
                str(numbers[0]), str(len(numbers)), *map(str, workers)]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        if done.returncode != 0:
            raise Wrong("%s over %s failed: %s" % (self.label, kind, done.stderr[-2000:]))
        return json.loads(done.stdout)

    def blocks(self, options):
        return options.blocks

    def close(self):
        pass


class Raw(Client):
    name, label = "raw", "raw client"

    def __init__(self, _):
        self.program = os.path.join(BUILD, "bench", "blocks", "raw")
        if not os.access(self.program, os.X_OK):
            self.missing = "bench/blocks/raw is not built"

    def command(self, kind, server):
        return [self.program, kind, server.path if kind == "ipc" else str(server.port)]


class Alloy(Client):
    name, label = "alloy", "Alloy"

    def __init__(self, options):
        self.program = os.path.join(tools_dir(), "bin", "bench-alloy")
        if not options.quick:
            print("building the Alloy client, where it is not there", file=sys.stderr)
            done = subprocess.run([os.path.join(FOLDER, "install")], stdin=subprocess.DEVNULL,
                                  stdout=sys.stderr, check=False)
            if done.returncode != 0:
                self.missing = "bench/blocks/install failed"
        if not self.missing and not os.access(self.program, os.X_OK):
            self.missing = "it is not built (bench/blocks/install)"

    def command(self, kind, server):
        return [self.program, kind, url(kind, server)]


class Web3py(Client):
    """One process for all runs, since it takes long to start; its connections are new each time."""

    name, label = "web3py", "web3.py"

    def __init__(self, _):
        self.python = web3_python()
        self.process = None
        if not os.access(self.python, os.X_OK):
            self.missing = "it is not installed (t/interop/install python)"

    def blocks(self, options):
        return min(options.blocks, options.web3py_blocks)

    def run(self, kind, server, numbers, workers, cpus):
        if self.process is None:
            self.process = subprocess.Popen(
                [self.python, "-B", os.path.join(FOLDER, "web3py.py")], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True)
        place(self.process.pid, cpus)
        job = [kind, url(kind, server), numbers[0], len(numbers), *workers]
        self.process.stdin.write(" ".join(map(str, job)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise Wrong("web3.py over %s failed" % kind)
        return json.loads(line)

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


CLIENTS = {client.name: client for client in (Raw, Alloy, Web3py)}


def web3_python():
    return os.path.join(tools_dir(), "venv", "bin", "python")


def alloy_version():
    with open(os.path.join(FOLDER, "alloy", "Cargo.toml"), encoding="utf-8") as file:
        return re.search(r'alloy-provider = \{ version = "=?([^"]+)"', file.read()).group(1)


# --- verification -----------------------------------------------------------------------------


class Reference:
    """The blocks as the node itself has them, parsed here. To ask for them all is the untimed pass
    that fills what the node keeps in memory."""

    def __init__(self, node, count):
        self.numbers = range(node.tip - count + 1, node.tip + 1)
        self.blocks = {}
        asker = Asker(node.port)
        before = None
        for n in self.numbers:
            body = asker.post(json.dumps({"jsonrpc": "2.0", "id": n, "params": [hex(n), True],
                                          "method": "eth_getBlockByNumber"})).strip()
            block = json.loads(body)["result"]
            if block is None or int(block["number"], 16) != n or \
                    before not in (None, block["parentHash"]):
                raise Wrong("the node's own block %d is not right" % n)
            before = block["hash"]
            self.blocks[n] = (len(body), block["hash"], block["parentHash"],
                              len(block["transactions"]))

    def last(self, count):
        return self.numbers[-count:]

    def sum(self, numbers, at):
        return sum(self.blocks[n][at] for n in numbers)

    def check(self, client, got, numbers, workers, words):
        """Ends the benchmark when a client has got anything else."""
        if got["count"] != len(numbers):
            raise Wrong("%s: %d blocks of %d" % (words, got["count"], len(numbers)))
        if client.name == "raw":
            self.check_raw(got["replies"], numbers, workers[1] if workers else 1, words)
        elif not got["numbers"] or not got["chain"]:
            raise Wrong("%s: the blocks are not those asked for, or no chain: %s" % (words, got))
        elif got["transactions"] != self.sum(numbers, 3):
            raise Wrong("%s: %d transactions in place of %d" % (
                words, got["transactions"], self.sum(numbers, 3)))

    def check_raw(self, replies, numbers, each, words):
        """Each reply has the length of the node's own, and starts with the right block."""
        for at, (first, length, number, block_hash, parent) in enumerate(replies):
            part = numbers[at * each:(at + 1) * each]
            want = self.sum(part, 0) + (len(part) + 1 if each > 1 else 0)
            if first != part[0] or length != want or number != hex(first) or \
                    (block_hash, parent) != self.blocks[first][1:3]:
                raise Wrong("%s: block %d has %d bytes in place of %d, number %s, hash %s" % (
                    words, first, length, want, number, block_hash))
