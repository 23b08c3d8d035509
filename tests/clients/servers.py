"""Servers for the tests with real clients: a Fairway of our own, the real peer, or one that runs already."""

import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_LIMIT = 120


# Ports that were given away: somebody may listen at them later than another one is asked for.
GIVEN = set()


def free_port():
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port not in GIVEN:
            GIVEN.add(port)
            return port


@contextlib.contextmanager
def fairway(binary, directory, *options):
    """`fairway up` with an empty data directory; yields its kubeconfig."""
    data = directory / "data"
    command = [str(binary.resolve()), "up", "--data", str(data), "--listen", f"127.0.0.1:{free_port()}", *options]
    with process(command, directory / "fairway.log") as running:
        yield wait_until_ready(running, data / "kubeconfig", directory / "fairway.log")


@contextlib.contextmanager
def upstream(command, directory):
    """The command that keeps etcd, kube-apiserver and its controllers, with an empty data directory."""
    data = directory / "data"
    with process([*shlex.split(command), "--data", str(data)], directory / "upstream.log") as running:
        yield wait_until_ready(running, data / "kubeconfig", directory / "upstream.log")


@contextlib.contextmanager
def running(kubeconfig):
    """A server that runs already."""
    yield kubeconfig.resolve()


def chosen(options, directory):
    """The one that the command line names."""
    if options.fairway:
        return fairway(options.fairway, directory)
    if options.upstream:
        return upstream(options.upstream, directory)
    return running(options.kubeconfig)


@contextlib.contextmanager
def process(command, log):
    """A process with its output in a file, ended with the block."""
    with open(log, "wb") as output:
        running = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def wait_until_ready(running, kubeconfig, log):
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        if running.poll() is not None:
            break
        if kubeconfig.exists():
            ask = ["kubectl", "--kubeconfig", str(kubeconfig), "get", "--raw", "/readyz"]
            if subprocess.run(ask, capture_output=True, env=environment(kubeconfig, kubeconfig.parent)).returncode == 0:
                return kubeconfig
        time.sleep(0.05)
    raise SystemExit(f"the server did not become ready:\n{log.read_text(errors='replace')[-3000:]}")


def enter_workspace(binary, kubeconfig, directory):
    """A new workspace of a Fairway; returns a kubeconfig whose current context leads there."""
    own = directory / "workspace.kubeconfig"
    shutil.copy(kubeconfig, own)
    # Below another one, so that the path has several segments.
    for name in ["clients", "suite"]:
        command = [binary.resolve(), "workspace", "create", name, "--enter", "--kubeconfig", own]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment(own, directory))
    return own


def environment(kubeconfig, scratch, binary=None):
    """What clients see: our tools first, one server, a home of their own, no terminal."""
    own = f"{binary.resolve().parent}:" if binary else ""
    return {
        "PATH": f"{own}{ROOT}/.tools/bin:{os.environ['PATH']}",
        "KUBECONFIG": str(kubeconfig),
        "HOME": str(scratch),
        "SCRATCH": str(scratch),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
    }
