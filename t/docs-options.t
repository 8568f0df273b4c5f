#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each plugin's manual page has the options and metrics that the plugin has, with their defaults;
the list of exported functions is that of the public headers; all pods are valid."""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
from gateway import BUILD, PROGRAM, SOURCE, need_program


def described(plugin_so):
    """What --dump-plugin says: {option: (type, default)}, [metric]."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("EGW_")}
    out = subprocess.run([PROGRAM, "--dump-plugin", plugin_so], env=env, check=True, timeout=30,
                         stdout=subprocess.PIPE).stdout.decode()
    options, metrics = {}, []
    version = re.search(r"^version=(.*)$", out, re.M).group(1)
    for line in out.splitlines():
        if line.startswith("option="):
            m = re.match(r"option=(\S+) type=(\S+)(?: default=(.*?))?(?: min=\S+ max=\S+)?"
                         r"(?: choices=\S+)?(?: required| reload| secret)* help=", line)
            tap.check(m, "an option's line: " + line)
            default = m.group(3) and m.group(3).replace(version, "VERSION")
            options[m.group(1)] = (m.group(2), default)
        elif line.startswith("metric="):
            metrics.append(line.split()[0][len("metric="):])
    return options, metrics


def part(pod, heading):
    m = re.search(r"^=head1 %s$(.*?)(?=^=head1 |\Z)" % heading, pod, re.M | re.S)
    return m.group(1) if m else ""


def items(text):
    """=item B<name> = value -> {name: value}; several names in one item: without values."""
    found = {}
    for line in re.findall(r"^=item (B<.*)$", text, re.M):
        m = re.fullmatch(r"B<([a-z0-9_]+)>(?: = (.*))?", line)
        if m:
            found[m.group(1)] = m.group(2)
        else:
            found.update((name, None) for name in re.findall(r"B<([a-z0-9_]+)>", line))
    return found


def normal(value):
    """Defaults are compared by what they mean: "0s" is "0", ( ) is nothing."""
    if value is None or value in ("( )", "()"):
        return None
    value = value.strip('"')
    return "0" if re.fullmatch(r"0[a-zA-Z]*", value) else value


def manual(folder, name):
    path = os.path.join(SOURCE, "plugins", folder, name, "ethrpc-gw-%s.pod" % name)
    tap.check(os.path.exists(path), "there is no " + path)
    with open(path, encoding="utf-8") as file:
        pod = file.read()
    options, metrics = described(os.path.join(BUILD, "plugins", folder, name, name + ".so"))
    shown = items(part(pod, "OPTIONS"))
    tap.eq(sorted(shown), sorted(options), "options in %s" % os.path.basename(path))
    for option, (kind, default) in options.items():
        if kind in ("list", "section", "secret"):
            continue
        tap.eq(normal(shown[option]), normal(default), "default of %s" % option)
    tap.eq(sorted(items(part(pod, "METRICS"))), sorted(metrics), "metrics")
    for heading in ("NAME", "DESCRIPTION", "SEE ALSO"):
        tap.check("=head1 " + heading in pod, "no =head1 " + heading)


def functions(header):
    """Functions that a header declares."""
    with open(header, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.M | re.S)
    text = text.replace('extern "C" {', "")
    while True:  # bodies of structs and of inline functions
        shorter = re.sub(r"\{[^{}]*\}", "", text)
        if shorter == text:
            break
        text = shorter
    return {m.group(1) for statement in text.split(";") if "typedef" not in statement
            for m in [re.search(r"\b(egw_[a-z0-9_]+)\s*\(", statement)] if m}


def exported():
    declared = set()
    for header in glob.glob(os.path.join(SOURCE, "include", "ethrpc-gw", "*.h")):
        declared |= functions(header)
    with open(os.path.join(SOURCE, "src", "plugin", "ethrpc-gw.syms"), encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    tap.at_least(len(declared), 70, "functions in the headers")
    tap.eq(sorted(re.findall(r"\begw_[a-z0-9_]+", text)), sorted(declared), "exported functions")


def in_program():
    """Each of them is in the program's dynamic symbol table."""
    if shutil.which("nm") is None:
        raise tap.Skip("no nm")
    out = subprocess.run(["nm", "-D", "--defined-only", PROGRAM], check=True,
                         stdout=subprocess.PIPE).stdout.decode()
    there = {line.split()[-1] for line in out.splitlines()}
    wanted = set()
    for header in glob.glob(os.path.join(SOURCE, "include", "ethrpc-gw", "*.h")):
        wanted |= functions(header)
    tap.eq(sorted(wanted - there), [], "functions that plugins would not find")


def pods():
    if shutil.which("podchecker") is None:
        raise tap.Skip("no podchecker")
    found = glob.glob(os.path.join(SOURCE, "docs", "*.pod")) + \
        glob.glob(os.path.join(SOURCE, "plugins", "*", "*", "*.pod"))
    tap.at_least(len(found), 4, "pods")
    got = subprocess.run(["podchecker", "-warnings", *found], check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    tap.eq(got.returncode, 0, got.stdout.decode())


need_program()
tap.watchdog(120)
tap.run("the list of exported functions is that of the headers", exported)
tap.run("they are in the program", in_program)
tap.run("pods are valid", pods)
for so in sorted(glob.glob(os.path.join(BUILD, "plugins", "*", "*", "*.so"))):
    kind_of = os.path.basename(os.path.dirname(os.path.dirname(so)))
    plugin = os.path.basename(so)[:-3]
    if os.path.basename(os.path.dirname(so)) == plugin:
        tap.run("manual page of %s" % plugin, manual, kind_of, plugin)
tap.done()
