"""Two hosts that share nothing but a wire: nodes in network namespaces of their own, joined to a server that runs no machines."""

import contextlib
import json
import os
import random
import subprocess
import sys
import types

from manifests import user_data
from scenario import scenario
from scenarios.joining import figures_of, node, node_of
from scenarios.life import condition, ready, status, web
from scenarios.moving import COUNT, Session
from scenarios.network import connects
from world import Skipped, World, check, eventually, privileged

LAN = "192.168.7"


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], capture_output=True, text=True)


class Wire:
    """A bridge of this host with an address, and network namespaces on it, whose only way is to that bridge."""

    def __init__(self, count):
        number = random.randrange(1, 250)
        self.bridge = f"fw{os.getpid() % 100000}b"
        self.address = f"172.30.{number}.1"
        self.spaces = [(f"fw{os.getpid()}-{it}", f"172.30.{number}.{it + 10}") for it in range(count)]

    def lay(self):
        """Lays it; why it cannot be, if so."""
        steps = [["link", "add", self.bridge, "type", "bridge"], ["addr", "add", f"{self.address}/24", "dev", self.bridge],
                 ["link", "set", self.bridge, "up"]]
        for it, (name, address) in enumerate(self.spaces):
            near = f"{self.bridge[:-1]}v{it}"
            steps += [["netns", "add", name], ["link", "add", near, "type", "veth", "peer", "name", "eth0", "netns", name],
                      ["link", "set", near, "master", self.bridge, "up"], ["-n", name, "addr", "add", f"{address}/24", "dev", "eth0"],
                      ["-n", name, "link", "set", "eth0", "up"], ["-n", name, "link", "set", "lo", "up"]]
        for words in steps:
            done = ip(*words)
            if done.returncode != 0:
                return f"ip {' '.join(words)}: {done.stderr.strip()}"
        return None

    def remove(self):
        for name, _ in self.spaces:
            ip("netns", "del", name)
        ip("link", "del", self.bridge)


@contextlib.contextmanager
def apart(bench, count=2):
    """A server without machines and nodes in namespaces of their own; a bench there. Skipped, if this host does not let us."""
    wire = Wire(count)
    scratch = bench.world.scratch / "apart"
    scratch.mkdir()
    world = World(bench.world.binary, scratch, bench.world.data / "images", ["--no-machines"], address=wire.address)
    with contextlib.ExitStack() as ends:
        ends.callback(wire.remove)
        why = wire.lay()
        if why:
            raise Skipped(f"it needs network namespaces: {why}", cannot=None if privileged() else "namespaces")
        # Logs are told by whoever waited in vain: the server's are not the bench's.
        world.start()
        ends.callback(world.end)
        there = types.SimpleNamespace(world=world, place=world.root(), namespace=bench.namespace, key=bench.key)
        there.place.namespace(there.namespace)
        there.nodes = {}
        # Cards are devices of the kernel on the first, where that can be, and sockets on the others: machines move between both.
        for (name, address), how in zip(wire.spaces, ["auto"] + ["user"] * count):
            made = ends.enter_context(node(there, name=name, address=address, options=["--machine-network", how],
                                           within=["ip", "netns", "exec", name]))
            there.nodes[made.name] = made
        try:
            yield there
        except BaseException:
            world.tell(there.place, there.namespace)
            raise


def on_lan(number):
    """A second card on a network of both machines' own."""
    config = json.dumps({"cniVersion": "0.3.1", "type": "bridge", "bridge": "br1", "vlan": 7})
    definition = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "lan"},
                  "spec": {"config": config}}
    commands = f"- ip addr add {LAN}.{number}/24 dev eth1\n- ip link set eth1 up\n"
    domain = {"cpu": {"cores": 1}, "memory": {"guest": "128Mi"}, "devices": {
        "disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "cloud-init", "disk": {"bus": "virtio"}}],
        "interfaces": [{"name": "default", "masquerade": {}}, {"name": "lan", "bridge": {}}]}}
    networks = [{"name": "default", "pod": {}}, {"name": "lan", "multus": {"networkName": "lan"}}]
    return definition, commands, {"domain": domain, "networks": networks}


