"""A second node: a process of its own that joined with a token, on the same host."""

import contextlib
import os
import pathlib
import shlex
import signal
import subprocess

from guest import Terminal, banner, forwarded
from manifests import machine, secret
from scenario import scenario
from scenarios.life import printable
from world import Place, check, eventually, servers

NAME = "second"


class Node:
    """A host that joined, and its process. `within`: the words by which a program is run where the host is."""

    def __init__(self, bench, name=NAME, options=(), address="127.0.0.2", within=()):
        self.world = bench.world
        self.name = name
        self.options = list(options)
        self.address = address
        self.within = list(within)
        self.data = self.world.scratch / name
        self.data.mkdir(mode=0o700, exist_ok=True)
        self.log = self.world.scratch / f"{name}.log"
        self.process = None
        self.words = []
        self.kubeconfig = self.data / "node.kubeconfig"

    def join(self):
        """Joins with a new token."""
        root = self.world.root()
        words = shlex.split(root.fairway("node", "token", "create", "--kubeconfig", root.kubeconfig))[1:]
        self.words = words
        root.must(*self.within, self.world.binary, *words, "--data", self.data, "--node-name", self.name, "--again")

    def start(self):
        command = [*self.within, str(self.world.binary), "node", "--data", str(self.data), "--node-addresses", self.address, *self.options]
        with open(self.log, "ab") as output:
            self.process = subprocess.Popen(command, cwd=self.world.scratch, stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=output, start_new_session=True)
        eventually("the node is ready", self.is_ready, patience=60)

    def is_ready(self):
        check(self.process.poll() is None, f"the node has ended: {self.log.read_text()[-2000:]}")
        found = self.world.root().get("node", self.name)
        conditions = {it["type"]: it["status"] for it in (found or {}).get("status", {}).get("conditions", [])}
        return conditions.get("Ready") == "True"

    def kill(self):
        self.process.kill()
        self.process.wait()

    def own(self):
        """The API as this node sees it."""
        return Place(self.world, self.kubeconfig)

    def qemus(self):
        """Numbers of QEMU processes that work in the node's directory."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else [b""]
                if words[0].endswith(b"qemu-system-x86_64") and os.readlink(entry / "cwd").startswith(f"{self.data}/"):
                    found.append(int(entry.name))
        return found

    def end_process(self):
        """Ends the node as an operator would. Its machines go on."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()

    def end(self):
        self.end_process()
        for pid in self.qemus():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.world.root().run("kubectl", "delete", "node", self.name, "--ignore-not-found")


@contextlib.contextmanager
def node(bench, **options):
    second = Node(bench, **options)
    try:
        second.join()
        second.start()
        yield second
    except BaseException:
        print(f"--- {second.log}\n{second.log.read_text()[-3000:] if second.log.exists() else ''}", flush=True)
        raise
    finally:
        second.end()


def there(bench, name="far", where=NAME, **options):
    """A machine that runs on the second node; its disk follows it there."""
    made = machine(name, bench.namespace, instance={"nodeSelector": {"kubernetes.io/hostname": where}}, **options)
    bench.place.apply(made)


def figures_of(bench, where):
    """Whether the server's /metrics has figures of a machine on a node, each family once."""
    lines = bench.world.root().kubectl("get", "--raw", "/metrics").splitlines()
    heads = [line for line in lines if line.startswith("# TYPE ")]
    check(len(heads) == len(set(heads)), f"a family comes twice: {sorted(it for it in heads if heads.count(it) > 1)}")
    check(f'fairway_node_figures_told{{node="{where}"}} 1' in lines, f"{where} has told nothing")
    return all(any(line.startswith(f'{family}{{node="{where}"') for line in lines)
               for family in ("kubevirt_vmi_info", "kubevirt_vmi_cpu_usage_seconds_total", "kubevirt_vmi_memory_resident_bytes"))


def node_of(bench, name="far"):
    return (bench.place.get("vmi", name, "-n", bench.namespace) or {}).get("status", {}).get("nodeName")


