"""Machines that come back as they were, and machines like others."""

import os
import signal

from scenario import scenario
from scenarios.life import condition, printable, ready, status, web
from world import check, eventually

# Without a host name: each machine has its own.
SEED = """#cloud-config
user: {name: demo}
"""


def agent(bench, name="web"):
    connected = lambda: condition(status(bench, "vmi", name), "AgentConnected").get("status") == "True"
    eventually("the agent is connected", connected)


def snapshot(bench, name, source="web"):
    """Takes one, and waits until it can be used; what it says."""
    place, namespace = bench.place, bench.namespace
    place.apply({
        "apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": source}},
    })
    place.wait(f"vmsnapshot/{name}", "jsonpath={.status.readyToUse}=true", namespace)
    return status(bench, "vmsnapshot", name)


def restore(bench, name, of, target="web"):
    place, namespace = bench.place, bench.namespace
    place.apply({
        "apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineRestore",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"target": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": target},
                 "virtualMachineSnapshotName": of},
    })


@scenario()
def back_in_time(bench):
    """A file comes back by a restore of a snapshot of the running machine; a clone boots with a name and a card of its own."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    ssh, _ = web(bench, seed=SEED)
    ready(bench)
    key.login(ssh)
    agent(bench)
    # Not brought to disk: the freeze does that. The second writes on and on, also while the snapshot is taken.
    key.ssh(ssh, "echo before > mark; (i=0; while :; do i=$((i+1)); echo $i >> numbers; done) >/dev/null 2>&1 </dev/null &")
    boot = key.ssh(ssh, "cat /proc/sys/kernel/random/boot_id")
    taken = snapshot(bench, "first")
    check(sorted(taken["indications"]) == ["GuestAgent", "Online"], f"indications: {taken}")
    check(taken["phase"] == "Succeeded", f"phase: {taken}")
    check(key.ssh(ssh, "cat /proc/sys/kernel/random/boot_id") == boot, "the guest has gone on")
    key.ssh(ssh, "echo after > mark; sync")
    check(key.ssh(ssh, "cat mark") == "after", "and can be written to")

    # A machine that runs is waited for.
    restore(bench, "back", "first")
    reason = lambda: condition(status(bench, "vmrestore", "back"), "Progressing").get("reason")
    eventually("it waits", lambda: reason() == "Waiting for target to be ready")
    place.virtctl("stop", "web", "-n", namespace)
    place.wait("vmrestore/back", "jsonpath={.status.complete}=true", namespace)
    place.virtctl("start", "web", "-n", namespace)
    ready(bench)
    key.login(ssh)
    check(key.ssh(ssh, "cat mark") == "before", "the file is as it was")
    numbers = key.ssh(ssh, "cat numbers").split()
    check(numbers == [str(it + 1) for it in range(len(numbers))], f"what was being written is whole: {numbers[-3:]}")
    agent(bench)

    place.apply({
        "apiVersion": "clone.kubevirt.io/v1beta1", "kind": "VirtualMachineClone",
        "metadata": {"name": "twin", "namespace": namespace},
        "spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"},
                 "target": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "twin"},
                 "template": {"labelFilters": ["*", "!app"]}},
    })
    place.wait("vmclone/twin", "jsonpath={.status.phase}=Succeeded", namespace)
    card = lambda name: status(bench, "vmi", name)["interfaces"][0]["mac"]
    first = card("web")
    place.virtctl("stop", "web", "-n", namespace)
    printable(bench, "Stopped")
    place.virtctl("start", "twin", "-n", namespace)
    ready(bench, "twin")
    options = [f"--local-ssh-opts={it}" for it in ("-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "-oLogLevel=ERROR")]
    ask = lambda command: place.virtctl("ssh", "demo@vmi/twin", "-n", namespace, "-i", key.path, *options, "--command", command).strip()
    said = eventually("the clone answers", lambda: ask("hostname; cat mark"))
    check(said.split() == ["twin", "before"], f"the clone has its own name and the file: {said}")
    check(card("twin") != first, f"both have the card {first}")

    # What is stopped is copied as a file; and everything goes with the machines.
    place.virtctl("stop", "twin", "-n", namespace)
    printable(bench, "Stopped", "twin")
    taken = snapshot(bench, "second", "twin")
    check("indications" not in taken, f"indications: {taken}")
    place.kubectl("delete", "vmsnapshot", "first", "second", "-n", namespace, "--timeout=60s")
    kept = lambda: list((bench.world.data / "machines" / "snapshots").rglob("disk.qcow2"))
    eventually("no copy is left", lambda: not kept(), 60)


@scenario()
def backed_up(bench):
    """A machine that runs is backed up, first as a whole and then by what has changed; the files, made one, are its disk, and it boots again."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    ssh, _ = web(bench, seed=SEED)
    ready(bench)
    key.login(ssh)
    agent(bench)
    to = bench.world.scratch / "backup"
    backup = lambda *more: place.fairway("vm", "backup", f"{namespace}/web", "--to", to, *more, "--kubeconfig", place.kubeconfig)
    said = backup()
    check("root: everything" in said and "agent did not answer" not in said, f"the first is whole: {said}")
    key.ssh(ssh, "echo changed > mark; sync")
    # Nobody writes any more, so that the two can be compared.
    place.virtctl("pause", "vm", "web", "-n", namespace)
    said = backup()
    check("of changes over root." in said, f"the second is what has changed: {said}")
    first, second = sorted(to.glob("root.*.qcow2"))
    check(second.stat().st_size < first.stat().st_size / 2, f"{second.stat().st_size} of {first.stat().st_size} bytes")
    whole = bench.world.scratch / "restored.qcow2"
    place.must("qemu-img", "convert", "-O", "qcow2", second, whole)
    volume = place.get("pvc", "web-root", "-n", namespace)["spec"]["volumeName"]
    disk = bench.world.data / "machines" / "volumes" / "root" / volume / "disk.qcow2"
    place.must("qemu-img", "compare", "-U", whole, disk)
    left = lambda: [it for it in (bench.world.data / "machines" / "backups").glob("*")]
    check(not left(), f"nothing is left on the node: {left()}")
    place.virtctl("unpause", "vm", "web", "-n", namespace)

    # Killed: the record of changes is lost, which is told, and everything is copied.
    for pid in bench.world.qemus():
        os.kill(pid, signal.SIGKILL)
    eventually("it runs again", lambda: place.run("kubectl", "get", "vmi", "web", "-n", namespace).returncode == 0 and bench.world.qemus())
    ready(bench)
    agent(bench)
    said = backup()
    check("root: everything" in said and "QEMU was killed" in said, f"it says why: {said}")
    wrong = place.run(bench.world.binary, "vm", "backup", f"{namespace}/other", "--to", to, "--kubeconfig", place.kubeconfig)
    check(wrong.returncode != 0 and "holds backups of" in wrong.stderr, f"a directory is one machine's: {wrong.stderr}")
