"""A Fairway of our own with real machines, as kubectl, virtctl, git and ssh see it, and the end of everything it started."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))

import servers

# A guest whose processor is emulated, on a machine that does other things, too.
PATIENCE = float(os.environ.get("FAIRWAY_TEST_PATIENCE", "180"))


class Failed(Exception):
    """What was expected did not come; the message says what, and what there was instead."""


# What no installation gives to a host. Only these may keep a scenario from being tried where everything has to be there.
CANNOT = {
    "processors": "a host with one processor has none to give away",
    "sched": "containers may keep CAP_SYS_NICE from their root, and a root without it moves nobody's threads",
    "address": "a host without a network has no address but loopback, and that is never allowed to machines",
    "namespaces": "network namespaces and devices want root with CAP_SYS_ADMIN and CAP_NET_ADMIN, which users and many containers do not have",
}


class Skipped(Exception):
    """It is not tried; the message says why. It is neither a success nor a failure, and is told in the end. Where everything has to be
    there (FAIRWAY_TEST_REQUIRE) it is a failure, unless `cannot` names what this host lacks for good."""

    def __init__(self, why, cannot=None):
        super().__init__(why)
        if cannot and cannot not in CANNOT:
            raise ValueError(f"nobody has said why a host may lack {cannot!r}")
        self.cannot = cannot


def privileged():
    """Whether this process may make network namespaces and devices, as the kernel says."""
    line = next(it for it in pathlib.Path("/proc/self/status").read_text().splitlines() if it.startswith("CapEff:"))
    net_admin, sys_admin = 12, 21
    rights = int(line.split()[1], 16)
    return all(rights >> it & 1 for it in (net_admin, sys_admin))


def eventually(what, ask, patience=PATIENCE, pause=0.2):
    """Asks until something true comes back, and returns it. What `ask` raises as Failed counts as not yet."""
    deadline = time.monotonic() + patience
    while True:
        try:
            answer = ask()
            last = answer
        except Failed as failed:
            answer, last = None, failed
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise Failed(f"not within {patience:.0f} s: {what}; last: {str(last)[:2000]}")
        time.sleep(pause)


def check(holds, what):
    if not holds:
        raise Failed(what)


class Place:
    """A workspace of the server, through a kubeconfig that leads there."""

    def __init__(self, world, kubeconfig):
        self.world = world
        self.kubeconfig = kubeconfig

    def run(self, *words, stdin=None, timeout=PATIENCE):
        """A program with this place's kubeconfig; what became of it."""
        environment = servers.environment(self.kubeconfig, self.world.scratch, self.world.binary)
        try:
            return subprocess.run([str(word) for word in words], input=stdin, capture_output=True, text=True,
                                  env=environment, timeout=timeout)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{' '.join(map(str, words))} did not end within {timeout} s") from late

    def must(self, *words, stdin=None, timeout=PATIENCE):
        """The same; what it printed, if it succeeded."""
        done = self.run(*words, stdin=stdin, timeout=timeout)
        check(done.returncode == 0, f"{' '.join(map(str, words))} ended with {done.returncode}: {done.stderr or done.stdout}")
        return done.stdout

    def kubectl(self, *words, **options):
        return self.must("kubectl", *words, **options)

    def virtctl(self, *words, **options):
        return self.must("virtctl", *words, **options)

    def fairway(self, *words, **options):
        return self.must(self.world.binary, *words, **options)

    def apply(self, *objects):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.kubectl("apply", "--server-side", "--field-manager=test", "-f", "-", stdin=text)

    def get(self, *words):
        """Objects as they are, or nothing if there is no such object."""
        done = self.run("kubectl", "get", *words, "-o", "json")
        if done.returncode != 0:
            check("NotFound" in done.stderr or "not found" in done.stderr, f"kubectl get {' '.join(words)}: {done.stderr}")
            return None
        return json.loads(done.stdout)

    def wait(self, what, condition, namespace, patience=PATIENCE):
        """kubectl's own wait, which polls nothing."""
        self.kubectl("wait", what, "-n", namespace, f"--for={condition}", f"--timeout={patience:.0f}s",
                     timeout=patience + 20)

    def namespace(self, name):
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def free(self, namespace):
        """Deletes everything in a namespace, and waits until it is gone."""
        self.kubectl("delete", "namespace", namespace, "--ignore-not-found", "--timeout=120s")


