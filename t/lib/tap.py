# SPDX-License-Identifier: MIT
"""TAP for whole-program tests: results, checks that raise, bounded waiting.

A test is a function that returns (passed) or raises (failed). Nothing passes by accident: a
script that ends without done() has no plan, which prove counts as a failure.

Arguments of a script are patterns: only tests whose names match one of them are run.
"""
import faulthandler
import os
import re
import sys
import threading
import time
import traceback

_state = {"n": 0, "failed": 0, "done": False, "slow": float(os.environ.get("EGW_SLOW", "1"))}
_lock = threading.Lock()
_only = [re.compile(a) for a in sys.argv[1:] if not a.startswith("-")]


class Failed(AssertionError):
    """A check that did not hold."""


class Skip(Exception):
    """Raised by a test that does not apply here."""


class Todo(Exception):
    """Raised by a test for something that is not there yet, with the reason."""


def slow_build(factor):
    """Stretches all time limits; EGW_SLOW in the environment goes before."""
    _state["slow"] = float(os.environ.get("EGW_SLOW", factor))


def limit(seconds):
    """A time limit, stretched on slow builds."""
    return seconds * _state["slow"]


def wanted(name):
    return not _only or any(p.search(name) for p in _only)


def _emit(good, name, note=""):
    with _lock:
        _state["n"] += 1
        if not good and not note.startswith(" # TODO"):
            _state["failed"] += 1
        # A '#' would begin a directive.
        name = name.replace("#", "\\#")
        sys.stdout.write("%sok %d - %s%s\n" %
                         ("" if good else "not ", _state["n"], name, note))
        sys.stdout.flush()


def diag(text):
    for line in str(text).splitlines():
        sys.stdout.write("# %s\n" % line[:2000])
    sys.stdout.flush()


def run(name, fn, *args, **kwargs):
    """Runs one test; returns whether it passed (or did not apply)."""
    if not wanted(name):
        return True
    began = time.monotonic()
    try:
        fn(*args, **kwargs)
    except Skip as why:
        _emit(True, name, " # SKIP %s" % why)
        return True
    except Todo as why:
        _emit(False, name, " # TODO %s" % why)
        return True
    except BaseException as error:  # pylint: disable=broad-except
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        _emit(False, name)
        if isinstance(error, Failed):
            frames = [f for f in traceback.extract_tb(error.__traceback__)
                      if not f.filename.endswith("tap.py")]
            where = frames[-1] if frames else None
            diag("%s%s" % (error, " (%s:%d)" % (os.path.basename(where.filename), where.lineno)
                           if where else ""))
        else:
            diag(traceback.format_exc())
        return False
    _emit(True, name)
    took = time.monotonic() - began
    if took > limit(5):
        diag("took %.1f s" % took)
    return True


def skip_all(why):
    print("1..0 # SKIP %s" % why)
    _state["done"] = True
    sys.exit(0)


def done():
    """The plan, and the exit status."""
    if _only and _state["n"] == 0:
        skip_all("nothing matches")
    print("1..%d" % _state["n"])
    sys.stdout.flush()
    _state["done"] = True
    sys.exit(1 if _state["failed"] else 0)


def watchdog(seconds):
    """Ends the script with a dump of all threads when it takes too long."""
    faulthandler.dump_traceback_later(limit(seconds), exit=True)


# --- checks: each raises Failed ---------------------------------------------------------

def _show(value):
    text = repr(value)
    return text if len(text) <= 600 else "%s...%s (%d)" % (text[:400], text[-150:], len(text))


def check(condition, why="check"):
    if not condition:
        raise Failed(why)


def fail(why):
    raise Failed(why)


def eq(got, want, what="value"):
    if got != want:
        raise Failed("%s: got %s, want %s" % (what, _show(got), _show(want)))


def among(got, choices, what="value"):
    if got not in choices:
        raise Failed("%s: got %s, want one of %s" % (what, _show(got), _show(choices)))


def at_most(got, bound, what="value"):
    if not got <= bound:
        raise Failed("%s: got %s, want at most %s" % (what, got, bound))


def at_least(got, bound, what="value"):
    if not got >= bound:
        raise Failed("%s: got %s, want at least %s" % (what, got, bound))


def contains(text, part, what="text"):
    if part not in text:
        raise Failed("%s: %s is not in %s" % (what, _show(part), _show(text)))


def lacks(text, part, what="text"):
    if part in text:
        at = text.index(part)
        raise Failed("%s: %s is in it: ...%s..." % (what, _show(part),
                                                    _show(text[max(0, at - 80):at + 80])))


def eventually(condition, timeout=5.0, what="condition", interval=0.005):
    """Waits until condition() is true and returns its value; fails after `timeout` seconds."""
    end = time.monotonic() + limit(timeout)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise Failed("%s did not come true within %.1f s" % (what, limit(timeout)))
        time.sleep(interval)


def never(condition, during=0.3, what="condition", interval=0.01):
    """Watches for a while that something does not happen."""
    end = time.monotonic() + during
    while time.monotonic() < end:
        if condition():
            raise Failed("%s came true" % what)
        time.sleep(interval)


def parallel(jobs, timeout=30.0):
    """Runs the functions at the same time, each on its own thread; the results in order. The
    first exception is raised here, after all have ended."""
    results = [None] * len(jobs)
    errors = []

    def work(i):
        try:
            results[i] = jobs[i]()
        except BaseException as error:  # pylint: disable=broad-except
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(jobs))]
    for t in threads:
        t.start()
    end = time.monotonic() + limit(timeout)
    for t in threads:
        t.join(max(0.0, end - time.monotonic()))
        if t.is_alive():
            raise Failed("a job still runs after %.1f s" % limit(timeout))
    if errors:
        raise errors[0]
    return results
