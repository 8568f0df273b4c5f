#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What stages are told about a client (headers, keys in paths, uid, proxies in front), and what a
client is told beside its answer (status, cache, story). By a stage for tests, t/lib/tell.c."""
import atexit
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import Reply, Stream, dial_tcp, request
from gateway import BUILD
from wire import row

PLUGIN = os.path.join(BUILD, "t", "lib", "tell.so")
if not os.path.exists(PLUGIN):
    tap.skip_all("t/lib/tell.so is not built")

FOLDER = tempfile.mkdtemp(prefix="egw-facts-")
ACCESS = os.path.join(FOLDER, "access.log")
atexit.register(shutil.rmtree, FOLDER, True)

TELL = [{"use": PLUGIN, "name": "tell"}, {"use": PLUGIN, "name": "deep", "deep": True}]
SECRETS = ("s3cret-token", "s3cret-key", "s3cret-path")
HEADERS = [("Authorization", "Bearer s3cret-token"), ("X-API-KEY", "s3cret-key"),
           ("User-Agent", "test/1 (\"quoted\")")]
KEYED = {"middleware": TELL, "tcp": {"key_in_path": True}, "level": "trace"}
PROXIED = {"middleware": TELL, "tcp": {"trusted_proxies": ["127.0.0.1", "10.0.0.0/8"]}}


def told(reply):
    return rawjson.parse(reply.ok())


def client(env, kind, path="/", headers=()):
    options = {} if kind == "ipc" else {"path": path, "headers": list(headers)}
    return env.gw.client(kind, **options)


def facts(env, kind, method="tell_client", params=(), **options):
    with client(env, kind, **options) as c:
        return told(c.call(method, list(params)))


def no_secrets(env):
    for secret in SECRETS:
        tap.lacks(env.gw.log(), secret, "the log")
        tap.lacks(env.gw.admin("/metrics")[1].decode(), secret, "metrics")
        tap.lacks(env.gw.admin("/status")[1].decode(), secret, "status")


# --- headers, uid, identity ----------------------------------------------------------------


@row("T1", "headers that are kept", clients="http ws", **KEYED)
def headers(env, c):
    got = facts(env, c.kind, headers=HEADERS)
    tap.eq(got["authorization"], "Bearer s3cret-token", "authorization")
    tap.eq(got["x-api-key"], "s3cret-key", "x-api-key")
    tap.eq(got["user-agent"], "test/1 (\"quoted\")", "user-agent")
    tap.eq(got["host"], None, "others")
    no_secrets(env)


@row("T1", "headers that were not sent, or twice, or empty", clients="http ws", **KEYED)
def without(env, c):
    got = facts(env, c.kind)
    tap.eq([got["authorization"], got["x-api-key"], got["user-agent"]], [None] * 3, "none sent")
    got = facts(env, c.kind, headers=HEADERS + [("x-api-KEY", "s3cret-key")])
    tap.eq(got["x-api-key"], None, "one that was sent twice")
    tap.eq(got["authorization"], "Bearer s3cret-token", "the others")
    tap.eq(facts(env, c.kind, headers=[("X-Api-Key", "")])["x-api-key"], "", "an empty one")


@row("T1", "each request of a connection has its own", **KEYED)
def own(env, c):
    for i in range(20):
        extra = [("X-Api-Key", "k%d" % i)] if i % 3 else []
        path = "/p%d" % i if i % 2 else "/"
        response = c.request(request("tell_client", []), headers=extra, path=path)
        got = told(Reply(response.body))
        tap.eq(got["x-api-key"], "k%d" % i if i % 3 else None, "x-api-key")
        tap.eq(got["path_key"], "p%d" % i if i % 2 else None, "path_key")


@row("T1", "all calls of a session have those of its beginning", clients="ws", **KEYED)
def session(env, _):
    with client(env, "ws", "/main/s3cret-path", HEADERS) as c:
        for _ in range(3):
            got = told(c.call("tell_client"))
            tap.eq([got["x-api-key"], got["path_key"]], ["s3cret-key", "s3cret-path"], "keys")
        for reply in c.batch([request("tell_client", [], i) for i in range(5)]):
            tap.eq(told(reply)["x-api-key"], "s3cret-key", "in an array")


@row("T1", "who it is", clients="http ws ipc", **KEYED)
def who(env, c):
    got = facts(env, c.kind)
    tap.eq(got["transport"], c.kind, "transport")
    tap.eq(got["local"], True, "local")
    uid = os.getuid() if c.kind == "ipc" else -1
    tap.eq(got["uid"], uid, "uid")
    tap.eq(got["peer"], "uid %d" % uid if c.kind == "ipc" else "127.0.0.1", "peer")
    tap.eq(got["listener"], "ipc" if c.kind == "ipc" else "rpc", "listener")
    tap.eq([got["identity"], got["authorization"], got["path_key"]], [None] * 3, "the rest")


@row("T1", "an identity, for the stages below and for sub-calls", clients="http ws ipc", **KEYED)
def identity(env, c):
    tap.eq(facts(env, c.kind, "tell_identity", ["alice"])["identity"], "alice", "identity")
    with client(env, c.kind, "/s3cret-path", HEADERS) as one:
        got = told(one.call("tell_sub", ["bob"]))
    tap.eq(got["identity"], "bob", "of a sub-call")
    tap.eq(got["transport"], c.kind, "transport of a sub-call")
    if c.kind != "ipc":
        tap.eq([got["x-api-key"], got["path_key"]], ["s3cret-key", "s3cret-path"], "its keys")


@row("T1", "the client goes while its call is held", clients="http ws ipc", **KEYED)
def gone(env, c):
    begun = len(env.gw.log())
    one = client(env, c.kind, "/0123456789", [("User-Agent", "agent-%s" % c.kind)])
    one.send(request("tell_hold"))
    tap.eventually(lambda: env.gw.metric("ethrpcgw_calls_in_flight") > 0, 5, "it is held")
    one.reset()
    line = tap.eventually(lambda: re.search(r"end transport=(\w+) peer=(\S*( \d+)?) agent=(\S*) "
                                            r"key=(\d+)", env.gw.log()[begun:]), 5, "its end")
    peer = "uid %d" % os.getuid() if c.kind == "ipc" else "127.0.0.1"
    tap.eq(line.group(1), c.kind, "transport")
    tap.eq(line.group(2), peer, "peer")
    if c.kind != "ipc":
        tap.eq([line.group(4), line.group(5)], ["agent-" + c.kind, "10"], "agent, key")


# --- paths ---------------------------------------------------------------------------------


@row("T2", "keys in paths", clients="http ws", **KEYED)
def paths(env, c):
    for path, key in (("/", None), ("/main", None), ("/s3cret-path", "s3cret-path"),
                      ("/main/s3cret-path", "s3cret-path"), ("/main/A.b_c~1-2", "A.b_c~1-2"),
                      ("/s3cret-path?x=y", "s3cret-path"), ("/" + "k" * 256, "k" * 256)):
        tap.eq(facts(env, c.kind, path=path)["path_key"], key, path)
    no_secrets(env)


def status_of(env, kind, path):
    if kind == "ws":
        c = env.gw.client("ws", connect=False)
        try:
            return c.handshake(path)[0]
        finally:
            c.close()
    with env.gw.http() as c:
        return c.request(request("tell_client"), path=path).status


@row("T2", "paths that are neither", clients="http ws", **KEYED)
def bad_paths(env, c):
    for path in ("/other/s3cret-path", "/main/main", "/main/s3cret-path/x", "/a%20b", "/a:b",
                 "/" + "k" * 257):
        tap.eq(status_of(env, c.kind, path), 404, path)
    no_secrets(env)


@row("T2", "without the option they are unknown networks", clients="http ws", middleware=TELL,
     level="trace")
def no_keys(env, c):
    tap.eq(facts(env, c.kind, path="/main")["path_key"], None, "/main")
    for path in ("/s3cret-path", "/main/s3cret-path"):
        tap.eq(status_of(env, c.kind, path), 404, path)
    with env.gw.http() as one:
        tap.lacks(one.request(request("x"), path="/s3cret-path").body.decode(), "s3cret",
                  "the refusal")
    no_secrets(env)


# --- proxies -------------------------------------------------------------------------------


def peer_of(env, kind, *extra):
    got = facts(env, kind, headers=extra)
    return got["peer"], got["local"]


@row("T3", "a trusted proxy says whom it forwards for", clients="http ws", **PROXIED)
def proxied(env, c):
    real, gone_dark = ("127.0.0.1", True), ("127.0.0.1", False)
    for want, *extra in (
            (real,),
            (("9.9.9.9", False), ("X-Forwarded-For", "1.1.1.1, 9.9.9.9, 10.0.0.1")),
            (("2001:db8::9", False), ("Forwarded", 'for=1.1.1.1, for="[2001:DB8::9]:80"')),
            (("9.9.9.9", False), ("X-Forwarded-For", "1.1.1.1"), ("X-Forwarded-For", "9.9.9.9")),
            (("127.0.0.1", False), ("X-Forwarded-For", "127.0.0.1")),
            (("9.9.9.9", False), ("X-Forwarded-For", "9.9.9.9"), ("Forwarded", "for=9.9.9.9")),
            (gone_dark, ("X-Forwarded-For", "9.9.9.9"), ("Forwarded", "for=1.1.1.1")),
            (gone_dark, ("X-Forwarded-For", "garbage")),
            (gone_dark, ("Forwarded", "for=_hidden")),
            (gone_dark, ("X-Forwarded-For", ""))):
        tap.eq(peer_of(env, c.kind, *extra), want, repr(extra))


@row("T3", "nobody else is believed", clients="http ws", middleware=TELL,
     tcp={"trusted_proxies": ["10.0.0.0/8"]})
def not_trusted(env, c):
    tap.eq(peer_of(env, c.kind, ("X-Forwarded-For", "9.9.9.9")), ("127.0.0.1", True), "peer")


@row("T3", "each request of a connection is for somebody else", **PROXIED)
def each(env, c):
    for i in range(10):
        extra = [("X-Forwarded-For", "9.9.9.%d" % i)] if i % 3 else []
        got = told(Reply(c.request(request("tell_client"), headers=extra).body))
        tap.eq(got["peer"], "9.9.9.%d" % i if i % 3 else "127.0.0.1", "peer")


# --- behind TLS ----------------------------------------------------------------------------

CERTIFICATE, KEY = os.path.join(FOLDER, "cert.pem"), os.path.join(FOLDER, "key.pem")
TLS = {"middleware": TELL, "tcp": {"tls_certificate": CERTIFICATE, "tls_key": KEY,
                                   "key_in_path": True, "trusted_proxies": ["127.0.0.1"]}}


def certify():
    return shutil.which("openssl") is not None and subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-subj", "/CN=localhost", "-days", "2", "-keyout", KEY, "-out", CERTIFICATE],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def through_tls(c):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    c.stream = Stream(context.wrap_socket(dial_tcp(c.port)), 8)
    return c


def secure(env, _):
    extra = HEADERS + [("X-Forwarded-For", "9.9.9.9")]
    with through_tls(env.gw.http()) as c:
        web = told(Reply(c.request(request("tell_client"), path="/s3cret-path",
                                   headers=extra).body))
    with through_tls(env.gw.ws(connect=False)) as c:
        tap.eq(c.handshake("/s3cret-path", extra)[0], 101, "handshake")
        sock = told(c.call("tell_client"))
    for got in (web, sock):
        tap.eq([got["x-api-key"], got["path_key"], got["peer"], got["local"]],
               ["s3cret-key", "s3cret-path", "9.9.9.9", False], "facts")


if certify():
    row("T3", "all that over HTTPS and WSS", **TLS)(secure)


# --- the answer's status -------------------------------------------------------------------


@row("T4", "the status that a stage asked for", middleware=TELL)
def status(env, c):
    for n in (400, 401, 403, 429, 500, 503, 599):
        response = c.request(request("tell_status", [n, True]))
        tap.eq(response.status, n, "status")
        Reply(response.body).refused(-32000)
        tap.check(response.is_json(), "Content-Type")
        tap.eq(response.header("WWW-Authenticate"), b"Bearer" if n == 401 else None,
               "WWW-Authenticate")
    for n in (0, 100, 200, 302, 399, 600):
        response = c.request(request("tell_status", [n, True]))
        tap.eq(response.status, 200, "status instead of %d" % n)
        Reply(response.body).refused(-32000)


@row("T4", "not with a result, in an array, or a notification", middleware=TELL)
def no_status(env, c):
    response = c.request(request("tell_status", [403, False]))
    tap.eq([response.status, Reply(response.body).ok()], [200, b"true"], "with a result")
    for n in (1, 2):
        members = [request("tell_status", [403, True], i) for i in range(n)]
        response = c.request(b"[" + b",".join(members) + b"]")
        tap.eq(response.status, 200, "an array of %d" % n)
    response = c.request(request("tell_status", [403, True], None))
    tap.eq(response.status, 204, "a notification")
    response = c.request(request("tell_status", [0, True]))
    tap.eq(response.status, 200, "the next request of the connection")


@row("T4", "other transports have none", clients="ws ipc", middleware=TELL)
def nowhere(env, c):
    c.call("tell_status", [403, True]).refused(-32000)
    tap.eq(c.call("tell_cache", ["hit"]).ok(), b"true", "the session goes on")


# --- what the cache did --------------------------------------------------------------------

ASK = [("X-Ethrpc-Gw-Cache", "1")]


def cache_of(c, body, headers=tuple(ASK)):
    return c.request(body, headers=list(headers)).header("X-Ethrpc-Gw-Cache")


@row("T5", "a client that asks is told what the cache did", middleware=TELL)
def cache(env, c):
    for word in ("hit", "miss", "bypass"):
        tap.eq(cache_of(c, request("tell_cache", [word])), word.encode(), "status")
    tap.eq(cache_of(c, request("tell_cache", [])), b"none", "no cache")
    tap.eq(cache_of(c, request("eth_call", [1])), b"none", "a node's answer")
    tap.eq(cache_of(c, b"{"), b"none", "what can't be read")
    tap.eq(cache_of(c, request("tell_cache", ["hit"], None)), None, "a notification")
    tap.eq(cache_of(c, request("tell_cache", ["hit"]), ()), None, "who does not ask")


@row("T5", "in arrays each member that is answered", middleware=TELL)
def caches(env, c):
    def array(*members):
        return b"[" + b",".join(members) + b"]"

    got = cache_of(c, array(request("tell_cache", ["miss"], 1), request("tell_cache", ["hit"], None),
                            b"1", request("tell_cache", ["hit"], 2)))
    tap.eq(got, b"miss, none, hit", "one word each")
    for n in (64, 65, 200):
        members = [request("tell_cache", ["hit" if i % 2 else "bypass"], i) for i in range(n)]
        want = ["hit" if i % 2 else "bypass" for i in range(min(n, 64))] + ["..."] * (n > 64)
        tap.eq(cache_of(c, array(*members)), ", ".join(want).encode(), "of %d" % n)


# --- stories -------------------------------------------------------------------------------

STORY = [("X-Ethrpc-Gw-Explain", "1")]


def story_of(c, body, headers=tuple(STORY), **options):
    got = c.request(body, headers=list(headers), **options).header("X-Ethrpc-Gw-Explain")
    if got is not None:
        tap.check(re.fullmatch(rb"[ -~]{1,4096}", got), "only visible ASCII: %r" % got)
    return got


def steps(story):
    found = []
    for step in story.decode().split("; "):
        match = re.fullmatch(r"\+(\d+\.\d{3})ms (.*)", step)
        tap.check(match, "step %r" % step)
        found.append((float(match.group(1)), match.group(2)))
    tap.eq([t for t, _ in found], sorted(t for t, _ in found), "times")
    return [text for _, text in found]


@row("T6", "the story of a call", middleware=TELL)
def story(env, c):
    tap.eq(steps(story_of(c, request("tell_cache", ["hit"]))),
           ["received: tell_cache over http", "cache: hit", "tell answered", "done: result"],
           "answered by a stage")
    tap.eq(steps(story_of(c, request("tell_status", [0, True]))),
           ["received: tell_status over http", "tell refused: error -32000",
            "done: error -32000"], "refused by a stage")
    got = steps(story_of(c, request("tell_sub", ["x"])))
    tap.eq(got, ["received: tell_sub over http", "deep answered (sub-call tell_client)",
                 "tell answered", "done: result"], "with a sub-call")
    got = steps(story_of(c, request("eth_call", [1])))
    tap.eq([got[0], got[-1]], ["received: eth_call over http", "done: result"], "a node's answer")
    tap.eq(story_of(c, request("tell_cache", ["hit"]), ()), None, "who does not ask")
    tap.eq(story_of(c, request("tell_cache", []), [("X-Ethrpc-Gw-Explain", "0")]), None, "0")
    tap.eq(story_of(c, request("tell_cache", ["hit"], None)), None, "a notification")


@row("T6", "what a client sends makes no header of its own", middleware=TELL)
def tame(env, c):
    nasty = "a\r\nX-Evil: 1\r\n\r\n\u00e9\x7f"
    got = story_of(c, request("tell_step", [nasty]))
    tap.contains(got.decode(), "a??X-Evil: 1????", "the step")
    tap.eq(c.last.header("X-Evil"), None, "another header")
    tap.eq(story_of(c, request("tell_none\r\nX-Evil: 1", [])), None, "what is no method")
    tap.eq(c.last.header("X-Evil"), None, "another header")
    tap.eq(steps(story_of(c, request("m" * 100, [])))[0], "received: %s over http" % ("m" * 64),
           "a long method")


@row("T6", "stories are bounded", middleware=TELL)
def bounded(env, c):
    members = [request("tell_cache", ["hit"], i) for i in range(100)]
    got = story_of(c, b"[" + b",".join(members) + b"]")
    parts = got.decode().split(" | ")
    tap.at_least(len(parts), 10)
    tap.eq(parts[-1], "...", "the end")
    for i, part in enumerate(parts[:-1]):
        tap.check(part.startswith("#%d +" % i), "part %d: %r" % (i, part))
        tap.eq(steps(part.split(" ", 1)[1].encode())[-1], "done: result", "each is whole")
    body = b"[" + b",".join(members) + b"]"
    for size, fields in ((6000, 0), (7000, 0), (7980, 0), (300, 50), (4000, 50), (7980, 50)):
        big = STORY + ASK + [("X-%d" % i, "") for i in range(fields)]
        big.append(("X-Padding", "p" * max(1, size - len(c.head(len(body), headers=big)))))
        c.open().send((c.head(len(body), headers=big) + body) * 5)
        for _ in range(5):
            response = c.response()
            tap.eq(response.status, 200, "beside a head of %d bytes, %d fields" % (size, fields))
            got = response.header("X-Ethrpc-Gw-Explain")
            tap.check(got is None or got.endswith(b"..."), "the end: %r" % got)
            tap.check(got is not None or size > 7000, "there is room for some of it")


@row("T6", "no configured secret is in a story", middleware=TELL, url_form="%s://%s/SECRETkey34")
def no_url(env, c):
    for text in ["node said http://h/SECRETkey34 here", "at h/%53ECRETkey34"] + \
            ["at " + "x" * n + "/SECRETkey34" for n in range(215, 241)]:
        got = story_of(c, request("tell_step", [text])).decode()
        tap.lacks(got, "ECRET", "the story")
        tap.contains(got, text[:2], "the story")
    env.node.close()
    got = story_of(c, request("eth_call", [1])).decode()
    tap.contains(got, "n0 failed: ", "the story")
    tap.lacks(got, "SECRET", "the story")
    tap.lacks(got, str(env.node.port), "the story")


@row("T6", "a reply in pieces has what is known at its beginning", middleware=TELL,
     network={"stream_threshold": "64KiB"})
def streamed(env, c):
    env.node.script = lambda req: req.result(b'"' + b"x" * 300000 + b'"')
    response = c.request(request("eth_call", ["big"]), headers=STORY + ASK)
    tap.eq(len(Reply(response.body).ok()), 300002, "bytes of the result")
    tap.eq(response.header("Content-Length"), None, "it came in pieces")
    tap.eq(response.header("X-Ethrpc-Gw-Cache"), b"none", "cache")
    got = steps(response.header("X-Ethrpc-Gw-Explain"))
    tap.eq(got[0], "received: eth_call over http", "the first step")
    tap.check("asked n0" in got and not got[-1].startswith("done"), "the others: %r" % got)


ALL = {"middleware": TELL, "tcp": {"explain": "all", "trusted_proxies": ["127.0.0.1"]}}
SOME = {"middleware": TELL, "tcp": {"explain": "local", "trusted_proxies": ["127.0.0.1"]}}
NONE = {"middleware": TELL, "tcp": {"explain": "none"}}
FAR = [("X-Forwarded-For", "9.9.9.9")]


@row("T6", "explain = all", **ALL)
def for_all(env, c):
    tap.check(story_of(c, request("tell_cache", [])), "a local client")
    tap.check(story_of(c, request("tell_cache", []), STORY + FAR), "one far away")


@row("T6", "explain = local", **SOME)
def for_local(env, c):
    tap.check(story_of(c, request("tell_cache", [])), "a local client")
    tap.eq(story_of(c, request("tell_cache", []), STORY + FAR), None, "one far away")
    tap.check(story_of(c, request("tell_cache", [])), "the next one")


@row("T6", "explain = none", **NONE)
def for_none(env, c):
    tap.eq(story_of(c, request("tell_cache", [])), None, "a local client")
    tap.eq(cache_of(c, request("tell_cache", ["hit"])), b"hit", "the cache is told of")


# --- the access log ------------------------------------------------------------------------

LOGGED = {"middleware": [{"use": "log", "explain": True, "file": ACCESS}] + TELL}
PLAIN = {"middleware": [{"use": "log"}] + TELL}


def text_of(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def written(c, method, params, **options):
    """The line in the file."""
    begun = len(text_of(ACCESS))
    c.request(request(method, params), **options)
    line = tap.eventually(lambda: re.search(r" method=%s .*\n" % method, text_of(ACCESS)[begun:]),
                          5, "the line of the access log")
    return line.group(0).strip()


def logged(env, c, method, params, **options):
    """The line in the gateway's own log."""
    begun = len(env.gw.log())
    c.request(request(method, params), **options)

    def line():
        found = re.search(r"access: (method=%s .*)\n" % method, env.gw.log()[begun:])
        return found and re.sub(r"\\(.)", r"\1", found.group(1))  # the gateway's log escapes, too
    return tap.eventually(line, 5, "the line of the access log")