@scenario()
def session_survives(bench):
    """A machine moves between two hosts in network namespaces, with its disk, and back; a session to it stays open, also its card on a bridge is reached."""
    with apart(bench) as there:
        place, namespace, key = there.place, there.namespace, there.key
        ports = {}
        for number, name in enumerate(("web", "other"), 1):
            definition, commands, template = on_lan(number)
            definition["metadata"]["namespace"] = namespace
            place.apply(definition)
            ports[name], _ = web(there, name, seed=user_data(name) + commands, instance=template)
        at = lambda name: there.nodes[node_of(there, name)]
        for name in ports:
            ready(there, name)
            key.login(ports[name], host=at(name).address)
        ask = lambda address: key.try_ssh(ports["other"], f"busybox timeout 8 busybox wget -q -O - http://{address}:8080/",
                                          host=at("other").address, timeout=40).stdout
        boot = lambda: key.ssh(ports["web"], "cat /proc/sys/kernel/random/boot_id", host=at("web").address)
        first, address = boot(), status(there, "vmi")["interfaces"][0]["ipAddress"]
        eventually("a server without machines tells figures of theirs", lambda: figures_of(there, at("web").name))
        eventually("it is reached over the bridge of both", lambda: "hello from web" in ask(f"{LAN}.1"))
        eventually("it can move", lambda: condition(status(there, "vmi"), "LiveMigratable").get("status") == "True")
        key.ssh(ports["web"], COUNT, host=at("web").address)
        session = Session(key, ports["other"], address, host=at("other").address)
        try:
            # Wherever the two begin: once they are on one host, and once on two.
            for _ in range(2):
                before = session.next()
                source = node_of(there, "web")
                (target,) = set(there.nodes) - {source}
                place.fairway("vm", "migrate", f"{namespace}/web", "--kubeconfig", place.kubeconfig)
                eventually(f"it is on {target}", lambda: node_of(there, "web") == target)
                state = eventually("it is over", lambda: (lambda it: it if it.get("completed") else None)(
                    status(there, "vmi").get("migrationState", {})))
                check(not state.get("failed"), f"it succeeded: {state}")
                after = [session.next() for _ in range(30)]
                check(after == list(range(before + 1, before + 31)), f"nothing is lost: {before}, then {after[:5]}…")
                eventually("it runs there alone", lambda: len(there.nodes[source].qemus()) + len(there.nodes[target].qemus()) == 2)
                check(boot() == first, "it has not booted")
                disks = {name: len(list(it.data.glob("machines/volumes/*/pvc-*/disk.qcow2"))) for name, it in there.nodes.items()}
                own = node_of(there, "other")
                check(disks == {name: (name == target) + (name == own) for name in disks}, f"its disk went along: {disks}")
                eventually("it is reached over the bridge of both", lambda: "hello from web" in ask(f"{LAN}.1"))
        finally:
            session.end()
        place.kubectl("delete", "vm", "web", "other", "-n", namespace, "--timeout=120s")
        eventually("nothing runs", lambda: not any(it.qemus() for it in there.nodes.values()))
        eventually("no disk is left", lambda: not any(list(it.data.glob("machines/volumes/*/pvc-*")) for it in there.nodes.values()))


@contextlib.contextmanager
def serving(space, folder, address, port):
    """A web server of a host that is a network namespace."""
    within = ["ip", "netns", "exec", space]
    words = [*within, sys.executable, "-m", "http.server", "--directory", str(folder), "--bind", address, str(port)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        read = f"import urllib.request; print(urllib.request.urlopen('http://{address}:{port}/', timeout=5).read())"
        own = lambda: subprocess.run([*within, sys.executable, "-c", read], capture_output=True, text=True).stdout
        eventually(f"the host itself reads {address}:{port}", lambda: "of the host" in own(), patience=20)
        yield
    finally:
        process.kill()
        process.wait()


@scenario()
def nothing_of_the_host(bench):
    """A guest does not reach what its host reaches at 169.254.169.254, on its loopback and at its own address."""
    with apart(bench, count=1) as there:
        (host,) = there.nodes.values()
        space = host.within[-1]
        ssh, _ = web(there)
        ready(there)
        there.key.login(ssh, host=host.address)
        folder = there.world.scratch / "served"
        folder.mkdir()
        (folder / "index.html").write_text("secrets of the host")
        done = ip("-n", space, "addr", "add", "169.254.169.254/32", "dev", "lo")
        check(done.returncode == 0, f"an address for metadata: {done.stderr}")
        own = status(there, "vmi")["interfaces"][0]["ipAddress"]
        open_to = lambda address, port: connects(there, ssh, address, port, host=host.address)
        with serving(space, folder, "169.254.169.254", 80), serving(space, folder, "127.0.0.1", 8901), serving(space, folder, host.address, 8902):
            eventually("a guest can tell what it reaches", lambda: open_to(own, 8080))
            for address, port in (("169.254.169.254", 80), ("10.88.0.1", 80), ("10.88.0.1", 8901), (host.address, 8902), (host.address, 8901)):
                check(not open_to(address, port), f"a guest reaches {address}:{port}")
        there.place.kubectl("delete", "vm", "web", "-n", there.namespace, "--timeout=120s")
        eventually("nothing runs", lambda: not host.qemus())
        eventually("no disk is left", lambda: not list(host.data.glob("machines/volumes/*/pvc-*")))
