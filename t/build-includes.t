#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who includes what: the folders of src/ in their order, libraries only where they belong,
plugins only the public headers."""
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import buildtree
import tap

# A folder includes headers of those before it.
ORDER = ["base", "obs", "conf", "plugin", "worker", "rpc", "chain", "upstream", "head", "push",
         "listen", "admin", "gateway"]

# What is included against that order: (folder, header, why). A new one needs a reason; one that
# is gone is to be struck off.
AGAINST = [
    ("admin", "gateway/gateway.h", "shows all of it"),
    ("chain", "gateway/gateway.h", "a worker's stages are those of all networks"),
    ("chain", "push/push.h", "a call that subscribes is handed over"),
    ("chain", "upstream/upstream.h", "below the last stage are the upstreams"),
    ("head", "gateway/gateway.h", "all workers are told of a new head"),
    ("head", "push/hub.h", "what the chain does becomes events"),
    ("head", "push/local.h", "calls that wait for the head go on"),
    ("head", "push/subscription.h", "a node's newHeads are a subscription"),
    ("listen", "admin/admin.h", "an admin listener's requests are answered there"),
    ("listen", "gateway/gateway.h", "which network a path means; the byte budget"),
    ("obs", "chain/chain.h", "sums of stages"),
    ("obs", "gateway/gateway.h", "sums over all workers"),
    ("obs", "head/head.h", "the head of each network"),
    ("obs", "rpc/method.h", "one row for each method"),
    ("obs", "upstream/upstream.h", "sums of links"),
    ("push", "gateway/gateway.h", "events go to all workers"),
    ("push", "listen/listen.h", "limits of the listener"),
    ("push", "listen/session.h", "events go to sessions"),
    ("rpc", "chain/call.h", "requests become calls"),
    ("rpc", "gateway/gateway.h", "the byte budget"),
    ("rpc", "listen/facts.h", "who sent a request, kept as long as its calls last"),
    ("rpc", "listen/listen.h", "limits of the listener"),
    ("rpc", "listen/session.h", "answers go to the session"),
    ("rpc", "push/push.h", "events may follow once the answer is out"),
    ("upstream", "gateway/gateway.h", "the byte budget"),
    ("upstream", "head/head.h", "a node must have the block a call names"),
    ("upstream", "push/push.h", "events of nodes; calls that subscribe"),
]

VERSIONS = ["src/gateway/version.c", "src/admin/status.c"]  # they only print versions
LIBRARIES = {
    r"microhttpd\.h": ["src/listen/"] + VERSIONS,
    r"libwebsockets\.h": ["src/base/lws-compat.h", "src/listen/",
                          "plugins/transport/ws/"] + VERSIONS,
    r"curl/.*": ["plugins/transport/http/"],
    r"libconfig\.h": ["src/conf/"] + VERSIONS,
    r"cjson/.*": ["src/admin/"] + VERSIONS,
    r"openssl/.*": ["src/listen/", "plugins/transport/common/", "plugins/transport/http/",
                    "plugins/transport/ws/", "plugins/middleware/auth/",
                    "plugins/middleware/cache/"] + VERSIONS,
    r"lmdb\.h": ["plugins/middleware/cache/"],
    r"hiredis/.*": ["plugins/common/redis/"],
    r"uv\.h": ["src/gateway/", "src/listen/", "src/worker/", "src/admin/", "plugins/transport/",
              "plugins/common/redis/"],
    r"systemd/.*": ["src/gateway/notify.c"],
    r"dlfcn\.h": ["src/plugin/", "src/gateway/version.c"],
    r"immintrin\.h": ["src/rpc/", "src/base/"],
}
BASE_HEADERS = ("base/checked.h", "base/list.h", "base/lws-compat.h")  # they need no base/*.c
# Pure code of the core; the .c is in the plugin's local.mk, too.
COMPILED_IN = {"plugins/common/redis/address.c": ["conf/url.h"],
               "plugins/middleware/ratelimit/address.c": ["base/net.h"]}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def includes(path):
    """[(is it in quotes, name)] of the file."""
    return [(m.group(1) == '"', m.group(2)) for m in INCLUDE.finditer(buildtree.source_text(path))]


def inside_src(name):
    return os.path.exists(os.path.join(buildtree.SOURCE, "src", name))


def edges():
    """{(folder, header of another folder): files}."""
    found = {}
    for path in SOURCES:
        if path.count("/") < 2:
            continue  # src/main.c
        folder = path.split("/")[1]
        for quoted, name in includes(path):
            if quoted and inside_src(name) and os.path.dirname(name) != folder:
                found.setdefault((folder, name), []).append(path)
    return found


def folders_are_known():
    tap.eq(sorted({p.split("/")[1] for p in SOURCES if p.count("/") > 1}), sorted(ORDER),
           "folders of src/")


def quotes_mean_own():
    bad = ["%s: %s" % (p, n) for p in SOURCES for quoted, n in includes(p)
           if quoted != inside_src(n) and n != "config.h"]
    tap.eq(bad, [], 'own headers are in "", by their path from src/, and others in <>')


def in_order():
    allowed = {(folder, name) for folder, name, _ in AGAINST}
    bad = ["%s (%s)" % (name, ", ".join(paths)) for (folder, name), paths in sorted(edges().items())
           if ORDER.index(name.split("/")[0]) > ORDER.index(folder) and (folder, name) not in allowed]
    tap.eq(bad, [], "against the order of folders")


def list_is_true():
    found = edges()
    tap.eq([a for a in AGAINST if (a[0], a[1]) not in found], [], "no longer included")
    tap.eq([a for a in AGAINST
            if ORDER.index(a[1].split("/")[0]) < ORDER.index(a[0])], [], "in order anyway")


def headers_have_no_cycle():
    """Between headers there is none at all, in whichever folder."""
    graph = {p[4:]: [n for quoted, n in includes(p) if quoted and inside_src(n)]
             for p in SOURCES if p.endswith(".h")}
    done, left = set(), dict(graph)
    while True:
        free = [h for h, needs in left.items() if all(n in done or n not in graph for n in needs)]
        if not free:
            break
        done.update(free)
        for header in free:
            del left[header]
    tap.eq(sorted(left), [], "headers that include each other in a circle")


def library_where(pattern, allowed):
    users = [p for p in SOURCES + PLUGINS if any(
        not quoted and re.fullmatch(pattern, n) for quoted, n in includes(p))]
    tap.check(users, "nobody includes it: strike it off")
    tap.eq([p for p in users if not p.startswith(tuple(allowed))], [], "included by")


def public_headers():
    for path in buildtree.files_below("include", ".h", ".h.in"):
        for quoted, name in includes(path):
            tap.check(not quoted and (name.startswith("ethrpc-gw/") or
                                      name in ("stdbool.h", "stddef.h", "stdint.h")),
                      "%s includes %s" % (path, name))


def plugin_headers():
    """Plugins are made of public headers and their own; base/ has macros and inline functions."""
    bad = []
    for path in PLUGINS:
        folder = os.path.dirname(path)
        for quoted, name in includes(path):
            own = os.path.normpath(os.path.join(folder, name))
            near = own.startswith(os.path.dirname(folder) + "/common/") or \
                os.path.dirname(own) == folder
            exists = os.path.exists(os.path.join(buildtree.SOURCE, own))
            near = near or own.startswith("plugins/common/") or name == "config.h"
            exists = exists or name == "config.h"
            if quoted and not (exists and near) and name not in BASE_HEADERS and \
                    name not in COMPILED_IN.get(path, []):
                bad.append("%s: %s" % (path, name))
    tap.eq(bad, [], "plugins that include the core's headers")


SOURCES = buildtree.files_below("src", ".c", ".h")
PLUGINS = buildtree.files_below("plugins", ".c", ".h")
tap.run("there are sources", lambda: tap.check(len(SOURCES) > 100 and len(PLUGINS) > 10))
tap.run("folders of src/", folders_are_known)
tap.run("own headers in quotes, others in brackets", quotes_mean_own)
tap.run("folders include those before them", in_order)
tap.run("the list of exceptions is true", list_is_true)
tap.run("no circle among headers", headers_have_no_cycle)
for library, places in LIBRARIES.items():
    tap.run("%s only where it belongs" % library.replace("\\", ""), library_where, library, places)
tap.run("public headers need only standard ones", public_headers)
tap.run("plugins use public headers", plugin_headers)
tap.done()
