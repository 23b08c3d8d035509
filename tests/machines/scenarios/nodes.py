"""Nodes that are lost, and their machines."""

import json
import time

from guest import boot_time
from manifests import machine
from scenario import scenario
from scenarios.joining import NAME, node
from scenarios.life import condition, printable, ready, status, web
from scenarios.moving import IMAGE
from world import check, eventually

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


def join(place, name, annotations):
    """A node that is never heard of after this."""
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
              "kubevirt.io/schedulable": "true"}
    place.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels, "annotations": annotations}})
    room = {"cpu": "4", "memory": "4Gi"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    told = {"status": {"allocatable": room, "capacity": room, "conditions": [ready]}}
    place.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps(told))


def bare(bench, name):
    """A machine whose disk goes wherever it goes; its firmware finds nothing on it, and waits."""
    volume = {"name": "root", "emptyDisk": {"capacity": "64Mi"}}
    disk = {"name": "root", "disk": {"bus": "virtio"}}
    bench.place.apply(machine(name, bench.namespace, disk=None, volumes=[volume], disks=[disk],
                              instance={"terminationGracePeriodSeconds": 0}))


def place_of(bench, name):
    found = bench.place.get("vmi", name, "-n", bench.namespace) or {"metadata": {}}
    return found["metadata"].get("uid"), found.get("status", {}).get("nodeName")


@scenario()
def lost_and_found_elsewhere(bench):
    """A real node is killed under a guest that runs there: its supervisor ends the guest, which then boots on the other node, and never runs twice."""
    place, namespace, key, world = bench.place, bench.namespace, bench.key, bench.world
    (first,) = [it["metadata"]["name"] for it in place.get("nodes")["items"]]
    with node(bench, options=["--fence-seconds", "30"]) as second:
        place.kubectl("cordon", first)
        try:
            ssh, _ = web(bench, **IMAGE)
            eventually("it is placed on the other node", lambda: place_of(bench, "web")[1] == NAME)
        finally:
            place.kubectl("uncordon", first)
        ready(bench)
        key.login(ssh)
        boot, (before, _) = boot_time(key, ssh), place_of(bench, "web")
        (process,) = second.qemus()
        second.kill()
        killed = time.monotonic()
        check(second.qemus() == [process], "the guest outlives the process of its node")

        ended, twice = None, []
        def moved():
            nonlocal ended
            there, here = second.qemus(), world.qemus()
            if not there and ended is None:
                ended = time.monotonic()
            if there and here:
                twice.append((there, here))
            return here
        eventually("a machine runs on the node that is left", moved, patience=300, pause=0.05)
        check(not twice, f"it ran twice at the same time: {twice}")
        check(ended is not None and ended - killed > 5, "its supervisor ended it, when the node had not been heard of for long enough")
        check(time.monotonic() - killed > 20, "nobody is in a hurry")
        print(f"        ended after {ended - killed:.0f} s, started elsewhere after {time.monotonic() - killed:.0f} s", flush=True)
        ready(bench)
        after, where = place_of(bench, "web")
        check(where == first and after != before, f"another instance, on {first}: {where}")
        eventually("the guest has booted there", lambda: boot_time(key, ssh) != boot)
        told = place.get("node", NAME)
        check(condition(told["status"], "Ready")["status"] == "Unknown", "the lost node is not ready")

        # It comes back, and has nothing to run.
        second.start()
        time.sleep(5)
        check(not second.qemus() and len(world.qemus()) == 1, "it runs once")
        check(place_of(bench, "web") == (after, first), "where it is")
        place.kubectl("delete", "vm", "web", "-n", namespace, "--timeout=120s")


@scenario()
def lost(bench):
    """Machines of a lost node start elsewhere: when the node promised that they have ended, else when an operator says so. Nobody stands behind these nodes."""
    place = bench.place
    (real,) = [it["metadata"]["name"] for it in place.get("nodes")["items"]]
    place.kubectl("cordon", real)
    try:
        join(place, "promises", {"fairway.dev/fence-seconds": "20"})
        bare(bench, "a")
        eventually("a is placed", lambda: place_of(bench, "a")[1] == "promises")
        place.kubectl("cordon", "promises")
        join(place, "says-nothing", {})
        bare(bench, "b")
        eventually("b is placed", lambda: place_of(bench, "b")[1] == "says-nothing")
        first = place_of(bench, "b")
        place.kubectl("uncordon", real)
        began = time.monotonic()

        printable(bench, "Running", "a")
        check(time.monotonic() - began > 30, "nobody is in a hurry")
        check(place_of(bench, "a")[1] == real, "it runs on the node that is there")
        lost = place.get("node", "promises")
        check(condition(lost["status"], "Ready")["status"] == "Unknown", "the node is not ready")
        taints = {it["key"] for it in lost["spec"]["taints"]}
        check("node.kubernetes.io/unreachable" in taints, f"taints: {taints}")

        ready = eventually("b says what to do", lambda: condition(status(bench, "vmi", "b"), "Ready"))
        check(ready["reason"] == "NodeUnreachable" and OUT_OF_SERVICE in ready["message"], f"Ready: {ready}")
        time.sleep(5)
        check(place_of(bench, "b") == first, "it may still run there")
        place.kubectl("taint", "node", "says-nothing", OUT_OF_SERVICE)
        printable(bench, "Running", "b")
        check(place_of(bench, "b")[1] == real, "it runs on the node that is there")
    finally:
        place.kubectl("uncordon", real)
        place.kubectl("delete", "node", "promises", "says-nothing", "--ignore-not-found")


@scenario()
def nowhere_to_go(bench):
    """With one node a migration waits, says why, and can be cancelled; the machine runs on. What settings install is there."""
    place, namespace = bench.place, bench.namespace
    place.apply({"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt", "namespace": namespace}, "spec": {}})
    place.wait("kv/kubevirt", "condition=Available", namespace)
    bare(bench, "m")
    printable(bench, "Running", "m")
    before = bench.world.qemus()
    place.virtctl("migrate", "m", "-n", namespace)
    (migration,) = place.get("vmim", "-n", namespace)["items"]
    name = migration["metadata"]["name"]
    place.wait(f"vmim/{name}", "jsonpath={.status.phase}=Pending", namespace)
    told = lambda: [it for it in place.get("events", "-n", namespace)["items"]
                    if it["involvedObject"]["name"] == name and "0/1 nodes are available" in it["message"]]
    eventually("an event says why it waits", told)
    place.virtctl("migrate-cancel", "m", "-n", namespace)
    eventually("the migration is gone", lambda: not place.get("vmim", "-n", namespace)["items"])
    check(bench.world.qemus() == before, "the machine runs on")
    check(place.run("virtctl", "migrate-cancel", "m", "-n", namespace).returncode != 0, "there is nothing to cancel any more")