@scenario(workspace="acme/dev")
def joined(bench):
    """A host joins by a token that is good once, runs a machine of a workspace, and is reached through its stream; it reads nothing else."""
    place, world = bench.place, bench.world
    place.apply(secret("theirs", bench.namespace, password="x"), secret("seed", bench.namespace, userdata="#cloud-config\n{}\n"))
    with node(bench) as second:
        used = Node(bench, name="third")
        refused = world.root().run(world.binary, *second.words, "--data", used.data, "--node-name", "third")
        check(refused.returncode != 0 and "token" in refused.stderr, f"a token is good once: {refused.stdout}{refused.stderr}")

        there(bench, secret="seed")
        printable(bench, "Running", name="far")
        check(node_of(bench) == NAME, f"it runs on the second node: {node_of(bench)}")
        check(len(second.qemus()) == 1 and not world.qemus(), f"and nowhere else: {second.qemus()} {world.qemus()}")

        # What it may read, by its own credentials.
        own = second.own()
        server = place.must("kubectl", "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
        there_too = ["--server", server, "-n", bench.namespace]
        own.kubectl("get", "secret", "seed", *there_too)
        for words in (["secret", "theirs"], ["secrets"], ["vm"]):
            done = own.run("kubectl", "get", *words, *there_too)
            check("Forbidden" in done.stderr or "forbidden" in done.stderr, f"{words}: {done.stdout}{done.stderr}")
        names = own.kubectl("get", "vmi", "-o", "name", *there_too).split()
        check(names == ["virtualmachineinstance.kubevirt.io/far"], f"it sees its own: {names}")

        console = Terminal(place, "virtctl", "console", "far", "-n", bench.namespace)
        console.expect(r"login: |[#$] ", nudge="\n")
        console.close()
        # The console is there before the network of the guest is.
        place.wait("vmi/far", "condition=AgentConnected", bench.namespace)
        ports = f"{servers.free_port()}:22"
        with forwarded(place, "virtctl", "port-forward", "vmi/far", "-n", bench.namespace, ports, marker=r"127\.0\.0\.1:(\d+)") as port:
            check(banner(port, patience=180).startswith(b"SSH-"), "SSH answers through the stream")

        eventually("its figures are told by the server", lambda: figures_of(bench, NAME))

        # Killed and started again: the machine is the same, and is reached again.
        process = second.qemus()
        second.kill()
        lost = place.run("virtctl", "pause", "vmi", "far", "-n", bench.namespace)
        check(lost.returncode != 0 and NAME in lost.stderr, f"the node is named: {lost.stderr}")
        second.start()
        eventually("it is reached again", lambda: place.virtctl("pause", "vmi", "far", "-n", bench.namespace) or True, patience=60)
        place.wait("vmi/far", "condition=Paused", bench.namespace)
        place.virtctl("unpause", "vmi", "far", "-n", bench.namespace)
        check(second.qemus() == process, "the same machine goes on")
        place.kubectl("delete", "vm", "far", "-n", bench.namespace, "--timeout=120s")
        eventually("no QEMU runs there", lambda: not second.qemus())
        # Its disk goes while the node is there to remove it.
        eventually("no disk is left there", lambda: not list(second.data.glob("machines/volumes/*/pvc-*")))


@scenario()
def fenced(bench):
    """A node that is stopped in mid-air is lost: its machine is ended there by the time that others may start it."""
    with node(bench, options=["--fence-seconds", "30"]) as second:
        promise = lambda: bench.place.get("node", NAME)["metadata"]["annotations"].get("fairway.dev/fence-seconds")
        there(bench)
        printable(bench, "Running", name="far")
        check(promise() == "30", f"the Node says what it promises: {promise()}")
        # Started again with a shorter time: the machine keeps its supervisor, and the Node its promise.
        second.end_process()
        second.options = ["--fence-seconds", "25"]
        second.start()
        eventually("it is reached", lambda: bench.place.virtctl("pause", "vmi", "far", "-n", bench.namespace) or True, patience=60)
        check(promise() == "30", f"the promise holds for every machine: {promise()}")
        # It lives, and is not heard of.
        second.process.send_signal(signal.SIGSTOP)
        eventually("QEMU is ended", lambda: not second.qemus(), patience=60)
        second.process.send_signal(signal.SIGCONT)
        eventually("the node is ready again", second.is_ready, patience=60)
        eventually("it promises what it was told", lambda: promise() == "25", patience=30)
        bench.place.kubectl("delete", "vm", "far", "-n", bench.namespace, "--timeout=120s")
        eventually("no disk is left there", lambda: not list(second.data.glob("machines/volumes/*/pvc-*")))
