# SPDX-License-Identifier: MIT
"""Real clients through the gateway, compared with the same clients straight at the node.

A client program is called as

    PROGRAM FACTS.json KIND=URL [KIND=URL ...]

and prints one JSON object a line for each thing that it did: {"on": what, "step": name, "value":
anything}. The node is anvil with the same chain at each start, so what a client gets through the
gateway must be what it got from the node, step by step, sent transactions and pushed events
included. The node of a comparison is asked over the transport that the gateway asks it over."""
import json
import os
import subprocess

import gateway
import nodes
import tap

KINDS = ("http", "ws", "ipc")


def python():
    """The interpreter that has web3.py, or None."""
    path = os.path.join(nodes.tools_dir(), "venv", "bin", "python")
    return path if os.access(path, os.X_OK) else None


def node_package(name):
    """Whether an npm package is installed for the tests."""
    return os.path.isdir(os.path.join(nodes.tools_dir(), "node_modules", name))


def script(name):
    return os.path.join(nodes.INTEROP, name)


def urls_of(gw):
    """The gateway's own URLs, by kind."""
    return {"http": "http://127.0.0.1:%d" % gw.port, "ws": "ws://127.0.0.1:%d" % gw.port,
            "ipc": "ipc://" + gw.ipc_path}


def run(argv, facts, urls, folder, timeout=300):
    """Runs a client over all transports; its lines as (on, step, value)."""
    path = os.path.join(folder, "facts.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(facts, file)
    env = dict(os.environ, EGW_INTEROP_DIR=nodes.tools_dir())
    done = subprocess.run(argv + [path] + ["%s=%s" % (k, urls[k]) for k in KINDS],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=env, timeout=tap.limit(timeout), check=False)
    tap.check(done.returncode == 0, "the client ended with %d: %s"
              % (done.returncode, done.stderr.decode(errors="replace")[-2000:]))
    lines = [json.loads(line) for line in done.stdout.decode().splitlines() if line]
    return [(line["on"], line["step"], line["value"]) for line in lines]


def direct(argv):
    """What the client gets straight from a node."""
    with nodes.Anvil() as node:
        return run(argv, nodes.furnish(node), node.urls, node.dir)


# As an operator would order them; those that this build has are used.
_STAGES = ("log", "methods", "ratelimit", "cache", "coalesce", "prefetch", "failover", "batch")
_OPTIONS = {"ratelimit": {"per_client": "1000000/s"}}


def all_stages():
    """A chain of every middleware plugin that is built, with defaults but for limits."""
    def built(name):
        return os.path.exists(os.path.join(gateway.BUILD, "plugins", "middleware", name,
                                           name + ".so"))
    return [dict({"use": name}, **_OPTIONS.get(name, {})) for name in _STAGES if built(name)]


def upstreams_for(node, kind):
    """One upstream of this kind; HTTP cannot push, so its WebSocket side is named too."""
    upstream = {"name": "anvil", "url": node.urls[kind]}
    if kind == "http":
        upstream["ws"] = node.urls["ws"]
    return [upstream]


def through(argv, kind, stages=None):
    """What the client gets through a gateway whose calls go out over this kind. stages: the
    chain, by default that of a configuration which says nothing."""
    with nodes.Anvil() as node:
        facts = nodes.furnish(node)
        with gateway.Gateway(upstreams_for(node, kind), level="info", middleware=stages,
                             network={"timeout": "30s", "attempt_timeout": "20s"}) as gw:
            return run(argv, facts, urls_of(gw), node.dir)


def first_difference(got, want, path="value"):
    """Where two values differ, in words."""
    if isinstance(got, dict) and isinstance(want, dict):
        for key in sorted(set(got) | set(want)):
            if key not in got or key not in want:
                return "%s.%s is only %s" % (path, key, "direct" if key in want else "gateway's")
            if got[key] != want[key]:
                return first_difference(got[key], want[key], "%s.%s" % (path, key))
    if isinstance(got, list) and isinstance(want, list) and len(got) == len(want):
        for i, (one, two) in enumerate(zip(got, want)):
            if one != two:
                return first_difference(one, two, "%s[%d]" % (path, i))
    return "%s: got %.600r, want %.600r" % (path, got, want)


# Over IPC and WebSocket anvil has its own words for a method it does not know; a gateway that
# asks it over another transport hands on what it got there.
_BY_TRANSPORT = ("unknown method",)


def compare(got, want, words, differs=()):
    """One test for each step of each transport."""
    left = {(on, step): value for on, step, value in got}
    tap.run("the same steps over " + words, lambda: tap.eq([g[:2] for g in got], [w[:2] for w in want], "steps"))
    for on, step, value in want:
        def same(on=on, step=step, value=value):
            tap.check((on, step) in left, "no such step")
            if step not in differs and step not in _BY_TRANSPORT:
                tap.check(left[(on, step)] == value, first_difference(left[(on, step)], value))
            else:
                tap.eq(type(left[(on, step)]), type(value), "kind of the answer")
        tap.run("%s: %s (%s)" % (on, step, words), same)


def main(argv, missing, sure=(), upstreams=KINDS, differs=()):
    """The test script of one client. `missing`: why it cannot run, or None. `sure`: steps that
    must have succeeded straight at the node, so that a broken tool is not taken for agreement."""
    gateway.need_program()
    if missing:
        tap.skip_all(missing + " (t/interop/install)")
    if nodes.program("anvil") is None:
        tap.skip_all("anvil is not installed (t/interop/install)")
    tap.watchdog(900)
    want = direct(argv)
    for name in sure:
        found = [value for _, step, value in want if step == name]
        tap.run("straight at the node: %s" % name, lambda f=found: tap.check(
            f and not any(isinstance(v, dict) and ("raised" in v or "error" in v) for v in f),
            "the client itself fails: %.500r" % f))
    full = all_stages()
    tap.diag("all stages: %s" % ", ".join(s["use"] for s in full))
    for kind, stages, words in [(k, None, k) for k in upstreams] + \
            [(k, full, k + ", all stages") for k in ("http", "ipc")]:
        got = []

        def work(kind=kind, stages=stages, got=got):
            got += through(argv, kind, stages)
        if tap.run("the client runs, gateway over %s" % words, work) and \
                gateway.has_transport(kind):
            tap.diag("upstream over %s" % words)
            compare(got, want, words, differs)
    tap.done()
