"""What a machine's processes may do on their host, and how much its disks may take."""

import os

from manifests import machine
from scenario import scenario
from scenarios.life import condition, printable, status
from world import check, eventually

RANGE = range(1_900_000_000, 1_901_000_000)


def process(pid, field):
    with open(f"/proc/{pid}/status", encoding="utf-8") as lines:
        return next(line.split(":", 1)[1].split() for line in lines if line.startswith(f"{field}:"))


def limited(name, **parameters):
    return {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": {"name": name},
            "driverName": "fairway.dev/local", "parameters": parameters}


@scenario(quick=True)
def kept_in(bench):
    """QEMU is a user's of its own where Fairway is root, the Node says what is missing, and a class limits the disk of a machine that runs."""
    place, namespace = bench.place, bench.namespace
    place.apply(limited("modest", iops="500", throughput="50Mi"), limited("fast", type="gp3"),
                machine("web", namespace, instance={"startStrategy": "Paused", "terminationGracePeriodSeconds": 0}))
    printable(bench, "Paused")
    (pid,) = bench.world.qemus()
    user = int(process(pid, "Uid")[0])
    check(process(pid, "Seccomp") == ["2"], "QEMU has a filter of system calls")
    node = place.get("nodes")["items"][0]
    told = condition(node["status"], "fairway.dev/Isolated")
    if os.geteuid() == 0:
        check(user in RANGE, f"QEMU is of user {user}")
        check(process(pid, "CapEff") == ["0000000000000000"], "QEMU has no capabilities")
        check("as root" not in told["message"], told["message"])
        base = next(bench.world.data.glob("machines/volumes/*/*/disk.base"))
        check(base.stat().st_uid == 0 and base.stat().st_mode & 0o777 == 0o444, f"the image: {base.stat()}")
    else:
        check("run the node as root" in told["message"], told["message"])

    claim = lambda: place.get("pvc", "web-root", "-n", namespace)["status"]
    message = lambda: status(bench, "vmi")["volumeStatus"][0].get("message", "")
    name = lambda value: place.kubectl("patch", "pvc", "web-root", "-n", namespace, "--type=merge", "-p",
                                       f'{{"spec": {{"volumeAttributesClassName": "{value}"}}}}')
    name("fast")
    eventually("a class of another driver's words is refused", lambda: claim().get("modifyVolumeStatus", {}).get("status") == "Infeasible")
    name("modest")
    eventually("the claim has its class", lambda: claim().get("currentVolumeAttributesClassName") == "modest")
    check("modifyVolumeStatus" not in claim(), claim())
    eventually("the machine follows", lambda: "500 operations per second, 52428800 bytes per second" in message())

    place.kubectl("delete", "vm", "web", "-n", namespace, "--timeout=90s")
    users = bench.world.data / "machines" / "users"
    eventually("its user is free", lambda: not users.exists() or not list(users.iterdir()), 60)