@row("T8", "identity, cache and upstream in the access log", **PLAIN)
def log_fields(env, c):
    line = logged(env, c, "tell_identity", ["alice b"])
    tap.contains(line, ' identity="alice b"', "the line")
    tap.lacks(line, " cache=", "without a cache")
    line = logged(env, c, "tell_cache", ["bypass"], headers=STORY)
    tap.contains(line, " cache=bypass ", "the line")
    tap.lacks(line, "identity=", "of nobody")
    tap.lacks(line, "explain=", "who did not ask for stories in the log")
    tap.contains(logged(env, c, "eth_call", [1]), " upstream=n0 ", "the line")


@row("T8", "stories in the access log", **LOGGED)
def log_stories(_, c):
    line = written(c, "tell_step", ['say "x\ny"'])
    found = re.search(r' explain="(.*)"$', line)
    tap.check(found, "the line ends in a story: %r" % line)
    story = re.sub(r"\\(.)", r"\1", found.group(1))
    got = steps(story.encode())
    tap.eq(got[:2], ["received: tell_step over http", 'say "x?y"'], "its beginning")
    tap.check(got[-1].startswith("done: "), "its end: %r" % got[-1])
    tap.eq(c.last.header("X-Ethrpc-Gw-Explain"), None, "not for a client that did not ask")
    line = written(c, "tell_cache", ["hit"], headers=STORY)
    tap.contains(line, c.last.header("X-Ethrpc-Gw-Explain").decode(), "what the client was told")
    many = "z" * 120
    line = written(c, "tell_steps", [many] * 100)
    tap.among(len(line), range(3200, 3500), "length")
    tap.contains(line, "z" * 120 + "; +", "many steps")


# --- pages ---------------------------------------------------------------------------------

PAGE = "https://app.example"


@row("T7", "pages may ask for them and read them", middleware=TELL, tcp={"origins": [PAGE]})
def pages(env, c):
    response = c.request(method="OPTIONS", headers=[
        ("Origin", PAGE), ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "x-api-key,x-ethrpc-gw-cache,x-ethrpc-gw-explain")])
    allowed = [x.strip() for x in response.header("Access-Control-Allow-Headers").split(b",")]
    for name in (b"x-api-key", b"x-ethrpc-gw-cache", b"x-ethrpc-gw-explain", b"authorization"):
        tap.check(name in allowed, "%r is allowed" % name)
    response = c.request(request("tell_cache", ["hit"]), headers=[("Origin", PAGE)] + STORY + ASK)
    tap.eq(response.header("Access-Control-Expose-Headers"),
           b"X-Ethrpc-Gw-Cache, X-Ethrpc-Gw-Explain", "exposed")
    response = c.request(request("tell_cache", ["hit"]), headers=[("Origin", PAGE)])
    tap.eq(response.header("Access-Control-Expose-Headers"), None, "nothing to expose")


if __name__ == "__main__":
    wire.main()
