#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The benchmarks' charts and their place in a document, from made-up figures."""
import os
import random
import shutil
import sys
import tempfile
import xml.etree.ElementTree as ET

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "bench"))

import plot
import report
import tap

SVG = "{http://www.w3.org/2000/svg}"
DOC = """First paragraph.

    make it

How it is measured. Needs nothing.
"""
ODD = {"none": [], "zero": [0], "zeros": [0, 0.0], "one": [1], "equal": [5, 5, 5],
       "huge": [1e299, 2e300], "tiny": [1e-300, 1e-12], "below": [-3, -1.5], "both": [-2, 7],
       "not a number": [float("nan"), float("inf"), 3], "missing": [None, 2]}


def texts(svg):
    """The chart's words; whether it is XML is seen by the way, and that nothing is off it."""
    root = ET.fromstring(svg)
    tap.eq(root.tag, SVG + "svg")
    width, height = (float(root.get(k)) for k in ("width", "height"))
    for element in root.iter():
        tap.among(element.tag.replace(SVG, ""), ("svg", "title", "rect", "text", "line", "circle",
                                                 "polygon", "polyline"))
        for key, most in (("x", width), ("x1", width), ("x2", width), ("cx", width),
                          ("y", height), ("y1", height), ("y2", height), ("cy", height)):
            if element.get(key) is not None:
                tap.check(0 <= float(element.get(key)) <= most, "%s=%s in %s" % (
                    key, element.get(key), element.tag))
    return [e.text or "" for e in root.iter(SVG + "text")]


def bars_all_there():
    ways = {"node, directly": [10, 12, 11], "HAProxy": [4, 5, 3], "ethrpc-gw": [9.5]}
    svg = plot.bars("Calls & <more>", "calls/s", ways)
    words = texts(svg)
    for word in list(ways) + ["Calls & <more>", "calls/s", "11.0 (10.0-12.0)", "9.50", "15"]:
        tap.among(word, words)
    tap.eq(svg.count("<rect"), 4, "a bar for each way, and the background")
    tap.eq(svg, plot.bars("Calls & <more>", "calls/s", ways), "the same figures again")


def long_labels():
    name = "ethrpc-gw with methods, cache and coalesce, upstream over IPC, and the client over HTTP"
    words = texts(plot.bars("t" * 300, "u", {name: [1], name + " too": [2]}))
    tap.contains(" ".join(words), name)
    lines = texts(plot.lines("t", "x", "u", {name + str(n): {1: [1]} for n in range(12)}))
    for n in range(12):
        tap.among(name + str(n), lines)


def lines_all_there():
    series = {"a": {1: [5, 6, 7], 10: [50], 1000: [1, 2]}, "b <&>\x07": {10: [70], 100: [90]}}
    words = texts(plot.lines("Title", "connections", "us", series))
    for word in ["a", "b <&>\ufffd", "Title", "connections", "us", "1", "10", "100", "1,000", "0"]:
        tap.among(word, words)
    words = texts(plot.lines("Title", "x", "us", {"a": {0: [5], 3: [7]}}, log_x=True))
    tap.among("2", words, "a linear axis where zero is on it")
    words = texts(plot.lines("T", "x", "us", {"a": {1: [5], 3: [70000]}}, log_y=True))
    tap.among("10,000", words, "the other axis, logarithmic")


def odd_values():
    for size in (1, len(ODD)):
        for name in ODD:
            ways = dict(list(ODD.items())[:size], **{name: ODD[name]})
            tap.among(name, texts(plot.bars("t", "u", ways)))
            for log in (False, True):
                texts(plot.lines("t", "x", "u", {name: {1: ODD[name], 2: [1]}}, log, log))
                texts(plot.lines("t", "x", "u", {name: dict.fromkeys(
                    [v for v in ODD[name] if v is not None], [1, 2])}, log, log))
    for nothing in ({}, {"a": []}, {"a": {}}):
        texts(plot.lines("t", "x", "u", {k: {} for k in nothing}))
        texts(plot.bars("", "", {k: [] for k in nothing}))


def round_ticks():
    rng = random.Random(1)
    for _ in range(500):
        high = 10 ** rng.uniform(-9, 15)
        scale = plot.Scale(sorted([high * rng.random(), high]))
        tap.check(4 <= len(scale.ticks) <= 8, "ticks to %g: %r" % (high, scale.ticks))
        tap.at_least(scale.ticks[-1], high * 0.999999, "the last tick")
        step = "%.3e" % (scale.ticks[1] - scale.ticks[0])
        tap.among(step[:5], ("1.000", "2.000", "5.000"), "the step")
        tap.eq(len({scale.label(t) for t in scale.ticks}) if high > 1e-3 else len(scale.ticks),
               len(scale.ticks), "labels that differ")


def write(path, name, figures, charts=()):
    part = report.Report(name, "Part " + name, DOC, path)
    part.raw("calls | rates", figures, "calls/s")
    for chart in charts:
        part.bars(chart, "A [chart]", "u", figures)
    part.close()
    return report.read(path)


def replaced(folder):
    report.machine = lambda: "a machine"        # the real one's load average changes meanwhile
    path = os.path.join(folder, "doc.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# Title\n\nWritten by people.\n")
    write(path, "one", {"a": [1, 2.5]}, ["one-a", "one-b"])
    text = write(path, "two", {"b": [7]}, ["two-a"])
    tap.check(text.startswith("# Title\n\nWritten by people.\n\n<!-- make bench-one -->\n"), text)
    text = write(path, "one", {"c|d": [3, None, 123456.75]}, ["one-a"])
    tap.contains(text, "| c\\|d | 3 |  | 123,457 |")
    tap.contains(text, "| b | 7 |")
    tap.lacks(text, "| a | 1 | 2.5 |")
    tap.eq(text.count("<!-- make bench-"), 2, "parts")
    tap.eq(text.count("<details>"), text.count("</details>"), "folds")
    tap.contains(text, "![A  chart ](benchmarks/one-a.svg)")
    tap.eq(sorted(os.listdir(os.path.join(folder, "benchmarks"))), ["one-a.svg", "two-a.svg"],
           "charts: those that the document shows")
    texts(report.read(os.path.join(folder, "benchmarks", "one-a.svg")))
    tap.eq(write(path, "one", {"c": [3]}, ["one-a"]), write(path, "one", {"c": [3]}, ["one-a"]))


def refused():
    part = report.Report("x", "X", DOC, os.devnull)
    part.lines("good", "t", "x", "u", {})
    for name in ("good", "../up", "", "a b"):
        try:
            part.bars(name, "t", "u", {})
        except ValueError:
            continue
        tap.fail("a chart's name was taken: %r" % name)


if __name__ == "__main__":
    tap.watchdog(120)
    tap.run("bars have all their labels", bars_all_there)
    tap.run("long labels and titles are whole", long_labels)
    tap.run("lines have all their labels", lines_all_there)
    tap.run("odd values do not break a chart", odd_values)
    tap.run("ticks are round", round_ticks)
    temporary = tempfile.mkdtemp(prefix="egw-plot-")
    try:
        tap.run("a part of a document is replaced with its charts", replaced, temporary)
    finally:
        shutil.rmtree(temporary)
    tap.run("a chart's name is one, and a name", refused)
    tap.done()
