"""Cards that are devices of the kernel: what machines see is the same, and busy connections between them do not pass through Fairway."""

import contextlib
import re
import subprocess
import types

from scenario import scenario
from scenarios.life import condition, ready, status, web
from scenarios.moving import IMAGE
from world import Skipped, World, check, eventually, privileged

# Zeros for whoever connects, for as long as anybody listens.
POUR = "setsid sh -c 'while true; do nc -l -p 7000 < /dev/zero; done' > /dev/null 2>&1 < /dev/null &"


@contextlib.contextmanager
def kernel(bench):
    """A server whose machines have devices; a bench there. Skipped, if this host has none."""
    scratch = bench.world.scratch / "taps"
    scratch.mkdir()
    world = World(bench.world.binary, scratch, bench.world.data / "images", ["--machine-network", "tap"])
    world.start()
    try:
        there = types.SimpleNamespace(world=world, place=world.root(), namespace=bench.namespace, key=bench.key)
        told = eventually("the Node says what carries frames", lambda: next(
            (condition(it.get("status", {}), "fairway.dev/KernelDataPath") for it in there.place.get("nodes")["items"]), None))
        if told["status"] != "True":
            check(told["reason"] == "Incomplete", f"it is said what is missing: {told}")
            # A program can be installed, rights cannot.
            raise Skipped(told["message"], cannot=None if privileged() else "namespaces")
        there.space = re.search(r"/run/netns/(\S+)", told["message"]).group(1)
        there.place.namespace(there.namespace)
        try:
            yield there
        except BaseException:
            world.tell(there.place, there.namespace)
            raise
    finally:
        world.end()


def inside(bench, *words):
    """What a program says in the network namespace of the machines."""
    done = subprocess.run(["ip", "netns", "exec", bench.space, *words], capture_output=True, text=True)
    check(done.returncode == 0, f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def carried(bench, address):
    """Whether the kernel carries something to an address."""
    return f" . {address} . tcp" in inside(bench, "nft", "list", "map", "netdev", "fairway", "to")


def devices(bench):
    return re.findall(r"^\d+: (g\w+)", inside(bench, "ip", "-o", "link", "show", "type", "tun"), re.M)


@scenario()
def same_behaviour(bench):
    """DHCP, names, Services and the way in as with the switch; a busy connection is carried by the kernel, until a policy forbids it; a kill leaves nothing."""
    with kernel(bench) as there:
        place, namespace, key, world = there.place, there.namespace, there.key, there.world
        ports = {name: web(there, name, **IMAGE)[0] for name in ("web", "other")}
        for name, port in ports.items():
            ready(there, name)
            key.login(port)
        check(len(devices(there)) == 2, f"each has a device: {devices(there)}")
        check(not list(world.data.glob("machines/run/*/live/net-*.sock")), "and no socket")
        addresses = {name: status(there, "vmi", name)["interfaces"][0]["ipAddress"] for name in ports}
        check(addresses["web"] in key.ssh(ports["web"], "ip -4 addr show eth0"), "DHCP told the address")
        ask = lambda where: key.try_ssh(ports["other"], f"busybox timeout 8 busybox wget -q -O - http://{where}:8080/", timeout=40).stdout
        eventually("by name, through the Service", lambda: "hello from web" in ask(f"web.{namespace}.svc.cluster.local"))
        check("hello from web" in ask(addresses["web"]), "and by address")

        def drink():
            """Reads what the other pours, for some seconds; how many bytes came."""
            # The end of its input would be the end of the connection.
            words = f"sleep 7 | busybox timeout 6 nc {addresses['web']} 7000 | wc -c"
            return subprocess.Popen(["ssh", *key.options(), "-p", str(ports["other"]), "demo@127.0.0.1", words],
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, stdin=subprocess.DEVNULL)

        def poured():
            running = drink()
            seen = False
            while running.poll() is None:
                seen = seen or carried(there, addresses["other"])
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.wait(0.2)
            count = int(running.stdout.read() or 0)
            print(f"        {count / 6 / 125_000:.0f} Mbit/s", flush=True)
            return seen and count > 1_000_000

        key.ssh(ports["web"], POUR)
        eventually("the kernel carries a busy connection", poured)
        place.apply({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "none", "namespace": namespace},
            "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"], "ingress": [
                {"from": [{"ipBlock": {"cidr": "127.0.0.1/32"}}]}]},
        })
        eventually("a policy keeps it out", lambda: not ask(addresses["web"]))
        check(not carried(there, addresses["web"]) and not carried(there, addresses["other"]), "and the kernel carries nothing")
        place.kubectl("delete", "networkpolicy", "none", "-n", namespace)
        eventually("without the policy it comes in again", lambda: "hello from web" in ask(addresses["web"]))

        before = world.qemus()
        world.kill()
        world.start()
        eventually("after a kill it is reached again", lambda: "hello from web" in ask(addresses["web"]))
        check(world.qemus() == before, "the same machines go on")

        place.kubectl("delete", "vm", "web", "other", "-n", namespace, "--timeout=120s")
        eventually("devices go with their machines", lambda: not devices(there))
        world.stop()
        left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
        check(there.space not in left, f"nothing is left: {left}")
