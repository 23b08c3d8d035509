"""Nodes that are lost, and their machines. The nodes are objects that nobody stands behind; the one that takes over is real."""

import json
import time

from manifests import machine
from scenario import scenario
from scenarios.life import condition, printable, status
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
def lost(bench):
    """Machines of a lost node start elsewhere: when the node promised that they have ended, else when an operator says so."""
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
