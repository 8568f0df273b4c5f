#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each header compiles alone and twice: the public ones as strict C99 and as C++, the others
with the flags of the build."""
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import buildtree
import tap

WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wundef", "-Werror"]
PUBLIC = ["-I" + os.path.join(buildtree.SOURCE, "include"),
          "-I" + os.path.join(buildtree.BUILD, "include")]
# Bodies that a .c file includes several times with other macros.
TEMPLATES = {"src/rpc/scan-loop.h"}


def cxx():
    """A C++ compiler of the same kind as the C compiler; None if there is none."""
    own = os.path.basename(buildtree.compiler()[0])
    for name in (["clang++", "c++", "g++"] if "clang" in own else ["c++", "g++", "clang++"]):
        if shutil.which(name):
            return [name]
    return None


def compiles(command, name, after=""):
    text = '#include <%s>\n#include <%s>\n%s' % (name, name, after)
    status, said = buildtree.run(command + ["-fsyntax-only", "-"], text_in=text)
    tap.check(status == 0, "%s: %s" % (" ".join(command), said[:1500]))


def as_c(name, standard):
    compiles(buildtree.compiler() + ["-x", "c", "-std=" + standard, "-pedantic"] + WARNINGS + PUBLIC,
             name, "int egw_nothing;\n")


def as_cxx(name, standard):
    if cxx() is None:
        raise tap.Skip("no C++ compiler")
    # Functions and structs may share a name; that hides constructors which nobody has.
    compiles(cxx() + ["-x", "c++", "-std=" + standard, "-pedantic"] + WARNINGS + ["-Wno-shadow"] +
             PUBLIC, name)


def inside(path):
    """Plugins' own headers are found from the folder that they are in."""
    root, name = path.split("/", 1)
    folders = [os.path.join(buildtree.SOURCE, "src")]
    if root != "src":
        name = os.path.basename(path)
        folders.append(os.path.join(buildtree.SOURCE, os.path.dirname(path)))
    compiles(buildtree.compiler() + ["-x", "c", "-std=gnu11", "-D_GNU_SOURCE", "-I" + buildtree.BUILD]
             + WARNINGS + PUBLIC + ["-I" + f for f in folders] + buildtree.library_flags(), name,
             "extern int egw_nothing;\n")


def works_at_all():
    """The check itself: a header that lacks an include must be refused."""
    status, _ = buildtree.run(
        buildtree.compiler() + ["-x", "c", "-std=c99", "-pedantic", "-Werror", "-fsyntax-only", "-"],
        text_in="size_t missing_include(void);\n")
    tap.check(status != 0, "what lacks an include compiles")


buildtree.need_build()
buildtree.need_command(buildtree.compiler()[0])
tap.run("a bad header would be noticed", works_at_all)
public = [os.path.relpath(p, "include") for p in buildtree.files_below("include", ".h")]
if "ethrpc-gw/version.h" not in public:
    public.append("ethrpc-gw/version.h")
tap.run("there are public headers", tap.at_least, len(public), 7)
for header in public:
    tap.run("%s as C99" % header, as_c, header, "c99")
    tap.run("%s as C++11" % header, as_cxx, header, "c++11")
headers = buildtree.files_below("src", ".h") + [
    p for p in buildtree.files_below("plugins", ".h")
    if not p.startswith("plugins/transport/http/") or buildtree.make_value("CURL_LIBS")]
tap.run("there are internal headers", tap.at_least, len(headers), 30)
for header in headers:
    if header not in TEMPLATES:
        tap.run("%s alone" % header, inside, header)
tap.run("the list of templates is true", tap.eq, [t for t in TEMPLATES if t not in headers], [])
tap.done()
