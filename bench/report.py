# SPDX-License-Identifier: MIT
"""What the scripts here have measured, printed or put in its place in a document.

The place is from a line `<!-- make bench-NAME -->` to the next such line or the end; a new one is
put at the end. The rest of the document stays as it is."""
import os
import platform
import re
import shutil
import subprocess
import sys

MARK = "<!-- make bench-%s -->\n"
NGINX = ("nginx", ("nginx", "-v"))
HAPROXY = ("HAProxy", ("haproxy", "-v"))
WRK = ("wrk", ("wrk", "-v"))


def machine():
    """A line on where it was measured, and what else went on there."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    return "%s, %d processors, Linux %s, load average %.1f" % (
        model.group(1) if model else platform.machine(), os.cpu_count(), platform.release(),
        os.getloadavg()[0])


def version(*argv):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
        found = re.search(r"(\d+\.\d+[\w.]*)", done.stdout + done.stderr)
        return found.group(1) if found else "?"
    except OSError:
        return "missing"


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def next_mark(text):
    """Where the next part begins; or the end."""
    found = re.search("^" + re.escape(MARK).replace("%s", r"[\w-]+"), text, re.M)
    return found.start() if found else len(text)


def rest_of(path):
    """All parts but the first one."""
    text = read(path)
    return text[next_mark(text):]


class Report:
    """One benchmark's part of the document. What is told of the machine is as it was when this is
    made: before the benchmark is a load itself."""

    def __init__(self, name, title, doc, path=None, programs=()):
        """doc: of the script; its second paragraph, up to what it needs, says how it measures.
        programs: (name, argv that tells the version)."""
        self.name, self.path, self.parts = name, path, []
        how = " ".join(doc.split("\n\n")[2].partition(" Needs ")[0].split())
        self.add("## %s\n\n`make bench-%s`. %s\n\nMachine: %s%s.\n" % (
            title, name, how, machine(),
            "".join("; %s %s" % (what, version(*argv)) for what, argv in programs
                                    if shutil.which(argv[0]))))

    def add(self, text):
        text = text.rstrip("\n") + "\n\n"
        self.parts.append(text)
        if self.path is None:
            sys.stdout.write(text)
            sys.stdout.flush()

    def close(self):
        if self.path is None:
            return
        mark = MARK % self.name
        old = read(self.path)
        if mark not in old:
            old = old.rstrip("\n") + "\n\n" + mark
        before, _, behind = old.partition(mark)
        new = before + mark + "\n" + "".join(self.parts) + behind[next_mark(behind):]
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(new.rstrip("\n") + "\n")
