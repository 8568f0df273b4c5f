#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs of bench/ run and print their tables; how fast anything is here says nothing."""
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
from gateway import BUILD, SOURCE, need_program, sanitized

# name, arguments, further programs it needs, titles of its tables, data rows in all
BENCHES = [
    ("batch", ["--rounds", "1", "--seconds", "1", "--service-us", "100", "--connections", "4"],
     ["wrk"], ["Small distinct calls", "One array of 100 calls"], 8),
    ("walk", ["--rounds", "1", "--blocks", "20", "--delays", "1", "--clients", "http,ws,ipc"],
     [], ["20 full blocks one by one over " + k for k in ("HTTP", "WS", "IPC")], 12),
    ("push", ["--rounds", "1", "--heads", "2", "--subscribers", "100", "--pace", "0.02"],
     [], ["One head to many subscribers"], 4),
    ("hits", ["--rounds", "1", "--seconds", "0.1", "--connections", "4", "--pollers", "5",
              "--poll-seconds", "0.6"],
     [], ["A cached answer: a constant", "A cached answer: a full block", "5 clients ask"], 13),
    ("scale", ["--rounds", "1", "--seconds", "0.1", "--connections", "4,8", "--stages", "0,2",
               "--upstreams", "1,2", "--entries", ""],
     [], ["More of everything"], 8),
]


def runs(name, arguments, needs, titles, rows):
    for program in needs:
        if not shutil.which(program):
            raise tap.Skip("no " + program)
    done = subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "bench", name + ".py"),
                           *arguments], env=dict(os.environ, EGW_BUILD=BUILD),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=tap.limit(120), check=False)
    tap.eq(done.returncode, 0, "exit status of " + name + ": " + done.stderr[-2000:])
    for title in titles:
        tap.contains(done.stdout, "## " + title)
    lines = [x for x in done.stdout.splitlines() if x.startswith("| ")]
    heads = sum(1 for x in done.stdout.splitlines() if x.startswith("|---"))
    tap.at_least(len(lines) - heads, rows, "rows of numbers")


if __name__ == "__main__":
    need_program()
    if os.cpu_count() < 2 or not shutil.which("taskset"):
        tap.skip_all("measuring needs two processors and taskset")
    if sanitized():
        tap.skip_all("a sanitizer's build is not for measuring")
    for bench in BENCHES:
        tap.run("bench/%s.py" % bench[0], runs, *bench)
    tap.done()
