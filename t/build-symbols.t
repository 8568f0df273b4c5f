#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the program and the plugins export and import, and how they are linked."""
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import buildtree
import tap

# Functions without a bound, with hidden state, without error reports, or that run a shell.
FORBIDDEN = """alloca atof atoi atol atoll bcopy gets getwd mktemp popen sprintf stpcpy strcat strcpy
    strncat strtok system tempnam tmpnam vsprintf""".split()
# strncpy is left out: it has a bound, and libraries' inline functions use it.
LIST = "src/plugin/ethrpc-gw.syms"


def listed():
    return re.findall(r"^\s*(egw_\w+);", buildtree.source_text(LIST), re.M)


def same(got, want, what):
    tap.eq((sorted(set(got) - set(want)), sorted(set(want) - set(got))), ([], []),
           "%s: too much, and missing" % what)


def defined(path):
    """Dynamic symbols that the object defines. Not counted: copies of libc's data (they have a
    version), and marks of the linker and of libc."""
    lines = buildtree.output(["nm", "-D", "--defined-only", path]).splitlines()
    return sorted(line.split()[-1] for line in lines if "@" not in line.split()[-1] and
                  line.split()[-1] not in ("_IO_stdin_used", "__bss_start", "_edata", "_end"))


def imported(path):
    lines = buildtree.output(["nm", "-D", "--undefined-only", path]).splitlines()
    return sorted(line.split()[-1].split("@")[0] for line in lines)


def declared():
    """Functions of the public headers."""
    found = set()
    for path in buildtree.files_below("include", ".h"):
        text = re.sub(r"/\*.*?\*/", "", buildtree.source_text(path), flags=re.S)
        text = re.sub(r"^\s*#.*(?:\\\n.*)*$", "", text, flags=re.M)
        text = re.sub(r"static inline[^{]*\{.*?^\}", "", text, flags=re.S | re.M)
        text = re.sub(r"\btypedef[^;]*;", "", text)
        found.update(re.findall(r"\b(egw_\w+)\s*\((?!\*)[^;{]*\)[^;{(]*;", text))
    return sorted(found)


def list_is_sorted():
    names = listed()
    tap.check(len(names) > 50, "only %d names in %s" % (len(names), LIST))
    tap.eq(names, sorted(set(names)), LIST)


def list_is_headers():
    same(listed(), declared(), "%s beside include/ethrpc-gw" % LIST)


def program_exports():
    same(defined(buildtree.PROGRAM), listed(), "exports")


def plugin_exports(path):
    tap.eq(defined(path), ["egw_plugin_entry"], "exported")


def plugin_imports(path):
    needed = [n for n in imported(path) if n.startswith("egw_")]
    tap.check(needed, "it calls nothing of the program's")
    tap.eq([n for n in needed if n not in listed()], [], "not exported by the program")


def nothing_forbidden(path):
    names = imported(path)
    tap.check(names, "no imports")
    bad = [n for n in names if re.sub(r"^__(\w+)_chk$", r"\1", n) in FORBIDDEN]
    tap.eq(bad, [], "forbidden imports")


def linked_well(path, program):
    head = buildtree.output(["readelf", "-hW", path])
    segments = buildtree.output(["readelf", "-lW", path])
    dynamic = buildtree.output(["readelf", "-dW", path])
    tap.contains(head, "DYN", "type")
    tap.contains(segments, "GNU_RELRO", "segments")
    stack = re.search(r"GNU_STACK.*", segments)
    tap.check(stack and " RWE " not in stack.group(0), "the stack is executable")
    tap.check("RWE" not in re.sub(r"GNU_STACK.*", "", segments), "a segment is writable code")
    tap.contains(dynamic, "NOW", "bound at load time")
    for word in ("TEXTREL", "RPATH", "RUNPATH"):
        tap.lacks(dynamic, word, "dynamic section")
    if program:
        tap.contains(dynamic, "PIE", "position independent")


def stack_is_guarded(path):
    if "-fstack-protector-strong" not in buildtree.make_value("HARD_CFLAGS"):
        raise tap.Skip("the compiler has no -fstack-protector-strong")
    tap.check("__stack_chk_fail" in imported(path), "no stack protector")


buildtree.need_build()
buildtree.need_command("nm")
buildtree.need_command("readelf")
tap.run("the list of exported functions is in order", list_is_sorted)
tap.run("the list is what the headers declare", list_is_headers)
if buildtree.sanitized():
    tap.diag("a sanitizer's runtime exports and imports what it likes")
    tap.run("no symbols are compared", lambda: (_ for _ in ()).throw(tap.Skip("sanitizers")))
    tap.done()
tap.run("the program exports the list and nothing else", program_exports)
objects = buildtree.plugin_objects()
for name, where in sorted(objects.items()):
    tap.run("%s exports its entry alone" % name, plugin_exports, where)
    tap.run("%s imports what the program exports" % name, plugin_imports, where)
for name, where in [("ethrpc-gw", buildtree.PROGRAM)] + sorted(objects.items()):
    tap.run("%s imports no forbidden function" % name, nothing_forbidden, where)
    tap.run("%s is linked with all guards" % name, linked_well, where, name == "ethrpc-gw")
tap.run("the program's stack is guarded", stack_is_guarded, buildtree.PROGRAM)
tap.done()
