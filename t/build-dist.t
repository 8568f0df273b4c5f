#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tarball has every file that git has."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import buildtree
import tap

# About git itself and the project's own machines.
NOT_IN_TARBALL = (".ci/", ".gitignore", ".gitattributes")


def in_git():
    status, text = buildtree.run(["git", "ls-files"], cwd=buildtree.SOURCE)
    if status != 0:
        tap.skip_all("git says: " + text.strip().splitlines()[0])
    return [f for f in text.splitlines() if not f.startswith(NOT_IN_TARBALL) and
            os.path.exists(os.path.join(buildtree.SOURCE, f))]


def in_tarball():
    """Files, and folders that are taken whole."""
    named = buildtree.output(["make", "-s", "--no-print-directory", "dist-files"],
                             cwd=buildtree.BUILD).split()
    found = set()
    for name in named:
        path = os.path.normpath(os.path.join(buildtree.BUILD, name))
        if not os.path.exists(path):
            path = os.path.join(buildtree.SOURCE, name)
        found.add(os.path.relpath(path, buildtree.SOURCE))
    return found


def all_there(files, names):
    missing = [f for f in files if f not in names and not any(
        f.startswith(folder + "/") for folder in names)]
    tap.eq(missing, [], "in git, but in no EXTRA_DIST, _SOURCES or _DATA")


def all_exist(names):
    made = ("configure", "Makefile.in", "aclocal.m4", "config.h.in")
    missing = [n for n in sorted(names) if n not in made and not n.startswith("build-aux/") and
               not os.path.exists(os.path.join(buildtree.SOURCE, n))]
    tap.eq(missing, [], "named for the tarball, but not there")


buildtree.need_build()
if not os.path.exists(os.path.join(buildtree.SOURCE, ".git")):
    tap.skip_all("not in a clone")
buildtree.need_command("git")
tracked = in_git()
distributed = in_tarball()
tap.run("there are files", tap.at_least, min(len(tracked), len(distributed)), 200)
tap.run("all files of git are in the tarball", all_there, tracked, distributed)
tap.run("all files for the tarball exist", all_exist, distributed)
tap.done()
