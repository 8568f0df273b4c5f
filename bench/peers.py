# SPDX-License-Identifier: MIT
"""The servers of a benchmark: what stands beside the gateway, by the configurations in peers/,
and what starts and ends them all."""
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("EGW_BUILD") or os.path.dirname(HERE)
SERVER_CPU, LOAD_CPU = "0", "1"

# What proxyd is to let pass: it has no pattern for all.
METHODS = ("eth_chainId", "eth_blockNumber", "eth_call", "eth_getBalance", "eth_getBlockByHash",
           "eth_getBlockByNumber", "eth_getBlockReceipts", "eth_getProof",
           "eth_getTransactionByHash", "eth_getTransactionReceipt", "debug_storageRangeAt",
           "debug_traceCall", "ots_getBlockTransactions")


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def listening(port, process, timeout=20):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if process.poll() is not None:
            raise SystemExit("a server ended with %d" % process.returncode)
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise SystemExit("nothing listens on port %d" % port)


class Servers:
    """What was started, to be ended."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="egw-bench-")
        self.processes = []

    def start(self, argv, cpu=SERVER_CPU, env=None, stdout=None):
        log = open(os.path.join(self.dir, "%d.log" % len(self.processes)), "wb")
        process = subprocess.Popen(["taskset", "-c", cpu] + argv, stdin=subprocess.DEVNULL,
                                   stdout=stdout or log, stderr=log, env=env)
        self.processes.append(process)
        return process

    def config(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def stop(self, process):
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.processes.remove(process)

    def close(self):
        for process in list(self.processes):
            self.stop(process)
        shutil.rmtree(self.dir, ignore_errors=True)


def template(name):
    with open(os.path.join(HERE, "peers", name), encoding="utf-8") as file:
        return re.sub(r"(?m)^\s*#.*\n", "", file.read())


# --- each of them: (port, process) ------------------------------------------------------------


def start_nginx(servers, node, keepalive=256):
    port = free_port()
    path = servers.config("nginx-%d.conf" % port, template("nginx.conf") % {
        "dir": servers.dir, "node": node, "port": port, "keepalive": keepalive})
    process = servers.start(["nginx", "-p", servers.dir, "-c", path, "-g",
                             "user root;" if os.getuid() == 0 else ""])
    listening(port, process)
    return port, process


def start_haproxy(servers, node, connections=4096):
    port = free_port()
    path = servers.config("haproxy-%d.cfg" % port, template("haproxy.cfg") % {
        "node": node, "port": port, "maxconn": connections,
        "server_maxconn": min(connections, 4096)})
    process = servers.start(["haproxy", "-f", path, "-db"])
    listening(port, process)
    return port, process


def start_erpc(servers, node, cache=False):
    """From github.com/erpc/erpc, cmd/erpc."""
    port = free_port()
    path = servers.config("erpc-%d.yaml" % port, template("erpc.yaml") % {
        "node": node, "port": port, "multiplexing": "true" if cache else "false",
        "cache": template("erpc-cache.yaml") if cache else ""})
    process = servers.start(["erpc", "start", "--config", path])
    listening(port, process)
    return port, process


def start_proxyd(servers, node):
    """From github.com/ethereum-optimism/infra, proxyd/cmd/proxyd."""
    port = free_port()
    path = servers.config("proxyd-%d.toml" % port, template("proxyd.toml") % {
        "node": node, "port": port,
        "mappings": "".join('%s = "main"\n' % method for method in METHODS)})
    process = servers.start(["proxyd", path])
    listening(port, process)
    return port, process
