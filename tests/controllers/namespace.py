"""A network namespace with nothing in it but loopback, for programs that cannot be told which address to listen on."""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys

MARK = "FAIRWAY_CONTROLLERS_NAMESPACE"
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1


def inside():
    return os.environ.get(MARK) == "1"


def command():
    # Who is not root gets the right to make one by being root of a user namespace.
    return ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]


def unavailable():
    """Why no namespace can be made, or None."""
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    tried = subprocess.run([*command(), "true"], capture_output=True, text=True)
    return None if tried.returncode == 0 else tried.stderr.strip()


def enter():
    """Runs this very command again inside; its exit code."""
    environment = {**os.environ, MARK: "1"}
    try:
        return subprocess.run([*command(), sys.executable, *sys.argv], env=environment).returncode
    except KeyboardInterrupt:
        return 130


def raise_loopback():
    """A new namespace's loopback is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


if inside():
    raise_loopback()
