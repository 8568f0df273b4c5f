#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command line: configurations checked and shown, plugins described, exit statuses."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
from gateway import BUILD, PROGRAM, SOURCE, has_transport, need_program

need_program()
tap.watchdog(120)
folder = tempfile.mkdtemp(prefix="egw-cli-")


class Run:
    """The program, run to its end."""

    def __init__(self, *arguments, env=None):
        base = {k: v for k, v in os.environ.items() if not k.startswith("EGW_")}
        base["EGW_PLUGIN_PATH"] = os.path.join(BUILD, "plugins")
        done = subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, timeout=30,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              env={**base, **(env or {})})
        self.status = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()

    def ends(self, status):
        tap.eq(self.status, status, "exit status (stderr: %s)" % self.err)
        return self


def conf(text, name="x.conf", mode=0o600):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def check(text, **options):
    return Run("-c", conf(text, **options), "--check-config")


UP = 'upstreams = ( { url = "ipc:///nowhere.ipc"; } );\n'


# --- words ---------------------------------------------------------------------------------

def help_text():
    for flag in ("--help", "-h"):
        got = Run(flag).ends(0)
        for word in ("Usage:", "--upstream", "--listen", "--config", "--check-config",
                     "--dump-config", "--dump-plugin", "--version"):
            tap.contains(got.out, word, flag)
        tap.eq(got.err, "", "stderr")


def version():
    for flag in ("--version", "-V"):
        got = Run(flag).ends(0)
        tap.check(got.out.startswith("ethrpc-gw "), got.out)
        for word in ("libuv", "libmicrohttpd", "libwebsockets"):
            tap.contains(got.out, word, flag)


def wrong_words():
    for words in (["--nonsense"], ["word"], ["-c"], ["--upstream"],
                  ["-c", conf(UP), "--upstream", "http://h"], ["-c", conf(UP), "-l", "1"]):
        got = Run(*words).ends(2)
        tap.eq(got.out, "", "stdout of %s" % words)
        tap.contains(got.err, "--help", "stderr of %s" % words)
    for words in (["--workers", "0"], ["--workers", "x"], ["--log-level", "loud"]):
        got = Run("-u", "ipc:///nowhere.ipc", *words, "--check-config").ends(1)
        tap.contains(got.err, words[1] if words[0] == "--log-level" else "--workers", "stderr")


# --- --check-config ------------------------------------------------------------------------

def check_good():
    got = check(UP).ends(0)
    tap.contains(got.out, "valid", "stdout")
    tap.eq(got.err, "", "stderr")
    Run("-u", "ipc:///nowhere.ipc", "-l", "0", "-a", "0", "--check-config").ends(0)


def check_all_errors():
    text = ('wrokers = 2;\n'                                    # 1
            'memory = 5;\n'                                     # 2
            'listen = ( { port = 70000; } );\n'                 # 3
            'networks = ( { name = "m";\n'                      # 4
            '  upstreams = ( { url = "http://h:0"; },\n'        # 5
            '    { url = "ipc:///x"; conections = 3; } );\n'    # 6
            '  middleware = ( { use = "methods"; alow = ( ); },\n'  # 7
            '    { use = "log"; slow = 7; },\n'                 # 8
            '    { use = "no-such-plugin"; what = 1; } );\n'    # 9
            '} );\n')
    path = conf(text)
    got = Run("-c", path, "--check-config").ends(1)
    tap.eq(got.out, "", "stdout")
    lines = got.err.splitlines()
    want = [(1, 'wrokers: unknown option; did you mean "workers"?'),
            (2, "memory: must be a size in quotes"),
            (3, "listen[0].port: must be from 0 to 65535"),
            (5, "networks[0].upstreams[0].url: bad URL: the port"),
            (6, "networks[0].upstreams[1].conections: unknown option"),
            (7, 'networks[0].middleware[0].alow: unknown option; did you mean "allow"?'),
            (8, "networks[0].middleware[1].slow: must be a time in quotes"),
            (9, 'networks[0].middleware[2].use: there is no plugin "no-such-plugin" in ')]
    for got_line, (line, message) in zip(lines, want):
        tap.check(got_line.startswith("%s:%d: %s" % (path, line, message)),
                  "%r, wanted %d: %s" % (got_line, line, message))
    tap.eq(len(lines), len(want), "number of messages in\n%s" % got.err)


def check_files():
    tap.contains(Run("-c", os.path.join(folder, "none"), "--check-config").ends(1).err,
                 "No such file", "a file that is not there")
    tap.contains(check("upstreams = (").ends(1).err, "syntax error", "a broken file")
    tap.contains(check(UP + '@include "x"\n').ends(1).err, ":2: @include", "@include")
    tap.contains(check("").ends(1).err, "no upstream is given", "an empty file")


def check_plugin_path():
    text = UP + 'plugin_path = "/nonexistent";\n'
    tap.contains(check(text).ends(1).err, "/nonexistent", "a path without plugins")
    path = os.path.join(BUILD, "plugins")
    Run("--plugin-path", path, "-c", conf(text), "--check-config").ends(0)
    Run("-c", conf(UP), "--check-config", env={"EGW_PLUGIN_PATH": "/nonexistent"}).ends(1)


def warnings():
    text = 'upstreams = ( { url = "ws://h/v2/abcdefghijklmnopqrstuv"; } );\n'
    got = check(text, mode=0o644).ends(0)
    tap.contains(got.err, ":1: warning: upstreams[0].url: everybody", "a readable secret")
    tap.lacks(got.err + got.out, "abcdefghijkl", "the secret")
    tap.eq(check(text, mode=0o640).ends(0).err, "", "a secret that others can't read")
    got = check(UP + 'middleware = ( { use = "log"; } );\n').ends(0)
    tap.contains(got.err, ':2: warning: middleware: has no stage "methods"', "no gate keeper")
    rules = UP + 'listen = ( { name = "a"; } );\nmiddleware = ( { use = "methods";\n' \
        'listeners = ( { listener = "%s"; } ); } );\n'
    got = check(rules % "b").ends(0)
    tap.contains(got.err, 'listener: there is no listener "b"', "rules for nobody")
    tap.contains(got.err, ":4: warning: ", "their line")
    tap.eq(check(rules % "a").ends(0).err, "", "rules for a listener")


