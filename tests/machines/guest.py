"""A guest from outside: over SSH, over HTTP, and at its console."""

import contextlib
import os
import pty
import re
import select
import socket
import subprocess
import time
import urllib.error
import urllib.request

from world import PATIENCE, Failed, check, eventually, servers


class Key:
    """A new key for SSH."""

    def __init__(self, directory, name="key"):
        self.path = directory / name
        if not self.path.exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(self.path)], check=True)
        self.public = self.path.with_suffix(".pub").read_text().strip()

    def options(self):
        return ["-i", str(self.path), "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no", "-o",
                "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]

    def try_ssh(self, port, command, user="demo", host="127.0.0.1", timeout=30):
        words = ["ssh", *self.options(), "-p", str(port), f"{user}@{host}", command]
        try:
            return subprocess.run(words, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"ssh did not answer within {timeout} s") from late

    def ssh(self, port, command, user="demo", **options):
        """What a command in the guest prints."""
        done = self.try_ssh(port, command, user, **options)
        check(done.returncode == 0, f"ssh {user}@:{port} {command}: {done.returncode}: {done.stderr}{done.stdout}")
        return done.stdout.strip()

    def login(self, port, user="demo", patience=PATIENCE, host="127.0.0.1"):
        """Waits until a login succeeds."""
        eventually(f"{user} can log in at {host}:{port}", lambda: self.try_ssh(port, "true", user, host).returncode == 0, patience)


def node_port(place, namespace, name, port):
    """The port of the host that leads to a port of a Service."""
    found = place.get("service", name, "-n", namespace)
    check(found, f"there is no Service {namespace}/{name}")
    return next(it["nodePort"] for it in found["spec"]["ports"] if it["port"] == port or it["name"] == port)


def http(port, path="/", host="127.0.0.1", timeout=10):
    """What a GET answers; Failed if there is no answer."""
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=timeout) as answer:
            return answer.read().decode()
    except (OSError, urllib.error.URLError, TimeoutError) as error:
        raise Failed(f"GET {host}:{port}{path}: {error}") from error


def boot_time(key, port, user="demo"):
    """When the guest's kernel started, in its own words: it changes with every boot."""
    return key.ssh(port, "cat /proc/sys/kernel/random/boot_id", user)


class Terminal:
    """A program at a terminal, such as `virtctl console`."""

    def __init__(self, place, *words):
        primary, secondary = pty.openpty()
        environment = servers.environment(place.kubeconfig, place.world.scratch, place.world.binary)
        self.process = subprocess.Popen([str(word) for word in words], stdin=secondary, stdout=secondary, stderr=secondary,
                                        env=environment, start_new_session=True)
        os.close(secondary)
        self.terminal = primary
        self.text = ""

    def type(self, text):
        os.write(self.terminal, text.encode())

    def expect(self, pattern, patience=PATIENCE, nudge=None):
        """Reads until the pattern was printed. `nudge` is typed now and then, for a prompt that was printed before."""
        deadline, next_nudge = time.monotonic() + patience, time.monotonic() + 2
        while not (found := re.search(pattern, self.text)):
            now = time.monotonic()
            check(now < deadline, f"{pattern!r} was not printed within {patience:.0f} s; there was: {self.text[-800:]!r}")
            if nudge and now > next_nudge:
                self.type(nudge)
                next_nudge = now + 3
            if select.select([self.terminal], [], [], 0.5)[0]:
                try:
                    more = os.read(self.terminal, 65536)
                except OSError as closed:
                    raise Failed(f"it ended before {pattern!r}: {self.text[-800:]!r}") from closed
                self.text += more.decode(errors="replace")
        self.text = self.text[found.end():]
        return found

    def end(self, patience=20):
        """Waits until it ends; its exit code."""
        deadline = time.monotonic() + patience
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self.terminal], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    os.read(self.terminal, 65536)
        return self.close()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        with contextlib.suppress(OSError):
            os.close(self.terminal)
        return self.process.wait()


@contextlib.contextmanager
def forwarded(place, *words, marker=r":(\d+) "):
    """A command that opens a port and keeps it open; yields the port it printed."""
    terminal = Terminal(place, *words)
    try:
        yield int(terminal.expect(marker, 60).group(1))
    finally:
        terminal.close()


def banner(port, length=12, patience=60):
    """The first bytes that a server on this host says."""
    def ask():
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                return connection.recv(length)
        except OSError as error:
            raise Failed(str(error)) from error
    return eventually(f"port {port} says something", ask, patience)