class World:
    """The server with its data directory, and whatever runs because of it."""

    def __init__(self, binary, scratch, images, options=(), address="127.0.0.1"):
        self.binary = pathlib.Path(binary).resolve()
        self.address = address
        self.scratch = scratch
        self.data = scratch / "data"
        self.log = scratch / "fairway.log"
        self.options = list(options)
        self.port = servers.free_port()
        self.process = None
        self.allowed = None
        self.places = {}
        self.data.mkdir(mode=0o700)
        if images:
            # Hard links: an image is never changed.
            shutil.copytree(images, self.data / "images", copy_function=os.link, symlinks=True)

    def allow_port(self):
        """Lets machines reach one port of this host, at the address that its packets come from, if it has one."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            # Nothing is sent.
            probe.connect(("192.0.2.254", 9))
            self.allowed = (probe.getsockname()[0], servers.free_port())
            self.options += ["--egress-allow", f"{self.allowed[0]}:{self.allowed[1]}"]

    def start(self):
        """Starts the server and waits until it is ready. Seconds that it took."""
        command = [str(self.binary), "up", "--data", str(self.data), "--listen", f"{self.address}:{self.port}", *self.options]
        began = time.monotonic()
        with open(self.log, "ab") as output:
            # A session of its own: what a terminal or a test's end sends does not reach it.
            self.process = subprocess.Popen(command, cwd=self.scratch, stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=output, start_new_session=True)
        servers.wait_until_ready(self.process, self.data / "kubeconfig", self.log)
        return time.monotonic() - began

    def stop(self):
        """Ends the server as an operator would. Its machines go on."""
        self.process.send_signal(signal.SIGTERM)
        try:
            check(self.process.wait(30) == 0, f"the server ended with {self.process.returncode}")
        except subprocess.TimeoutExpired as late:
            self.process.kill()
            self.process.wait()
            raise Failed("the server did not end within 30 s of SIGTERM") from late

    def kill(self):
        """Ends the server without a word."""
        self.process.kill()
        self.process.wait()

    def root(self):
        return self.places.setdefault("root", Place(self, self.data / "kubeconfig"))

    def workspace(self, path):
        """A workspace below root, such as `acme/dev`; made if it is not there."""
        if path in self.places:
            return self.places[path]
        own = self.scratch / f"{path.replace('/', '-')}.kubeconfig"
        shutil.copy(self.data / "kubeconfig", own)
        place = Place(self, own)
        for name in path.split("/"):
            if place.run(self.binary, "workspace", "use", name, "--kubeconfig", own).returncode != 0:
                place.fairway("workspace", "create", name, "--enter", "--kubeconfig", own)
        self.places[path] = place
        return place

    def machines(self):
        """Processes that work in the data directory, other than the server: QEMU, and whatever was started beside it."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or (self.process and int(entry.name) == self.process.pid):
                continue
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                place = os.readlink(entry / "cwd")
                of_ours = place.startswith(f"{self.data}/") or any(str(self.data).encode() in word for word in words)
                # What reads a repository is the server's own, waits for more questions, and ends with it.
                if of_ours and words[0] not in (b"", b"git"):
                    found[int(entry.name)] = b" ".join(words).decode(errors="replace")
        return found

    def qemus(self):
        """Numbers of the QEMU processes among them."""
        return [pid for pid, words in self.machines().items() if "qemu-system" in words.split(" ")[0]]

    def disk(self, place, namespace, claim):
        """The file behind a claim that is bound."""
        place.wait(f"pvc/{claim}", "jsonpath={.status.phase}=Bound", namespace)
        volume = place.get("pvc", claim, "-n", namespace)["spec"]["volumeName"]
        return next(self.data.glob(f"machines/volumes/*/{volume}/disk.qcow2"))

    def end(self):
        """Ends everything. What should have been gone is told, and ended all the same."""
        left = {}
        if self.process and self.process.poll() is None:
            self.stop()
        with contextlib.suppress(Failed):
            eventually("no machine is left", lambda: not self.machines(), patience=10)
        left = self.machines()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        check(not left, f"these were left running, and had to be killed: { {pid: words[:120] for pid, words in left.items()} }")

    def tell(self, place, namespace):
        """What somebody who looks into a failure wants to see first."""
        for words in (["get", "vm,vmi,dv,pvc,svc,endpointslices", "-n", namespace, "-o", "wide"],
                      ["get", "events", "-n", namespace, "--sort-by=.lastTimestamp"],
                      ["get", "vm,vmi,dv", "-n", namespace, "-o", "yaml"]):
            done = place.run("kubectl", *words)
            print(f"--- kubectl {' '.join(words)}\n{(done.stdout + done.stderr)[-6000:]}", file=sys.stderr)
        for console in sorted(self.data.glob("machines/run/*/console.ring")) + sorted(self.data.glob("machines/run/*/*.log")):
            print(f"--- {console}\n{console.read_bytes()[-1500:].decode(errors='replace')}", file=sys.stderr)
        print(f"--- {self.log}\n{self.log.read_bytes()[-4000:].decode(errors='replace')}", file=sys.stderr)


def images(binary, directory, names):
    """A directory with these images, built once and used by every run after."""
    place = directory / "data"
    for name in names:
        done = subprocess.run([str(binary), "image", "build", name, "--data", str(place)], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"the image {name} cannot be built: {done.stderr}")
    return place / "images"
