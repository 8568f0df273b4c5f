#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real clients under a limit: each shows an API key, makes ten calls where four are allowed at once,
waits by itself when it is refused, and gets all ten. And what they say to a wrong key."""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

# pylint: disable=wrong-import-position
import interop
import nodes
import tap
from chain import Chain
from fakenode import Node
from gateway import Gateway, need_program

KEY = "a-key-of-many-characters"
STAGES = [{"use": "auth", "keys": [{"name": "alice", "key": KEY}]}, {"use": "methods"},
          {"use": "ratelimit", "per_key": "8/s", "key_burst": 4}]


def run(argv, gateway_env=None):
    env = dict(os.environ, EGW_INTEROP_DIR=nodes.tools_dir(), **(gateway_env or {}))
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=env, timeout=tap.limit(60), check=False)
    tap.check(done.returncode == 0, "it ended with %d: %s"
              % (done.returncode, done.stderr.decode(errors="replace")[-1500:]))
    return json.loads(done.stdout)


def javascript(name, url, key, count):
    return run(["node", interop.script("limits.mjs"), name, url, key, str(count)])


def web3py(url, key, count):
    return run([interop.python(), interop.script("limits.py"), url, key, str(count)])


def cast(url, key, count):
    """A process for each call, all at once; the key in the path. They are Alloy."""
    made = [subprocess.Popen(  # pylint: disable=consider-using-with
        [nodes.program("cast"), "rpc", "net_version", "--rpc-url", url + key],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(count)]
    ends = [(p.communicate(timeout=tap.limit(60)), p.returncode) for p in made]
    return {"good": sum(status == 0 for _, status in ends),
            "errors": [err.decode() for (_, err), status in ends if status != 0]}


def ask(client, url, key, count):
    if client == "cast":
        return cast(url, key, count)
    if client == "web3py":
        return web3py(url, key, count)
    return javascript(client, url, key, count)


def here(client):
    if client == "cast":
        return nodes.program("cast") is not None
    if client == "web3py":
        return interop.python() is not None
    return interop.node_package(client)


def limited(client):
    if not here(client):
        raise tap.Skip("%s is not installed" % client)
    with tempfile.TemporaryDirectory(prefix="egw-limits-") as folder:
        node = Node("http", Chain(), folder, "n0")
        try:
            with Gateway([{"name": "n0", "url": node.url()}], middleware=STAGES,
                         tcp={"key_in_path": True}) as gw:
                url = "http://127.0.0.1:%d/" % gw.port
                got = ask(client, url, KEY, 10)
                tap.eq((got["good"], got["errors"]), (10, []), "calls of %s" % client)
                tap.at_least(gw.metric("ethrpcgw_ratelimit_refused_total"), 1)
                tap.at_least(gw.metric("ethrpcgw_ratelimit_allowed_total"), 10)
                got = ask(client, url, KEY + "x", 2)
                tap.eq(got["good"], 0, "calls with a wrong key")
                tap.check(all("401" in e for e in got["errors"]), "errors: %r" % got["errors"])
                if client == "web3py":
                    got = ask(client, url.replace("//", "//any:%s@" % KEY), "", 10)
                    tap.eq((got["good"], got["errors"]), (10, []), "with the key in the URL")
        finally:
            node.close()


def main():
    need_program()
    for client in ("ethers", "viem", "web3py", "cast"):
        tap.run("%s waits where it is told to" % client, limited, client)
    tap.done()


main()
