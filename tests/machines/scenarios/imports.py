"""Imports that meet bad luck: a kill in the middle, and a disk that is full."""

import contextlib
import http.server
import os
import pathlib
import shutil
import subprocess
import threading
import time

from manifests import data_volume
from scenario import scenario
from world import World, check, eventually, servers

SIZE = 160 << 20


class Source:
    """A server with one file that does not pack: it sends so much, and waits until it may go on."""

    def __init__(self, directory):
        self.file = directory / "disk.raw"
        with open(self.file, "wb") as output:
            for _ in range(SIZE >> 20):
                output.write(os.urandom(1 << 20))
        self.may_go_on = threading.Event()
        source = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802: the name is the library's
                begin, *_ = (self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")
                begin = int(begin or 0)
                self.send_response(206 if "Range" in self.headers else 200)
                if "Range" in self.headers:
                    self.send_header("Content-Range", f"bytes {begin}-{SIZE - 1}/{SIZE}")
                self.send_header("Content-Length", str(SIZE - begin))
                self.send_header("Accept-Ranges", "bytes")
                self.send_header("ETag", '"one"')
                self.end_headers()
                with open(source.file, "rb") as content, contextlib.suppress(OSError):
                    content.seek(begin)
                    while piece := content.read(1 << 20):
                        if content.tell() > SIZE // 4:
                            source.may_go_on.wait(60)
                        self.wfile.write(piece)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/disk.raw"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def volume(self, name, namespace):
        return data_volume(name, namespace, {"http": {"url": self.url}}, size=f"{SIZE >> 20}Mi")

    def close(self):
        self.may_go_on.set()
        self.server.shutdown()
        self.file.unlink()


def status(place, namespace, name):
    return (place.get("dv", name, "-n", namespace) or {}).get("status", {})


@scenario()
def killed_in_the_middle(bench):
    """Fairway is killed in the middle of an import: nobody sees half a disk, and the import goes on."""
    world, place, namespace = bench.world, bench.place, bench.namespace
    source = Source(world.scratch)
    disks = lambda: list((world.data / "machines" / "volumes").rglob("disk.qcow2"))
    try:
        place.apply(source.volume("imported", namespace))
        eventually("it is under way", lambda: status(place, namespace, "imported").get("phase") == "ImportInProgress")
        time.sleep(1)
        world.kill()
        check(not disks(), f"there is no disk yet: {disks()}")
        source.may_go_on.set()
        world.start()
        place.wait("dv/imported", "jsonpath={.status.phase}=Succeeded", namespace)
        subprocess.run(["qemu-img", "compare", "-q", str(source.file), str(world.disk(place, namespace, "imported"))], check=True)
    finally:
        source.close()


class Cramped(World):
    """A Fairway whose data is on a small file system of its own."""

    def start(self):
        mount = 'mount -t tmpfs -o size=580m tmpfs "$0" && exec "$@"'
        command = ["unshare", "-m", "sh", "-c", mount, str(self.data), str(self.binary), "up", "--data", str(self.data), "--listen",
                   f"127.0.0.1:{self.port}", *self.options]
        with open(self.log, "ab") as output:
            self.process = subprocess.Popen(command, cwd=self.scratch, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                            start_new_session=True)
        # Others do not see the file system; through the process they do.
        self.inside = pathlib.Path(f"/proc/{self.process.pid}/root{self.data}")
        eventually("the server writes its kubeconfig", lambda: self.inside.exists() and (self.inside / "kubeconfig").exists())
        own = self.scratch / "cramped.kubeconfig"
        shutil.copy(self.inside / "kubeconfig", own)
        servers.wait_until_ready(self.process, own, self.log)
        return own

    def grow(self):
        subprocess.run(["nsenter", "-m", "-t", str(self.process.pid), "mount", "-o", "remount,size=2g", str(self.data)], check=True)


@scenario()
def full_disk(bench):
    """The host's disk is full in the middle of an import: it says so and leaves no half image; with room it goes on by itself."""
    scratch = bench.world.scratch / "cramped"
    scratch.mkdir()
    world = Cramped(bench.world.binary, scratch, None, ["--image-allowed-hosts", "loopback", "--node-name", "cramped"])
    source = Source(scratch)
    source.may_go_on.set()
    try:
        place = type(bench.place)(world, world.start())
        place.namespace("full")
        place.apply(source.volume("imported", "full"))
        told = lambda: next((it["message"] for it in status(place, "full", "imported").get("conditions", [])
                             if it["type"] == "Running"), "")
        eventually("it says what is wrong", lambda: "room" in told() or "space" in told())
        events = [it["message"] for it in place.get("events", "-n", "full")["items"] if it["involvedObject"]["name"] == "imported"]
        check(any("room" in it or "space" in it for it in events), f"an event says it, too: {events}")
        left = list((world.inside / "machines").rglob("disk.qcow2")) + list((world.inside / "images" / "blobs").glob("*"))
        check(not left, f"half of it is there: {left}")
        world.grow()
        place.wait("dv/imported", "jsonpath={.status.phase}=Succeeded", "full")
        volume = place.get("pvc", "imported", "-n", "full")["spec"]["volumeName"]
        disk = next((world.inside / "machines" / "volumes").glob(f"*/{volume}/disk.qcow2"))
        subprocess.run(["qemu-img", "compare", "-q", str(source.file), str(disk)], check=True)
    finally:
        source.close()
        world.end()