# --- --dump-config -------------------------------------------------------------------------

def dump_round_trip():
    text = ('workers = 2;\n'
            'listen = ( { port = 0; hosts = ( "a.example" ); }, { path = "%s/gw.ipc"; } );\n'
            'admin = { port = 0; };\n'
            'networks = ( { name = "m"; chain_id = 4294967296L;\n'
            '  upstreams = ( { url = "wss://me:pAssw0rd@h/v2/abcdefghijklmnop"; },\n'
            '                { url = "ipc:///srv/node.ipc"; tier = 1; } );\n'
            '  middleware = ( { use = "log"; only = "errors"; slow = "1s"; },\n'
            '    { use = "methods"; allow = ( "debug_*" );\n'
            '      listeners = ( { listener = "x"; deny = ( "*" ); } ); } ); } );\n' % folder)
    first = Run("-c", conf(text), "--dump-config").ends(0)
    for secret in ("pAssw0rd", "abcdefgh", "me:", "/srv/"):
        tap.lacks(first.out, secret, "a dump")
    for part in ("workers = 2;", 'url = "wss://***";', 'url = "ipc:///***";', 'name = "h:443";',
                 "chain_id = 4294967296L;", 'only = "errors";', 'slow = "1s";',
                 'allow = ( "debug_*" );', 'deny = (', 'others = "safe";', 'drain_timeout = "10s";'):
        tap.contains(first.out, part, "the dump")
    second = Run("-c", conf(first.out, "y.conf"), "--dump-config").ends(0)
    tap.eq(second.out, first.out, "a dump of a dump")
    Run("-c", conf(first.out, "y.conf"), "--check-config").ends(0)


def dump_command_line():
    got = Run("-u", "ipc:///a.ipc", "-u", "ipc:///b/a.ipc", "-l", "[::1]:7", "--dump-config").ends(0)
    for part in ('name = "a.ipc";', 'name = "a.ipc-2";', 'address = "::1";', "port = 7;",
                 'use = "methods";', "# admin is not set"):
        tap.contains(got.out, part, "the dump")
    tap.lacks(got.out, "/b/", "the dump")
    tap.eq(Run("-c", conf(got.out), "--dump-config").ends(0).out, got.out, "a dump of a dump")


def dump_bad():
    got = Run("-c", conf(UP + "workers = 999;\n"), "--dump-config").ends(1)
    tap.eq(got.out, "", "stdout")
    tap.contains(got.err, ":2: workers: must be from 0 to 256", "stderr")


# --- --dump-plugin -------------------------------------------------------------------------

def dump_plugin(name, kind):
    got = Run("--dump-plugin", name).ends(0)
    lines = got.out.splitlines()
    tap.check("name=%s" % name in lines and "type=%s" % kind in lines, got.out)
    for key in ("version", "summary", "path", "abi", "struct_size"):
        tap.check(any(line.startswith(key + "=") for line in lines), "no %s in\n%s" % (key, got.out))
    path = os.path.join(BUILD, "plugins", kind, name, name + ".so")
    tap.eq(Run("--dump-plugin", path).ends(0).out, got.out, "by its file")


def dump_plugin_bad():
    got = Run("--dump-plugin", "no-such-plugin").ends(1)
    tap.eq(got.out, "", "stdout")
    tap.contains(got.err, "no-such-plugin", "stderr")
    path = conf("hello\n", "text.so", mode=0o644)
    tap.contains(Run("--dump-plugin", path).ends(1).err, "text.so", "a file that is no plugin")
    if os.path.exists("/lib/x86_64-linux-gnu/libz.so.1"):
        tap.contains(Run("--dump-plugin", "/lib/x86_64-linux-gnu/libz.so.1").ends(1).err,
                     "no ethrpc-gw plugin", "another library")


def examples():
    for name in ("ethrpc-gw.conf", "minimal.conf"):
        if has_transport("http"):
            got = Run("-c", os.path.join(SOURCE, "etc", name), "--check-config").ends(0)
            tap.eq(got.err, "", "stderr for etc/%s" % name)


try:
    tap.run("--help", help_text)
    tap.run("--version", version)
    tap.run("wrong command lines: status 2, and 1 for wrong values", wrong_words)
    tap.run("--check-config: a good one", check_good)
    tap.run("--check-config: all errors at once, in order, those of plugins too",
            check_all_errors)
    tap.run("--check-config: files that can't be read", check_files)
    tap.run("--check-config: where plugins are looked for", check_plugin_path)
    tap.run("--check-config: warnings are shown", warnings)
    tap.run("--dump-config: comes out the same again, without secrets", dump_round_trip)
    tap.run("--dump-config: of a command line", dump_command_line)
    tap.run("--dump-config: of a bad configuration", dump_bad)
    for plugin, sort in (("methods", "middleware"), ("log", "middleware"), ("ipc", "transport"),
                         ("replay", "transport"), ("ws", "transport"), ("http", "transport")):
        if sort == "middleware" or has_transport(plugin):
            tap.run("--dump-plugin %s" % plugin, dump_plugin, plugin, sort)
    tap.run("--dump-plugin: what is none", dump_plugin_bad)
    tap.run("the examples in etc/", examples)
finally:
    shutil.rmtree(folder, ignore_errors=True)
tap.done()
