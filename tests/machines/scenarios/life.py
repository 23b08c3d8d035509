"""A machine from its manifest to its end."""

from guest import boot_time, http, node_port
from manifests import machine, secret, service, user_data
from scenario import scenario
from world import check, eventually


def web(bench, name="web", seed=None, **options):
    """A machine with a web server, a key in a Secret, and a Service with ports of the host. Its ports for SSH and HTTP."""
    place, namespace = bench.place, bench.namespace
    place.apply(
        secret(f"{name}-seed", namespace, userdata=seed or user_data(name)),
        secret(f"{name}-ssh", namespace, key=bench.key.public),
        service(name, namespace, {"app": name}, ssh=22, http=8080),
        machine(name, namespace, secret=f"{name}-seed", keys=f"{name}-ssh", **options),
    )
    return node_port(place, namespace, name, 22), node_port(place, namespace, name, 8080)


def status(bench, kind, name="web"):
    found = bench.place.get(kind, name, "-n", bench.namespace)
    return (found or {}).get("status", {})


def condition(status, kind):
    return next((it for it in status.get("conditions", []) if it["type"] == kind), {})


def printable(bench, word, name="web"):
    bench.place.wait(f"vm/{name}", f"jsonpath={{.status.printableStatus}}={word}", bench.namespace)


def ready(bench, name="web"):
    bench.place.wait(f"vm/{name}", "condition=Ready", bench.namespace)


@scenario(quick=True)
def whole_life(bench):
    """Boot from an image through a template, log in with the key of a Secret, HTTP through the Service; pause, stop, start, restart, delete."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    ssh, web_port = web(bench)
    ready(bench)
    key.login(ssh)
    check(key.ssh(ssh, "hostname") == "web", "the guest has its host name")
    check("hello from web" in eventually("HTTP answers", lambda: http(web_port)), "the web server answers")

    told = status(bench, "vmi")
    check(told["phase"] == "Running", f"phase {told['phase']}")
    address = told["interfaces"][0]["ipAddress"]
    check(address in key.ssh(ssh, "ip -4 addr show eth0"), f"the guest has the address {address}")
    volume = status(bench, "dv", "web-root")
    check((volume["phase"], volume["progress"]) == ("Succeeded", "100.0%"), f"the DataVolume: {volume}")
    eventually("the agent is connected", lambda: condition(status(bench, "vmi"), "AgentConnected").get("status") == "True")
    eventually("the guest's system is known", lambda: status(bench, "vmi").get("guestOSInfo", {}).get("name"))
    check(condition(status(bench, "vm"), "Ready")["status"] == "True", "the machine is ready")

    first = boot_time(key, ssh)
    place.virtctl("pause", "vm", "web", "-n", namespace)
    printable(bench, "Paused")
    check(condition(status(bench, "vmi"), "Paused")["status"] == "True", "the instance says that it is paused")
    place.virtctl("unpause", "vm", "web", "-n", namespace)
    printable(bench, "Running")
    eventually("it goes on", lambda: boot_time(key, ssh) == first)

    place.virtctl("stop", "web", "-n", namespace)
    printable(bench, "Stopped")
    check(place.get("vmi", "web", "-n", namespace) is None, "there is no instance")
    check(not bench.world.qemus(), "no QEMU runs")
    place.virtctl("start", "web", "-n", namespace)
    ready(bench)
    key.login(ssh)
    second = boot_time(key, ssh)
    check(second != first, "it has booted again")
    check(status(bench, "vmi")["interfaces"][0]["ipAddress"] == address, "the address is the same")
    check("hello from web" in eventually("HTTP answers", lambda: http(web_port)), "what was written is still there")

    place.virtctl("restart", "web", "-n", namespace)
    eventually("it boots a third time", lambda: boot_time(key, ssh) != second)
    disks = lambda: list((bench.world.data / "machines" / "volumes").rglob("disk.qcow2"))
    check(len(disks()) == 1, f"one disk: {disks()}")
    place.kubectl("delete", "vm", "web", "-n", namespace, "--timeout=90s")
    eventually("its disk is gone", lambda: not disks(), 60)
    check(place.get("dv", "-n", namespace)["items"] == [], "the DataVolume went with the machine")
