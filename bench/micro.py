#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The parts alone: the JSON scanner, the cache's store, the chain of stages.

    make bench-micro [BENCH_FLAGS="--rounds 5 --seconds 0.5 --data ../shared/data"]

Each part in a program of its own, without sockets and without other threads. The scanner checks
whole texts, and reads replies, with each of its flavours (scalar, SSE2, AVX2): bytes for each
second of processor time by bench/micro-scan, and instructions for each byte as callgrind counts
them (the difference of two runs, one of which scans twice as often, so that the start is not in
it); on full blocks made here and, where there is a recording, on real ones. The cache:
nanoseconds from a call's params to the kept answer, and to keep an answer, by bench/micro-cache.
The chain: a call's way through more and more stages that let it pass, by bench/micro-chain; the
slope is what one stage costs. The rounds' medians with lowest and highest, processor time
throughout. Needs taskset; instructions are left out where valgrind is missing.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys

from report import Report, need, options_of

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("EGW_BUILD") or os.path.dirname(HERE)
RECORDING = os.path.join("replay", "mainnet-blocks-and-misc.io")
BLOCK = 100000                   # a reply of the recording that is longer is a full block
BLOCK_COUNTED = 700000           # those whose instructions are counted
FLAVOURS = ("scalar", "sse2", "avx2")
WORKS = ("check", "reply")
TARGETS = {"scalar": 0.5, "sse2": 2.0, "avx2": 2.0}       # GB/s
STAGE_TARGET = 100                                        # ns
VALGRIND = ("valgrind", ("valgrind", "--version"))


def run(program, *arguments, fine=(0,)):
    """What a program of bench/ prints."""
    done = subprocess.run(["taskset", "-c", "0", os.path.join(BUILD, "bench", program), *arguments],
                          capture_output=True, text=True, timeout=600, check=False)
    if done.returncode not in fine:
        raise SystemExit("bench/%s failed: %s" % (program, done.stdout + done.stderr))
    return done.stdout


def results(text):
    """RESULT lines: {words: number}"""
    return {tuple(words.split()): float(value)
            for words, value in re.findall(r"^RESULT (.*) ([\d.]+)$", text, re.M)}


def spread(values, digits=2):
    if not values:
        return "not on this processor"
    return "%.*f (%.*f-%.*f)" % (digits, statistics.median(values), digits, min(values), digits,
                                 max(values))


# --- the scanner ---------------------------------------------------------------------------------

def rates(options, files):
    """{(flavour, work): [GB/s, ...]}, and what was scanned."""
    got = {}
    for number in range(options.rounds):
        text = run("micro-scan", "--lines", "--seconds", str(options.seconds), *files)
        for key, value in results(text).items():
            got.setdefault(key, []).append(value / 1e9)
        print("  scanner: round %d of %d" % (number + 1, options.rounds), file=sys.stderr)
    return got, text.splitlines()[0]


def collected(*arguments):
    """Instructions that callgrind counts; None: there is no such flavour."""
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
         os.path.join(BUILD, "bench", "micro-scan"), *arguments],
        capture_output=True, text=True, timeout=600, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode == 3:
        return None, 0
    if done.returncode != 0 or not found:
        raise SystemExit("callgrind failed: " + done.stdout + done.stderr[-2000:])
    return int(found.group(1)), int(re.search(r"(\d+) bytes", done.stdout).group(1))


def instructions(options, files):
    """{(flavour, work): instructions a byte}"""
    if options.no_callgrind or not shutil.which("valgrind"):
        return {}
    got, passes = {}, options.passes
    for flavour in FLAVOURS:
        for work in WORKS[:1] if options.quick else WORKS:
            print("  callgrind: %s, %s" % (flavour, work), file=sys.stderr)
            one, size = collected("--once", flavour, "--work", work, "--passes", str(passes),
                                  *files)
            two, _ = collected("--once", flavour, "--work", work, "--passes", str(2 * passes),
                               *files)
            if one is not None:
                got[flavour, work] = (two - one) / (size * passes)
    return got


def scanner(report, options, title, files, counted):
    got, what = rates(options, files)
    counts = instructions(options, counted)
    lines = ["### The scanner: %s" % title, "", "%s." % what, "",
             "| flavour | work | GB/s (lowest-highest) | target | instructions for a byte |",
             "|---|---|---:|---:|---:|"]
    for flavour in FLAVOURS:
        for work in WORKS:
            count = counts.get((flavour, work))
            lines.append("| %s | %s | %s | at least %.1f | %s |" % (
                flavour, work, spread(got.get((flavour, work), [])), TARGETS[flavour],
                "" if count is None else "%.2f" % count))
    if not counts:
        lines += ["", "Instructions were not counted (valgrind)."]
    report.add("\n".join(lines))
    ways = {"%s, %s" % key: values for key, values in got.items()}
    report.raw("the scanner, " + title, ways, "GB/s")
    report.bars("scanner-" + title.split()[0], "The scanner: " + title,
                "GB for each second of processor time", ways)


