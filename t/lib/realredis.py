# SPDX-License-Identifier: MIT
"""A real Redis or Valkey server on a unix socket of its own, without a disk."""
import os
import shutil
import signal
import subprocess
import tempfile

import tap
from clients import dial_unix


def _program():
    """What to run, and its name: Debian's redis-tools has the server under another name."""
    for name in ("redis-server", "valkey-server"):
        if shutil.which(name):
            return shutil.which(name), name
    if shutil.which("redis-check-rdb"):
        return shutil.which("redis-check-rdb"), "redis-server"
    raise tap.Skip("there is no redis-server")


class Redis:
    def __init__(self, *options, password=None):
        self.program, name = _program()
        self.folder = tempfile.mkdtemp(prefix="egw-redis-")
        self.path = os.path.join(self.folder, "sock")
        self.password = password
        self.command = [name, "--port", "0", "--unixsocket", self.path, "--save", "",
                        "--appendonly", "no", "--dir", self.folder] + list(options)
        if password is not None:
            self.command += ["--requirepass", password]
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            self.command, executable=self.program, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL)
        tap.eventually(lambda: self.ask("PING") == b"+PONG\r\n", 10, "redis answers", 0.02)

    def ask(self, *words):
        """The bytes of a short reply; None without a server."""
        raw = b"".join(b"$%d\r\n%s\r\n" % (len(w), w)
                       for w in (w if isinstance(w, bytes) else w.encode() for w in words))
        try:
            sock = dial_unix(self.path)
        except OSError:
            return None
        with sock:
            if self.password is not None:
                sock.sendall(b"AUTH %s\r\n" % self.password.encode())
                sock.recv(100)
            sock.sendall(b"*%d\r\n%s" % (len(words), raw))
            return sock.recv(1 << 20)

    def keys(self, pattern="*"):
        return self.ask("KEYS", pattern).split(b"\r\n")[2::2]

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process.poll() is None:
            self.thaw()
            self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
