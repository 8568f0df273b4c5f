# SPDX-License-Identifier: MIT
"""What the scripts here have measured, printed or put in its place in a document.

The place is from a line `<!-- make bench-NAME -->` to the next such line or the end; a new one is
put at the end. The rest of the document stays as it is. Charts are files of their own in
benchmarks/ beside the document."""
import html
import os
import platform
import re
import shutil
import subprocess
import sys

import plot

MARK = "<!-- make bench-%s -->\n"
CHARTS = "benchmarks"
LEFT_OUT = 77
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


def built():
    """What is measured, and how it was made, as far as it can be known."""
    here = os.path.dirname(os.path.abspath(__file__))
    folder = os.environ.get("EGW_BUILD") or os.path.dirname(here)
    text = "ethrpc-gw " + version(os.path.join(folder, "ethrpc-gw"), "--version")
    try:
        done = subprocess.run(["git", "-C", here, "describe", "--always", "--dirty"],
                              capture_output=True, text=True, timeout=10, check=False)
        if done.returncode == 0:
            text += " (commit %s)" % done.stdout.strip()
    except OSError:
        pass
    make = dict(re.findall(r"^(CC|CFLAGS) = (.*)$", read(os.path.join(folder, "Makefile")), re.M))
    if make:
        compiler = make["CC"].split()[0]
        text += ", %s %s %s" % (compiler, version(compiler, "-dumpfullversion"), make["CFLAGS"])
    return text


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


def linked(text):
    """Names of the charts that a text shows."""
    return set(re.findall(r"\]\(%s/([\w-]+)\.svg\)" % CHARTS, text))


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def number(value):
    """As measured, but for digits that say nothing."""
    if value is None:
        return ""
    return "{:,.0f}".format(value) if isinstance(value, int) or 1e5 <= abs(value) < 1e15 else \
        "%.6g" % value


def need(*programs):
    """A part whose programs are missing is left out: all.py and the tests know by this status."""
    for name in programs:
        if not shutil.which(name):
            print("%s is needed: left out" % name, file=sys.stderr)
            sys.exit(LEFT_OUT)
    if os.cpu_count() < 2:
        print("two processors are needed: left out", file=sys.stderr)
        sys.exit(LEFT_OUT)


def options_of(parser, quick):
    """What was asked for. `quick`: what --quick sets, {option: value}, where nothing else is
    said."""
    parser.add_argument("--quick", action="store_true",
                        help="tiny: to see that it runs; its figures mean nothing")
    parser.add_argument("--write", metavar="DOCUMENT",
                        help="the document to put it in; default: printed")
    if "--quick" in sys.argv[1:]:
        parser.set_defaults(**quick)
        print("--quick: these figures mean nothing", file=sys.stderr)
    return parser.parse_args()


class Report:
    """One benchmark's part of the document. What is told of the machine is as it was when this is
    made: before the benchmark is a load itself."""

    def __init__(self, name, title, doc, path=None, programs=(), quick=False):
        """doc: of the script; its second paragraph, up to what it needs, says how it measures.
        programs: (name, argv that tells the version). quick: made with --quick."""
        self.name, self.path, self.parts, self.charts = name, path, [], {}
        how = " ".join(doc.split("\n\n")[2].split()).partition(" Needs ")[0]
        self.add("## %s\n\n`make bench-%s`. %s\n\nMachine: %s; %s%s.\n" % (
            title, name, how, machine(), built(),
            "".join("; %s %s" % (what, version(*argv)) for what, argv in programs
                                    if shutil.which(argv[0]))))
        if quick:
            self.add("**Made with `--quick`: these figures mean nothing.**")

    def add(self, text):
        text = text.rstrip("\n") + "\n\n"
        self.parts.append(text)
        if self.path is None:
            sys.stdout.write(text)
            sys.stdout.flush()

    def raw(self, title, ways, unit):
        """Every round's figure, {way: [value, ...]}, folded away: only who asks is shown it."""
        rounds = max((len(values) for values in ways.values()), default=0)
        lines = ["<details><summary>Every round: %s</summary>" % html.escape(title), "",
                 "| %s | %s |" % (cell(unit), " | ".join(str(n + 1) for n in range(rounds))),
                 "|---|" + "---:|" * rounds]
        for way, values in ways.items():
            shown = [number(v) for v in values] + [""] * (rounds - len(values))
            lines.append("| %s | %s |" % (cell(way), " | ".join(shown)))
        self.add("\n".join(lines + ["", "</details>"]))

    def bars(self, name, title, unit, ways):
        """A chart of {way: [value, ...]}: medians, whiskers from lowest to highest."""
        self.chart(name, title, plot.bars(title, unit, ways))

    def lines(self, name, title, x_label, unit, series, log_x=True, log_y=False):
        """A chart of {series: {x: [value, ...]}}."""
        self.chart(name, title, plot.lines(title, x_label, unit, series, log_x, log_y))

    def chart(self, name, title, svg):
        if not re.fullmatch(r"[\w-]+", name) or name in self.charts:
            raise ValueError("a chart's name: " + name)
        self.charts[name] = svg
        self.add("(Chart %s.svg, %s: drawn with --write.)" % (name, title) if self.path is None else
                 "![%s](%s/%s.svg)" % (re.sub(r"[\[\]\\]", " ", title), CHARTS, name))

    def close(self):
        if self.path is None:
            return
        mark = MARK % self.name
        old = read(self.path)
        if mark not in old:
            old = (old.rstrip("\n") + "\n\n").lstrip("\n") + mark
        before, _, behind = old.partition(mark)
        end = next_mark(behind)
        new = before + mark + "\n" + "".join(self.parts) + behind[end:]
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(new.rstrip("\n") + "\n")
        self.write_charts(linked(behind[:end]) - linked(new))

    def write_charts(self, gone):
        """The charts of this part; those of its last time that nothing links any more go."""
        folder = os.path.join(os.path.dirname(self.path), CHARTS)
        if self.charts:
            os.makedirs(folder, exist_ok=True)
        for name, svg in self.charts.items():
            with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as file:
                file.write(svg)
        for name in gone:
            try:
                os.unlink(os.path.join(folder, name + ".svg"))
            except FileNotFoundError:
                pass