def recording(options):
    places = [options.data, os.environ.get("EGW_TEST_DATA"),
              os.path.join(HERE, "..", "..", "shared", "data")]
    for place in places:
        if place and os.path.exists(os.path.join(place, RECORDING)):
            return os.path.join(place, RECORDING)
    return None


def scanners(report, options):
    scanner(report, options, "generated full blocks", [], [])
    path = recording(options)
    if path is None:
        report.add("There was no recording of real blocks (--data): left out.")
        return
    scanner(report, options, "recorded full blocks of mainnet", ["--at-least", str(BLOCK), path],
            ["--at-least", str(BLOCK_COUNTED), path])


# --- the cache -----------------------------------------------------------------------------------

def cache(report, options):
    got = {}
    for number in range(options.rounds):
        text = run("micro-cache", "--seconds", str(options.seconds), str(options.entries))
        for what, ns in re.findall(r"^(.*?) +(\d+) ns$", text, re.M):
            got.setdefault(what, []).append(int(ns))
        print("  cache: round %d of %d" % (number + 1, options.rounds), file=sys.stderr)
    lines = ["### The cache, %s answers in it" % "{:,}".format(options.entries), "",
             "| what | ns (lowest-highest) |", "|---|---:|"]
    for what, values in got.items():
        lines.append("| %s | %s |" % (what, spread(values, 0)))
    report.add("\n".join(lines))
    report.raw("the cache", got, "ns")
    report.bars("cache-alone", "The cache alone", "ns", got)


# --- the chain -----------------------------------------------------------------------------------

def slope(points):
    """Least squares: {x: y}."""
    x0, y0 = statistics.mean(points), statistics.mean(points.values())
    return (sum((x - x0) * (y - y0) for x, y in points.items()) /
            sum((x - x0) ** 2 for x in points))


def chain_rounds(options):
    """For each round {(kind, stages): ns of a call}."""
    text = run("micro-chain", "--lines", "--rounds", str(options.rounds), "--ms",
               str(max(1, int(options.seconds * 200))))
    rounds = []
    for kind, stages, ns in re.findall(r"^RESULT (\S+) (\d+) ([\d.]+)$", text, re.M):
        if not rounds or len(rounds[-1]) == 7:
            rounds.append({})
        rounds[-1][kind, int(stages)] = float(ns)
    return rounds


def chain(report, options):
    rounds = chain_rounds(options)
    lines = ["### The chain: calls through stages that let them pass", "",
             "| stages | with | ns of a call (lowest-highest) |", "|---:|---|---:|"]
    names = {"none": "", "call": "a request callback", "call+reply": "request and reply callbacks"}
    series, slopes = {}, {}
    for kind, stages in sorted(rounds[0], key=lambda key: (list(names).index(key[0]), key[1])):
        values = [r[kind, stages] for r in rounds]
        lines.append("| %d | %s | %s |" % (stages, names[kind], spread(values, 0)))
        for name in ("call", "call+reply") if kind == "none" else (kind,):
            series.setdefault(names[name], {})[stages] = values
    for name, points in series.items():
        slopes[name] = [slope({x: values[n] for x, values in points.items()})
                        for n in range(len(rounds))]
    lines += ["", "| one more stage with | ns (lowest-highest) | target |", "|---|---:|---:|"]
    for name, values in slopes.items():
        lines.append("| %s | %s | under %d |" % (name, spread(values, 1), STAGE_TARGET))
    report.add("\n".join(lines))
    report.raw("the chain", {"%s, %d stages" % key: [r[key] for r in rounds]
                             for key in rounds[0]}, "ns of a call")
    report.raw("one more stage", slopes, "ns")
    report.lines("chain-stages", "A call through stages that let it pass", "stages",
                 "ns of processor time a call", series, log_x=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--entries", type=int, default=1000000, help="answers in the cache")
    parser.add_argument("--passes", type=int, default=2, help="of callgrind's shorter run")
    parser.add_argument("--no-callgrind", action="store_true", help="count no instructions")
    parser.add_argument("--data", help="folder with %s; default: $EGW_TEST_DATA, ../shared/data"
                        % RECORDING)
    options = options_of(parser, {"rounds": 1, "seconds": 0.02, "entries": 1000, "passes": 1})
    need("taskset")
    report = Report("micro", "The parts alone", __doc__, options.write, [VALGRIND], options.quick)
    scanners(report, options)
    cache(report, options)
    chain(report, options)
    report.close()


if __name__ == "__main__":
    main()
