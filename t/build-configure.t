#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""configure: what it says when libraries are missing, and what it leaves out."""
import os
import re
import shlex
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import buildtree
import tap

NEEDED = {"libuv": "libuv1-dev", "libmicrohttpd": "libmicrohttpd-dev",
          "libwebsockets": "libwebsockets-dev", "libconfig": "libconfig-dev",
          "libcjson": "libcjson-dev", "openssl": "libssl-dev"}


def libraries(*without):
    """A folder for pkg-config that has everything but some."""
    where = tempfile.mkdtemp(dir=FOLDER)
    tool = shlex.split(buildtree.make_value("PKG_CONFIG"))
    for path in buildtree.output(tool + ["--variable", "pc_path", "pkg-config"]).strip().split(":"):
        for name in os.listdir(path) if os.path.isdir(path) else []:
            if name.endswith(".pc") and name[:-3] not in without and \
                    not os.path.exists(os.path.join(where, name)):
                os.symlink(os.path.join(path, name), os.path.join(where, name))
    return where


def configure(where, *args):
    folder = tempfile.mkdtemp(dir=FOLDER)
    env = {"PKG_CONFIG_LIBDIR": where, "PKG_CONFIG_PATH": "",
           "CC": " ".join(buildtree.compiler())}
    return buildtree.run([os.path.join(buildtree.SOURCE, "configure")] + list(args), cwd=folder,
                         env=env)


def summary(said, what):
    found = re.search(r"^  %s\s+(.*)$" % re.escape(what), said, re.M)
    tap.check(found, "no '%s' in the summary" % what)
    return found.group(1)


def names_all():
    status, said = configure(libraries(*NEEDED))
    tap.check(status != 0, "it succeeded")
    for module, package in NEEDED.items():
        tap.check(re.search(r"^  %s >= [\d.]+ \(Debian: %s" % (module, package), said, re.M),
                  "%s is not named in: %s" % (module, said[-1500:]))


def names_one():
    status, said = configure(libraries("libmicrohttpd"))
    tap.check(status != 0, "it succeeded")
    tap.contains(said, "libmicrohttpd-dev", "messages")
    tap.lacks(said, "libuv1-dev", "messages")


def optional_missing():
    status, said = configure(libraries("libcurl", "libsystemd", "lmdb", "hiredis"))
    tap.check(status == 0, said[-1500:])
    tap.contains(said, "WARNING: libcurl", "messages")
    tap.contains(said, "WARNING: libsystemd", "messages")
    tap.contains(said, "WARNING: lmdb", "messages")
    tap.contains(said, "WARNING: hiredis", "messages")
    tap.eq(summary(said, "transport http (libcurl)"), "no")
    tap.eq(summary(said, "cache on disk (LMDB)"), "no")
    tap.eq(summary(said, "Redis (hiredis)"), "no")
    tap.eq(summary(said, "systemd notices"), "no")
    tap.contains(summary(said, "systemd unit"), "type exec")


def optional_wanted():
    status, said = configure(libraries("libcurl"), "--with-curl")
    tap.check(status != 0, "it succeeded")
    tap.contains(said, "libcurl4-openssl-dev", "messages")


def optional_refused():
    status, said = configure(libraries(), "--without-curl", "--without-systemd",
                             "--without-lmdb", "--without-hiredis",
                             "--with-systemdsystemunitdir=/somewhere/units")
    tap.check(status == 0, said[-1500:])
    tap.lacks(said, "WARNING: libcurl", "messages")
    tap.eq(summary(said, "transport http (libcurl)"), "no")
    tap.contains(summary(said, "systemd unit"), "/somewhere/units")


def bad_sanitizer():
    status, said = configure(libraries(), "--enable-sanitizers=nonsense")
    tap.check(status != 0, "it succeeded")
    tap.contains(said, "--enable-sanitizers needs a compiler", "messages")


buildtree.need_build()
if not os.path.exists(os.path.join(buildtree.SOURCE, "configure")):
    tap.skip_all("there is no configure")
if os.path.exists(os.path.join(buildtree.SOURCE, "config.status")):
    tap.skip_all("the source folder is configured itself, so no other can be")
FOLDER = tempfile.mkdtemp(prefix="egw-configure-")
try:
    tap.run("all that is missing is named", names_all)
    tap.run("only what is missing is named", names_one)
    tap.run("without what is optional", optional_missing)
    tap.run("what was asked for must be there", optional_wanted)
    tap.run("what was refused is left out", optional_refused)
    tap.run("a sanitizer that is none", bad_sanitizer)
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
tap.done()
