#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The middleware auth in the whole program: keys, tokens and users over HTTP, WebSocket and IPC;
what refusals look like; that secrets are nowhere; limits by client with ratelimit behind it."""
import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import Reply, request
from gateway import Gateway
from wire import row

ALICE, BOB = "alice-s3cret-0123456789", "bob-s3cret-0123456789"
SECRET = "jwt-s3cret-that-is-as-long-as-a-hash"
UNAUTHORIZED = "unauthorized: no valid key or token came with it"
KEYS = [{"name": "alice", "key": "sha256:" + hashlib.sha256(ALICE.encode()).hexdigest()},
        {"name": "bob", "key": BOB, "methods": ["eth_*"], "deny": ["eth_getLogs"]}]


def stage(*more, tcp=None, **options):
    options.setdefault("keys", KEYS)
    return {"middleware": [dict({"use": "auth"}, **options)] + list(more),
            "tcp": dict({"key_in_path": True}, **(tcp or {}))}


JWT = {"secret": SECRET, "audience": "gw"}
PLAIN = stage()


def bearer(text):
    return [("Authorization", "Bearer " + text)]


def basic(user, password):
    text = base64.b64encode(("%s:%s" % (user, password)).encode()).decode()
    return [("Authorization", "Basic " + text)]


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def parts(header, claims):
    return b64url(rawjson.compact(header)) + b"." + b64url(rawjson.compact(claims))


def hs256(claims, secret=SECRET):
    signed = parts({"alg": "HS256", "typ": "JWT"}, claims)
    mac = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    return (signed + b"." + b64url(mac)).decode()


def asker(env, kind, headers=(), path="/"):
    return env.client(kind, headers=list(headers), path=path)


def ask(env, kind, headers=(), path="/", method="eth_call", params=(1,)):
    """(HTTP status or None, Reply)"""
    with asker(env, kind, headers, path) as client:
        if kind == "http":
            response = client.request(request(method, list(params)))
            tap.check(response.is_json(), "Content-Type: %r" % response.headers)
            return response.status, Reply(response.body)
        return None, client.call(method, list(params))


def let_in(env, kind, **options):
    status, reply = ask(env, kind, **options)
    tap.eq(reply.ok(), env.want("eth_call", b"[1]"), "result")
    tap.among(status, (None, 200), "HTTP status")


def refused(env, kind, want=401, **options):
    status, reply = ask(env, kind, **options)
    reply.refused(-32016)
    tap.eq(reply.message, UNAUTHORIZED, "message")
    tap.among(status, (None, want), "HTTP status")


def metric(env, name):
    return env.gw.metric("ethrpcgw_auth_%s_total" % name)


def no_secrets(env):
    for text in (env.gw.log(), env.gw.admin("/metrics")[1].decode(),
                 env.gw.admin("/status")[1].decode()):
        tap.lacks(text, "s3cret", "log, metrics and status")
        tap.lacks(text, "eyJ", "log, metrics and status")


def logged(env, text):
    tap.check(text in env.gw.log(), "no %r in the log" % text)


# --- keys ------------------------------------------------------------------------------------


@row("U1", "keys in all their places", clients="http ws", upstreams="http", fresh=True, **PLAIN)
def places(env, client):
    kind = client.kind
    let_in(env, kind, headers=bearer(ALICE))
    let_in(env, kind, headers=[("X-Api-Key", BOB)])
    let_in(env, kind, headers=basic("whoever", ALICE))
    let_in(env, kind, path="/main/" + BOB)
    let_in(env, kind, path="/" + ALICE)
    tap.eq(metric(env, "allowed"), 5, "allowed")
    no_secrets(env)


@row("U1", "no key, and wrong ones", clients="http ws", upstreams="http", fresh=True, **PLAIN)
def wrong(env, client):
    kind = client.kind
    refused(env, kind)
    tap.eq(metric(env, "missing"), 1, "missing")
    refused(env, kind, headers=bearer(ALICE + "x"))
    refused(env, kind, headers=bearer(ALICE[:-1]))
    refused(env, kind, headers=bearer(KEYS[0]["key"]))
    refused(env, kind, headers=[("X-Api-Key", "wrong")])
    refused(env, kind, headers=basic(ALICE, "wrong"))
    refused(env, kind, headers=[("Authorization", "Digest s3cret")])
    refused(env, kind, headers=bearer("wrong") + [("X-Api-Key", ALICE)])
    refused(env, kind, path="/main/wrong-s3cret")
    tap.eq(metric(env, "invalid"), 8, "invalid")
    refused(env, kind, headers=bearer(ALICE) * 2)
    tap.eq(metric(env, "missing"), 2, "missing, with a header that was sent twice")
    env.untouched()
    logged(env, "why=invalid client=-")
    no_secrets(env)


@row("U1", "each request of a connection counts by itself", upstreams="http", fresh=True, **PLAIN)
def own(env, client):
    for i in range(12):
        response = client.request(request("eth_call", [1]), headers=bearer(ALICE) if i % 2 else [])
        tap.eq(response.status, 200 if i % 2 else 401, "HTTP status")
        reply = Reply(response.body)
        if i % 2:
            reply.ok()
        else:
            reply.refused(-32016)


@row("U1", "a WebSocket shows its key once", clients="-", upstreams="ws", fresh=True, **PLAIN)
def websocket(env):
    with asker(env, "ws", bearer(BOB)) as client:
        for i in range(10):
            client.call("eth_call", [i]).ok()
        sub = client.subscribe("newHeads")
        head = env.chain.mine()
        event = rawjson.parse(client.event())["params"]
        tap.eq((event["subscription"], event["result"]["hash"]),
               (rawjson.parse(sub), head["hash"]), "an event")
    with asker(env, "ws") as client:
        client.call("eth_subscribe", ["newHeads"]).refused(-32016)
        client.call("eth_call", [1]).refused(-32016)


@row("U2", "arrays: each member is judged, the status is 200", clients="http ws",
     upstreams="http", fresh=True, **stage(anonymous=["eth_chainId"]))
def arrays(env, client):
    members = [request(m, [], i) for i, m in enumerate(("eth_chainId", "eth_call", "net_version"))]
    tap.eq([r.code for r in client.batch(members)], [None, -32016, -32016], "without a key")
    with asker(env, client.kind, bearer(BOB)) as bob:
        tap.eq([r.code for r in bob.batch(members)], [None, None, -32601], "bob")
    with asker(env, client.kind, bearer(ALICE)) as alice:
        tap.eq([r.code for r in alice.batch(members)], [None] * 3, "alice")
    tap.eq((metric(env, "anonymous"), metric(env, "allowed"), metric(env, "denied")), (1, 5, 1),
           "counted")


@row("U2", "methods of a key", clients="http ws", upstreams="http", fresh=True, **PLAIN)
def methods(env, client):
    for method in ("net_version", "eth_getLogs"):
        status, reply = ask(env, client.kind, bearer(BOB), method=method)
        reply.refused(-32601)
        tap.eq(reply.message, "the method %s does not exist/is not available" % method, "message")
        tap.among(status, (None, 403), "HTTP status")
    env.untouched()
    logged(env, "why=denied client=bob method=net_version")


@row("U2", "refusals with status 200", upstreams="http", fresh=True, **stage(http_status=False))
def statuses(env, _):
    refused(env, "http", want=200)
    status, reply = ask(env, "http", bearer(BOB), method="net_version")
    tap.eq((status, reply.code), (200, -32601), "a method")


@row("U2", "clients with different rights share no answer before the gate", clients="http ws",
     upstreams="http", fresh=True, **stage({"use": "coalesce"}, {"use": "cache"}))
def shared(env, client):
    for _ in range(3):
        let_in(env, client.kind, headers=bearer(ALICE))
        refused(env, client.kind)


@row("U2", "notifications without a key are dropped", clients="http ws", upstreams="http",
     fresh=True, **PLAIN)
def notifications(env, client):
    if client.kind == "ws":
        client.silent(request("eth_call", [1], None), 0.1)
    else:
        client.stream or client.open()
        response = client.request(request("eth_call", [1], None))
        tap.eq(response.body, b"", "body")
    tap.eventually(lambda: metric(env, "missing") == 1, 3, "it was refused")
    env.untouched()


# --- a file of keys --------------------------------------------------------------------------


@row("U3", "a file of keys", clients="-", upstreams="http", fresh=True)
def key_file(env):
    folder = tempfile.mkdtemp(prefix="egw-auth-")
    path = os.path.join(folder, "keys")
    try:
        with open(path, "w", encoding="ascii") as file:
            for i in range(1000):
                file.write("c%d sha256:%s eth_* expires=%d-01-01\n"
                           % (i, hashlib.sha256(b"s3cret-%d" % i).hexdigest(),
                              2001 if i == 500 else 2901))
        os.chmod(path, 0o600)
        upstream = {"name": "n0", "url": env.node.url()}
        with Gateway([upstream], middleware=[{"use": "auth", "keys_file": path}]) as gw:
            for i, good in ((0, True), (999, True), (500, False), (1000, False)):
                with gw.http(headers=bearer("s3cret-%d" % i)) as client:
                    reply = Reply(client.request(request("eth_call", [1])).body)
                    tap.eq(reply.error is None, good, "key %d" % i)
            tap.eq(gw.metric("ethrpcgw_auth_expired_total"), 1, "expired")
            tap.lacks(gw.log(), "s3cret", "the log")
    finally:
        shutil.rmtree(folder)


# --- users of unix sockets -------------------------------------------------------------------

ME = str(os.getuid())


@row("U4", "a user is known over IPC", clients="ipc", upstreams="http", fresh=True,
     **stage(uids=[ME]))
def user(env, client):
    client.call("eth_call", [1]).ok()
    client.call("debug_traceTransaction", [1])
    tap.eq(metric(env, "allowed"), 2, "allowed")
    refused(env, "http")


@row("U4", "with rights of its own", clients="ipc", upstreams="http", fresh=True,
     **stage(keys=[{"name": "me", "uid": ME, "methods": ["eth_*"]}]))
def user_rights(env, client):
    client.call("eth_call", [1]).ok()
    client.call("net_version").refused(-32601)
    logged(env, "why=denied client=me method=net_version")


@row("U4", "other users are not", clients="ipc", upstreams="http", fresh=True,
     **stage(uids=[str(os.getuid() + 1)], anonymous=["eth_chainId"]))
def other_user(env, client):
    client.call("eth_call", [1]).refused(-32016)
    client.call("eth_chainId").ok()


# --- tokens ----------------------------------------------------------------------------------


@row("U5", "tokens by HS256", clients="http ws", upstreams="http", fresh=True,
     **stage(jwt=[JWT]))
def tokens(env, client):
    kind, now = client.kind, int(time.time())
    good = hs256({"sub": "ann", "aud": ["gw"], "exp": now + 600})
    for _ in range(6):
        let_in(env, kind, headers=bearer(good))
    tap.at_most(metric(env, "verified"), 2)
    let_in(env, kind, headers=bearer(ALICE))
    for claims in ({"exp": now + 600}, {"aud": "other", "exp": now + 600}, {"aud": "gw"},
                   {"aud": "gw", "exp": now - 600}, {"aud": "gw", "exp": now + 600,
                                                     "nbf": now + 300}):
        refused(env, kind, headers=bearer(hs256(claims)))
    refused(env, kind, headers=bearer(hs256({"aud": "gw", "exp": now + 600}, SECRET + "x")))
    signed = parts({"alg": "none"}, {"aud": "gw", "exp": now + 600}).decode()
    refused(env, kind, headers=bearer(signed + "."))
    refused(env, kind, headers=bearer(good[:-4]))
    tap.eq((metric(env, "expired"), metric(env, "invalid")), (1, 7), "counted")
    no_secrets(env)


def raw_ecdsa(der):
    """Two numbers of 32 bytes out of a SEQUENCE of two INTEGERs."""
    first = 4 + der[3]
    r, s = der[4:first], der[first + 2:]
    return b"".join(x.lstrip(b"\0").rjust(32, b"\0") for x in (r, s))


class Signer:
    """Keys and signatures by OpenSSL's program."""

    def __init__(self):
        if shutil.which("openssl") is None:
            raise tap.Skip("no openssl")
        self.folder = tempfile.mkdtemp(prefix="egw-auth-")
        self.make("rsa", "RSA", "rsa_keygen_bits:2048")
        self.make("ec", "EC", "ec_paramgen_curve:P-256")

    def run(self, *args, data=b""):
        return subprocess.run(("openssl",) + args, input=data, check=True, timeout=60,
                              cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout

    def make(self, name, kind, option):
        self.run("genpkey", "-algorithm", kind, "-pkeyopt", option, "-out", name)
        self.run("pkey", "-in", name, "-pubout", "-out", name + ".pem")

    def token(self, name, alg, claims):
        signed = parts({"alg": alg}, claims)
        signature = self.run("dgst", "-sha256", "-sign", name, data=signed)
        if name == "ec":
            signature = raw_ecdsa(signature)
        return (signed + b"." + b64url(signature)).decode()

    def close(self):
        shutil.rmtree(self.folder)


@row("U5", "tokens by RS256 and ES256", clients="-", upstreams="http", fresh=True)
def public_keys(env):
    signer, exp = Signer(), int(time.time()) + 600
    try:
        jwt = [{"name": n, "public_key": os.path.join(signer.folder, n + ".pem"),
                "methods": ["eth_*"]} for n in ("rsa", "ec")]
        upstream = {"name": "n0", "url": env.node.url()}
        with open(os.path.join(signer.folder, "rsa.pem"), encoding="ascii") as file:
            pem = file.read()
        with Gateway([upstream], middleware=[{"use": "auth", "jwt": jwt}]) as gw:
            def code(token, method="eth_call"):
                with gw.http(headers=bearer(token)) as client:
                    return Reply(client.request(request(method, [1])).body).code

            tap.eq(code(signer.token("rsa", "RS256", {"exp": exp})), None, "RS256")
            tap.eq(code(signer.token("ec", "ES256", {"exp": exp})), None, "ES256")
            tap.eq(code(signer.token("ec", "ES256", {"exp": exp}), "net_version"), -32601,
                   "methods of the issuer")
            tap.eq(code(signer.token("rsa", "ES256", {"exp": exp})), -32016, "the other's name")
            tap.eq(code(signer.token("rsa", "HS256", {"exp": exp})), -32016, "a third one's")
            tap.eq(code(hs256({"exp": exp}, pem)), -32016, "the public key as a secret")
    finally:
        signer.close()


# --- limits by client ------------------------------------------------------------------------


@row("U6", "strangers can be limited by their address before", clients="http ws",
     upstreams="http", fresh=True, middleware=[
         {"use": "ratelimit", "name": "door", "per_client": "20/h", "burst": 20,
          "http_status": False},
         {"use": "auth", "keys": KEYS, "http_status": False, "jwt": [JWT]}])
def strangers(env, client):
    exp = int(time.time()) + 600
    with asker(env, client.kind, bearer(hs256({"aud": "gw", "exp": exp}, "x" * 32))) as stranger:
        codes = [stranger.call("eth_call", [i]).code for i in range(30)]
    tap.eq(codes, [-32016] * 20 + [-32005] * 10, "answers")
    tap.eq(metric(env, "verified"), 20, "signatures looked at")


@row("U6", "ratelimit limits clients by their keys", clients="http ws", upstreams="http",
     fresh=True, **stage({"use": "ratelimit", "per_client": "2/h", "burst": 2, "per_key": "3/h",
                          "key_burst": 3, "keys": [{"name": "bob", "rate": "5/h", "burst": 5}]},
                         anonymous=["eth_call"]))
def limits(env, client):
    def passed(headers):
        with asker(env, client.kind, headers) as own_client:
            replies = own_client.batch([request("eth_call", [i], i) for i in range(10)])
        return sum(r.error is None for r in replies)

    tap.eq(passed(bearer(ALICE)), 3, "alice: as every key")
    tap.eq(passed([("X-Api-Key", BOB)]), 5, "bob: as configured")
    tap.eq(passed([]), 2, "anonymous clients: by address")
    tap.eq(passed([("X-Api-Key", ALICE)]), 0, "alice by another header is alice")


wire.main()
