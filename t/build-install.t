#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make install into a folder of its own: what is where, a plugin compiled against it by the
command of the manual, and make uninstall."""
import os
import re
import shlex
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import buildtree
import tap

PLUGIN = r"""
#include <ethrpc-gw/middleware.h>

static enum egw_verdict
pass_request(const struct egw_at *at, struct egw_call *call)
{
  (void)at;
  (void)call;
  return EGW_NEXT;
}

static const struct egw_middleware pass = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE), .name = "elsewhere",
              .version = "1.0", .summary = "Lets every call pass" },
  .kinds = EGW_KIND_ALL,
  .request = pass_request,
};

EGW_REGISTER(pass)
"""


def folder(name):
    """The installed place of a folder that make knows by name."""
    return ROOT + buildtree.make_value(name, VARIABLES)


def installed():
    found = []
    for where, _, names in os.walk(ROOT):
        found += [os.path.join(where, n)[len(ROOT):] for n in names]
    return sorted(found)


def here(where, *names):
    for name in names:
        path = os.path.join(folder(where), name)
        tap.check(os.path.isfile(path), "%s is not there; there are %s" % (path, installed()))
        mode = os.stat(path).st_mode & 0o777
        want = 0o755 if where == "bindir" or name.endswith(".so") else 0o644
        tap.eq(oct(mode), oct(want), "mode of %s" % name)


def plugins():
    here("plugindir", *buildtree.plugin_objects())
    tap.eq(sorted(os.listdir(folder("plugindir"))), sorted(buildtree.plugin_objects()),
           "in the folder of plugins")
    for name in os.listdir(folder("plugindir")):
        tap.check(re.fullmatch(r"[a-z][a-z0-9-]*\.so", name) and not name.startswith("lib"), name)


def headers():
    names = [os.path.basename(p) for p in buildtree.files_below("include", ".h")]
    names += [] if "version.h" in names else ["version.h"]
    here("pkgincludedir", *names)
    tap.eq(sorted(os.listdir(folder("pkgincludedir"))), sorted(names), "installed headers")


def manuals():
    if not buildtree.make_value("POD2MAN", VARIABLES):
        raise tap.Skip("no pod2man")
    pages = [os.path.basename(p) for p in installed()
             if p.startswith(buildtree.make_value("mandir", VARIABLES) + "/")]
    want = ["%s.7" % os.path.basename(p)[:-4] for p in buildtree.files_below("plugins", ".pod")]
    want += [os.path.basename(p)[:-4] for p in buildtree.files_below("docs", ".pod")]
    tap.eq(sorted(pages), sorted(want), "manual pages")


def unit():
    here("systemdsystemunitdir", "ethrpc-gw.service")
    with open(os.path.join(folder("systemdsystemunitdir"), "ethrpc-gw.service"),
              encoding="utf-8") as file:
        text = file.read()
    tap.contains(text, "ExecStart=%s/ethrpc-gw " % buildtree.make_value("bindir", VARIABLES))
    tap.eq(re.findall(r"@[a-z_]+@", text), [], "left to be filled in")


def only_that():
    known = ("bindir", "plugindir", "pkgincludedir", "mandir", "pkgdatadir", "docdir",
             "systemdsystemunitdir", "pkgconfigdir")
    places = tuple(buildtree.make_value(k, VARIABLES) + "/" for k in known)
    tap.eq([p for p in installed() if not p.startswith(places)], [], "elsewhere")
    tap.eq([p for p in installed() if ".la" in p or p.endswith((".a", ".pod", ".in"))], [],
           "needless")


def pkg_config(*args):
    env = {"PKG_CONFIG_PATH": folder("pkgconfigdir"), "PKG_CONFIG_SYSROOT_DIR": ROOT}
    tool = shlex.split(buildtree.make_value("PKG_CONFIG", VARIABLES))
    return buildtree.output(tool + list(args) + ["ethrpc-gw"], env=env).strip()


def described():
    tap.eq(pkg_config("--modversion"), buildtree.make_value("PACKAGE_VERSION", VARIABLES))
    tap.eq(pkg_config("--variable=plugindir"), folder("plugindir"), "plugindir")
    tap.eq(pkg_config("--libs"), "", "libraries to link with")


def own_plugin():
    source, made = os.path.join(ROOT, "elsewhere.c"), os.path.join(ROOT, "elsewhere.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(PLUGIN)
    try:
        said = buildtree.output(
            buildtree.compiler() + ["-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"] +
            shlex.split(pkg_config("--cflags")) + [source, "-o", made])
        tap.eq(said, "", "the compiler")
        said = buildtree.output([os.path.join(folder("bindir"), "ethrpc-gw"), "--plugin-path",
                                 folder("plugindir"), "--dump-plugin", made])
        tap.contains(said, "elsewhere", "--dump-plugin")
    finally:
        os.unlink(source)
        if os.path.exists(made):
            os.unlink(made)


def program_finds(name):
    said = buildtree.output([os.path.join(folder("bindir"), "ethrpc-gw"), "--plugin-path",
                             folder("plugindir"), "--dump-plugin", name])
    tap.contains(said, name, "--dump-plugin %s" % name)


def gone():
    buildtree.output(["make", "-s", "uninstall", "DESTDIR=" + ROOT], cwd=buildtree.BUILD)
    tap.eq(installed(), [], "left by make uninstall")


buildtree.need_build()
buildtree.need_command("make")
VARIABLES = buildtree.make_variables()
ROOT = tempfile.mkdtemp(prefix="egw-install-")
try:
    tap.run("make install", buildtree.output, ["make", "-s", "install", "DESTDIR=" + ROOT],
            cwd=buildtree.BUILD)
    tap.run("the program", here, "bindir", "ethrpc-gw")
    tap.run("plugins", plugins)
    tap.run("headers", headers)
    tap.run("manual pages", manuals)
    tap.run("the demo chain", here, "pkgdatadir", "demo.io")
    tap.run("examples of the configuration", here, "docdir", "ethrpc-gw.conf", "minimal.conf")
    tap.run("the systemd unit", unit)
    tap.run("nothing else", only_that)
    tap.run("ethrpc-gw.pc", described)
    tap.run("a plugin from elsewhere", own_plugin)
    for plugin in sorted(buildtree.plugin_objects()):
        tap.run("the installed program loads %s" % plugin, program_finds, plugin[:-3])
    tap.run("make uninstall", gone)
finally:
    shutil.rmtree(ROOT, ignore_errors=True)
tap.done()
