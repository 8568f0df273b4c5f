# SPDX-License-Identifier: MIT
"""What tests of the build need to know: folders, make variables, compilers, commands."""
import os
import re
import shlex
import shutil
import subprocess

from tap import Failed, skip_all

SOURCE = os.path.abspath(os.environ.get("EGW_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.path.abspath(os.environ.get("EGW_BUILD") or SOURCE)
PROGRAM = os.path.join(BUILD, "ethrpc-gw")


def need_build():
    if not os.path.exists(os.path.join(BUILD, "Makefile")) or not os.path.exists(PROGRAM):
        skip_all("%s is no finished build" % BUILD)


def need_command(name):
    if shutil.which(name) is None:
        skip_all("%s is not installed" % name)


def run(command, cwd=None, env=None, text_in=None):
    """(exit status, output with errors). A test under make must not join in its jobs."""
    clean = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    clean.update(env or {}, LC_ALL="C.UTF-8")
    done = subprocess.run(command, cwd=cwd, env=clean, input=text_in, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                          timeout=600)
    return done.returncode, done.stdout


def output(command, **kwargs):
    """The output of a command that must succeed."""
    status, text = run(command, **kwargs)
    if status != 0:
        raise Failed("%s: status %d: %s" % (" ".join(command), status, text[-1500:]))
    return text


def make_variables():
    """The plain assignments in the build's Makefile."""
    found = {}
    with open(os.path.join(BUILD, "Makefile"), encoding="utf-8") as file:
        text = file.read().replace("\\\n", " ")
    for match in re.finditer(r"^([A-Za-z_]\w*) = ?(.*)$", text, re.M):
        found[match.group(1)] = match.group(2).strip()
    return found


def make_value(name, variables=None):
    """The value of a make variable with $(...) filled in."""
    variables = variables or make_variables()
    text = variables.get(name, "")
    for _ in range(20):
        more = re.sub(r"\$[({](\w+)[)}]", lambda m: variables.get(m.group(1), ""), text)
        if more == text:
            break
        text = more
    return text


def compiler():
    return shlex.split(make_value("CC")) or ["cc"]


def library_flags():
    variables = make_variables()
    return [flag for name in sorted(variables) if name.endswith("_CFLAGS") and
            name[:-7] in ("UV", "MHD", "LWS", "CONFIG", "CJSON", "OPENSSL", "CURL", "SYSTEMD")
            for flag in shlex.split(variables[name])]


def sanitized():
    return "-fsanitize=" in make_value("HARD_CFLAGS") or "-fsanitize=" in make_value("CFLAGS")


def files_below(folder, *endings):
    """Paths relative to the source's root, sorted."""
    found = []
    for root, folders, names in os.walk(os.path.join(SOURCE, folder)):
        folders.sort()
        for name in sorted(names):
            if name.endswith(endings) and not name.startswith("."):
                found.append(os.path.relpath(os.path.join(root, name), SOURCE))
    return found


def source_text(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def plugin_objects():
    """Every shared object of the build that is installed: {name: path}."""
    found = {}
    for path in make_value("plugin_PROGRAMS").split():
        path = path.replace("$(EXEEXT)", "")
        found[os.path.basename(path)] = os.path.join(BUILD, path)
    return found
