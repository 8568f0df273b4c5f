#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""All benchmarks, one after the other.

    make bench [BENCH_FLAGS="--write docs/benchmarks.md"]      or: make bench-quick

Its parts are the scripts beside it that name a `make bench-NAME` of their own; all but its own
options go to each of them. A part that fails does not keep the others from running; a part whose
programs are missing is left out. At the end it says how it went; the exit status is 1 if any
failed.
"""
import argparse
import os
import re
import subprocess
import sys
import time

from report import LEFT_OUT

HERE = os.path.dirname(os.path.abspath(__file__))
# Where one should come before others; the rest as the alphabet has it.
FIRST = ("micro", "proxy", "mix", "hits", "blocks")


def parts():
    """Names of the scripts that have a part of the document."""
    found = []
    for name in os.listdir(HERE):
        if name.endswith(".py"):
            with open(os.path.join(HERE, name), encoding="utf-8") as file:
                if re.search(r"^    make bench-%s\b" % re.escape(name[:-3]), file.read(), re.M):
                    found.append(name[:-3])
    order = {name: place for place, name in enumerate(FIRST)}
    return sorted(found, key=lambda name: (order.get(name, len(FIRST)), name))


def minutes(seconds):
    return "%d:%02d" % (seconds // 60, seconds % 60)


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_one(name, flags):
    """(exit status, the last line that it said on stderr), which is passed on as it comes."""
    last = ""
    with subprocess.Popen([sys.executable, "-B", os.path.join(HERE, name + ".py"), *flags],
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          errors="replace") as process:
        for line in process.stderr:
            sys.stderr.write(line)
            sys.stderr.flush()
            last = line.strip() or last
    return process.returncode, last


def run(names, flags):
    """{part: (seconds, exit status, last line)}"""
    began, results = time.monotonic(), {}
    for number, name in enumerate(names, 1):
        at = time.monotonic()
        say("== %d of %d: %s (%s since the start)" % (number, len(names), name,
                                                      minutes(at - began)))
        status, last = run_one(name, flags)
        results[name] = (time.monotonic() - at, status, last)
    return results


def summary(results):
    """How each went; whether any failed."""
    say("== %s in all" % minutes(sum(took for took, _, _ in results.values())))
    for name, (took, status, last) in results.items():
        how = {0: "done", LEFT_OUT: last}.get(status, "FAILED (status %d): %s" % (status, last))
        say("   %-10s %6s  %s" % (name, minutes(took), how))
    return any(status not in (0, LEFT_OUT) for _, status, _ in results.values())


def main():
    known = parts()
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog="Other options go to each part: --quick, "
        "--rounds N, --write DOCUMENT. Parts: %s." % ", ".join(known))
    parser.add_argument("--parts", default=",".join(known), help="only these, joined by commas")
    parser.add_argument("--list", action="store_true", help="print the parts' names, and end")
    options, flags = parser.parse_known_args()
    names = options.parts.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error("no such part: " + ", ".join(unknown))
    if options.list:
        print("\n".join(names))
        return 0
    return 1 if summary(run(names, flags)) else 0


if __name__ == "__main__":
    sys.exit(main())
