#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The systemd unit, as systemd-analyze sees it, and what the program tells systemd."""
import os
import re
import shutil
import socket
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import buildtree
import gateway
import tap

WORST = 1.5  # of 10: the exposure that systemd-analyze sums up


def unit_text():
    with open(os.path.join(buildtree.BUILD, "etc", "ethrpc-gw.service"), encoding="utf-8") as file:
        text = file.read()
    # Where the program is before it is installed; manual pages are not there yet.
    text = text.replace("ExecStart=%s/" % buildtree.make_value("bindir"),
                        "ExecStart=%s/" % buildtree.BUILD)
    return re.sub(r"^Documentation=.*\n", "", text, flags=re.M)


def write(text):
    path = os.path.join(FOLDER, "ethrpc-gw.service")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def verify(text):
    """What it says; nothing when all is well."""
    status, said = buildtree.run(["systemd-analyze", "verify", "--man=no", write(text)])
    return said.strip() or ("" if status == 0 else "status %d" % status)


def valid():
    tap.eq(verify(unit_text()), "", "systemd-analyze verify")


def notices_mistakes():
    if not verify(unit_text().replace("ProtectSystem=strict", "ProtectSystem=stricter")):
        raise tap.Skip("this systemd-analyze says nothing about mistakes")


def hardened():
    said = buildtree.output(["systemd-analyze", "security", "--offline=yes", "--no-pager",
                             write(unit_text())])
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
    tap.check(found, "no exposure level in: " + said[-500:])
    tap.at_most(float(found.group(1)), WORST, "exposure level")


def notices():
    if not buildtree.make_value("SYSTEMD_LIBS"):
        raise tap.Skip("this build has no notices to systemd")
    path = os.path.join(FOLDER, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        listener.settimeout(tap.limit(10))
        with gateway.Gateway([{"name": "n", "url": "ipc:/nonexistent"}],
                             env={"NOTIFY_SOCKET": path}, start=False) as gw:
            gw.start(ready=False)
            tap.eq(listener.recv(1000), b"READY=1", "once it listens")
            gw.signal()
            tap.eq(listener.recv(1000), b"STOPPING=1", "at SIGTERM")


def type_fits():
    """A unit of type notify needs a program that notifies."""
    want = "notify" if buildtree.make_value("SYSTEMD_LIBS") else "exec"
    tap.contains(unit_text(), "\nType=%s\n" % want, "the unit")


buildtree.need_build()
FOLDER = tempfile.mkdtemp(prefix="egw-unit-")
try:
    tap.run("its type is what the program can do", type_fits)
    tap.run("the program says that it is ready, and that it ends", notices)
    if shutil.which("systemd-analyze") is None:
        tap.run("systemd-analyze", lambda: (_ for _ in ()).throw(tap.Skip("not installed")))
    else:
        tap.run("mistakes are noticed", notices_mistakes)
        tap.run("it is valid", valid)
        tap.run("it is hardened", hardened)
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
tap.done()
