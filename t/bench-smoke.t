#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs of bench/ run and write their part of a document, with its charts; how fast anything is
here says nothing."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
from gateway import BUILD, SOURCE, need_program, sanitized

LEFT_OUT = 77

# name, arguments, further programs it needs, titles of its tables, data rows in all
BENCHES = [
    ("batch", ["--quick"], ["wrk"], ["Small distinct calls", "One array of 100 calls"], 8),
    ("blocks", ["--quick"], [],
     ["A stand-in with generated blocks, 2 ms for a call: 5 blocks",
      "20 ms from the node, 5 blocks one by one"], 3 + 9 + 9 + 3),
    ("hits", ["--quick"], [],
     ["A cached answer: a constant", "A cached answer: a full block", "5 clients ask"], 13),
    ("memory", ["--quick"], [],
     ["Idle", "100 idle sessions", "A reply of 20 MB to a slow client", ""], 2 + 3 + 6 + 5),
    ("micro", ["--quick"], [],
     ["The scanner: generated full blocks", "The cache, 1,000 answers", "The chain"], 2 + 7 + 9),
    ("mix", ["--quick", "--ways", "node, directly;HAProxy;ethrpc-gw, HTTP;ethrpc-gw, IPC"], [],
     ["Small distinct calls: added latency", "Calls by Zipf rank, closed loop",
      "Calls by Zipf rank, open loop"], 12),
    ("proxy", ["--quick"], ["wrk"],
     ["bench/node, a small call", "bench/node, a full block"], 2 * 3),
    ("push", ["--quick"], [], ["One head to many subscribers"], 4),
    ("scale", ["--quick"], [], [], 8),
    ("walk", ["--quick"], [], ["20 full blocks one by one over " + k for k in ("HTTP", "WS", "IPC")],
     12),
    ("workers", ["--quick"], [], ["A cached constant"], 6),
]


def python(script, *arguments):
    return subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "bench", script + ".py"),
                           *arguments], env=dict(os.environ, EGW_BUILD=BUILD),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=tap.limit(240), check=False)


def charts(folder, text):
    """Those that the document shows are there, and no others."""
    shown = re.findall(r"^!\[.+\]\((benchmarks/[\w-]+\.svg)\)$", text, re.M)
    tap.at_least(len(shown), 1, "charts")
    tap.eq(sorted(os.listdir(os.path.join(folder, "benchmarks"))),
           sorted(os.path.basename(name) for name in shown), "files of charts")
    for name in shown:
        root = ET.parse(os.path.join(folder, name)).getroot()
        tap.at_least(len(list(root.iter("{http://www.w3.org/2000/svg}text"))), 5, "words in " + name)


def runs(folder, name, arguments, needs, titles, rows):
    for program in needs:
        if not shutil.which(program):
            raise tap.Skip("no " + program)
    path = os.path.join(folder, "doc.md")
    done = python(name, *arguments, "--write", path)
    if done.returncode == LEFT_OUT:
        raise tap.Skip(done.stderr.strip().splitlines()[-1])
    tap.eq(done.returncode, 0, "exit status of " + name + ": " + done.stderr[-2000:])
    with open(path, encoding="utf-8") as file:
        text = file.read()
    tap.check(text.startswith("<!-- make bench-%s -->\n\n## " % name), text[:200])
    for title in titles:
        tap.contains(text, "### " + title)
    text_shown = re.sub(r"<details>.*?</details>", "", text, flags=re.S)
    lines = [x for x in text_shown.splitlines() if x.startswith("| ")]
    heads = sum(1 for x in text_shown.splitlines() if x.startswith("|---"))
    tap.at_least(len(lines) - heads, rows, "rows of numbers")
    tap.contains(text, "<details>", "every round's figures")
    charts(folder, text)


def in_a_folder(*bench):
    folder = tempfile.mkdtemp(prefix="egw-smoke-")
    try:
        runs(folder, *bench)
    finally:
        shutil.rmtree(folder)


def all_of_them(parts):
    for bench in BENCHES:
        tap.among(bench[0], parts, "a part that `make bench` runs")
    done = python("all", "--parts", "micro,workers", "--no-such-option")
    tap.eq(done.returncode, 1, "exit status when parts fail")
    tap.contains(done.stderr, "== 2 of 2: workers", "the next part after one that failed")
    tap.eq(done.stderr.count("FAILED (status 2)"), 2, "both are named at the end")
    tap.eq(python("all", "--parts", "nothing").returncode, 2, "exit status for an unknown part")


if __name__ == "__main__":
    need_program()
    if os.cpu_count() < 2 or not shutil.which("taskset"):
        tap.skip_all("measuring needs two processors and taskset")
    if sanitized():
        tap.skip_all("a sanitizer's build is not for measuring")
    found = python("all", "--list").stdout.split()
    tap.run("bench/all.py", all_of_them, found)
    known = {bench[0]: bench for bench in BENCHES}
    for each in found:
        tap.run("bench/%s.py" % each, in_a_folder, *known.get(each, (each, ["--quick"], [], [], 1)))
    tap.done()
