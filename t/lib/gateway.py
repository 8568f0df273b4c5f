# SPDX-License-Identifier: MIT
"""Starts the built program under a generated configuration, finds its ports, and ends it."""
import atexit
import ctypes
import http.client
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile

import rawjson
from clients import HttpClient, IpcClient, WsClient
from tap import Failed, Skip, diag, eq, eventually, limit, skip_all, slow_build

SOURCE = os.environ.get("EGW_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("EGW_BUILD") or SOURCE
PROGRAM = os.path.join(BUILD, "ethrpc-gw")


def need_program():
    if not os.access(PROGRAM, os.X_OK):
        skip_all("%s is not built" % PROGRAM)
    if sanitized():
        slow_build(4)


def test_data(*parts):
    """A path in the folder of recorded data; None if it is not there."""
    root = os.environ.get("EGW_TEST_DATA") or os.path.join(SOURCE, "..", "shared", "data")
    path = os.path.join(root, *parts)
    return path if os.path.exists(path) else None


def has_transport(kind):
    """Whether the build has the transport; http may have been left out."""
    return os.path.exists(os.path.join(BUILD, "plugins", "transport", kind, kind + ".so"))


def has_stage(name):
    """Whether the build has the middleware."""
    return os.path.exists(os.path.join(BUILD, "plugins", "middleware", name, name + ".so"))


def library_version(name):
    """The version of a library that the program runs with, as numbers: (0, 9, 75)."""
    env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"))
    said = subprocess.run([PROGRAM, "--version"], stdout=subprocess.PIPE, text=True, check=True,
                          env=env).stdout
    found = re.search(r"^ +%s +(\d+(?:\.\d+)*)" % re.escape(name), said, re.M)
    if not found:
        raise Failed("no version of %s in: %s" % (name, said))
    return tuple(int(n) for n in found.group(1).split("."))


# --- libconfig ---------------------------------------------------------------------------

def conf_value(value):
    """A Python value in libconfig's syntax: dict a group, list or tuple a list."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, str):
        return '"%s"' % value.replace("\\", "\\\\").replace('"', '\\"')
    if isinstance(value, dict):
        return "{ " + " ".join("%s = %s;" % (k, conf_value(v))
                               for k, v in value.items()) + " }"
    return "( " + ", ".join(conf_value(v) for v in value) + " )"


def conf_text(settings):
    return "".join("%s = %s;\n" % (k, conf_value(v)) for k, v in settings.items())


_left = set()


def _clean_up():
    """Whatever way the script ends, nothing stays."""
    for gateway in list(_left):
        gateway.discard()


atexit.register(_clean_up)


def _end_with_parent():
    """In the child: die with the script, even when that is killed (prctl PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Gateway:
    """upstreams: list of dicts (name, url, options). network: further options of the network.
    limits: of both listeners. listen: replaces the listeners. top: further settings."""

    def __init__(self, upstreams, middleware=None, network=None, limits=None, listen=None,
                 top=None, level="debug", workers=2, descriptors=None, env=None, start=True,
                 admin=True, tcp=None, wrap=()):
        if any(str(u.get("url", "")).startswith("http") for u in upstreams) and \
                not has_transport("http"):
            raise Skip("this build has no http transport")
        self.folder = tempfile.mkdtemp(prefix="egw-")
        _left.add(self)
        self.ipc_path = os.path.join(self.folder, "gw.ipc")
        self.log_path = os.path.join(self.folder, "log")
        self.process = None
        self.descriptors = descriptors
        self.wrap = list(wrap)
        self.status = None
        self.ports = {}
        self.env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"),
                        **(env or {}))
        self.env.setdefault("TSAN_OPTIONS", "suppressions=" + os.path.join(
            SOURCE, "t", "tsan.supp"))
        net = {"name": "main", "timeout": "4s", "attempt_timeout": "1500ms"}
        net.update(network or {})
        net["upstreams"] = upstreams
        if middleware is not None:
            net["middleware"] = middleware
        settings = {"workers": workers, "log": {"level": level}}
        if listen is None:
            rpc = {"name": "rpc", "address": "127.0.0.1", "port": 0}
            rpc.update(tcp or {})
            listen = [rpc, {"name": "ipc", "path": self.ipc_path}]
        settings["listen"] = listen
        if limits:
            settings["limits"] = limits
        if admin:
            settings["admin"] = {"name": "admin", "address": "127.0.0.1", "port": 0}
        settings["networks"] = [net]
        settings.update(top or {})
        self.stages = [s["use"] for s in middleware or ()]
        self.config = os.path.join(self.folder, "ethrpc-gw.conf")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(conf_text(settings))
        if start:
            self.start()

    # --- life

    def start_only(self, args=None):
        """Starts the process and waits for nothing."""
        def child():
            _end_with_parent()
            if self.descriptors is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE,
                                   (self.descriptors, self.descriptors))

        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                self.wrap + [PROGRAM] + (args or ["--config", self.config]),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env,
                preexec_fn=child, close_fds=True)

    def start_command(self, args):
        """Starts it by arguments instead of the configuration; one TCP listener at port 0."""
        self.start_only(args)

        def port():
            found = re.search(r"listening name=\S+ address=\S+ port=(\d+)", self.log())
            self._still_starting()
            return found and int(found.group(1))

        self.ports["rpc"] = eventually(port, 10, "the gateway listens", 0.01)

    def start(self, ready=True):
        self.start_only()
        try:
            eventually(self._listening, 15, "the gateway listens", 0.01)
            if ready:
                self.wait_ready()
        except Failed:
            diag(self.log()[-3000:])
            self.discard()
            raise

    def _listening(self):
        self._still_starting()
        for match in re.finditer(r"listening name=(\S+) address=(\S+) port=(\d+)", self.log()):
            self.ports[match.group(1)] = int(match.group(3))
        return all(name in self.ports for name in self._tcp_names()) and \
            ("gw.ipc" not in self._config_text() or os.path.exists(self.ipc_path))

    def _still_starting(self):
        if self.process.poll() is not None:
            raise Failed("the gateway ended with status %r while starting: %s"
                         % (self.process.returncode, self.log()[-500:]))

    def _config_text(self):
        with open(self.config, encoding="utf-8") as file:
            return file.read()

    def _tcp_names(self):
        return re.findall(r'name = "([^"]+)"; address = ', self._config_text())

    def wait_ready(self, timeout=8):
        """Until /ready says so, or, without an admin listener, at once: it listens."""
        if "admin" in self.ports:
            eventually(lambda: self.admin("/ready")[0] == 200, timeout, "/ready")

    @property
    def port(self):
        return self.ports["rpc"]

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, timeout=15):
        """The exit status."""
        try:
            self.status = self.process.wait(limit(timeout))
        except subprocess.TimeoutExpired:
            diag(self.log()[-3000:])
            raise Failed("the gateway still runs after %.0f s" % timeout) from None
        return self.status

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """Ends it properly; fails when it had died, or does not exit with status 0."""
        if self.process is None:
            return
        try:
            if self.process.poll() is None:
                self.signal()
                self.wait()
            if self.process.returncode != 0:
                diag(self.log()[-4000:])
            eq(self.process.returncode, 0, "exit status of the gateway")
        finally:
            self.discard()

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def discard(self):
        """Ends it at once, whatever state it is in."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        _left.discard(self)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()
        else:
            self.discard()

    # --- clients and looks inside

    def http(self, **options):
        return HttpClient(self.port, **options)

    def ws(self, **options):
        return WsClient(self.port, **options)

    def ipc(self, **options):
        return IpcClient(self.ipc_path, **options)

    def client(self, kind, **options):
        return {"http": self.http, "ws": self.ws, "ipc": self.ipc}[kind](**options)

    def log(self):
        try:
            with open(self.log_path, "rb") as file:
                return file.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def admin(self, path, method="GET"):
        """(status, body) from the admin listener."""
        conn = http.client.HTTPConnection("127.0.0.1", self.ports["admin"], timeout=limit(5))
        try:
            conn.request(method, path)
            answer = conn.getresponse()
            return answer.status, answer.read()
        except OSError as error:
            if self.process.poll() is not None:
                raise Failed("the gateway died with status %r" %
                             self.process.returncode) from error
            return 0, b""
        finally:
            conn.close()

    def metrics(self):
        """{"name{labels}": value} of all samples."""
        status, body = self.admin("/metrics")
        eq(status, 200, "status of /metrics")
        out = {}
        for line in body.decode("utf-8").splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                out[name] = float(value)
        return out

    def metric(self, name, **labels):
        """The sum of the samples of a family that have these labels."""
        total = 0.0
        for series, value in self.metrics().items():
            family, _, rest = series.partition("{")
            if family == name and all('%s="%s"' % pair in rest for pair in labels.items()):
                total += value
        return total

    def status_page(self):
        status, body = self.admin("/status")
        eq(status, 200, "status of /status")
        return rawjson.parse(body)

    def _proc(self, name):
        with open("/proc/%d/%s" % (self.process.pid, name), encoding="utf-8") as file:
            return file.read()

    def rss(self):
        """Resident bytes."""
        return int(re.search(r"VmRSS:\s+(\d+) kB", self._proc("status")).group(1)) * 1024

    def fds(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def cpu(self):
        """Seconds of processor time used so far."""
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def settled_fds(self, want, slack=0, timeout=6):
        """Waits until the number of descriptors is back."""
        try:
            eventually(lambda: self.fds() <= want + slack, timeout, "descriptors are back")
        except Failed:
            raise Failed("descriptors: %d, want %d" % (self.fds(), want + slack)) from None


def run_program(*args, timeout=10, env=None):
    """Runs the program to its end: (exit status, output of both kinds)."""
    full = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"), **(env or {}))
    done = subprocess.run([PROGRAM] + list(args), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=limit(timeout), env=full, check=False)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def sanitized():
    """Whether the program is a sanitizer build, where memory bounds mean nothing."""
    if not hasattr(sanitized, "value"):
        with open(PROGRAM, "rb") as file:
            text = file.read()
        sanitized.value = b"__asan_init" in text or b"__tsan_init" in text
    return sanitized.value
