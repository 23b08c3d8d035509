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


def snapshot(bench, name, source="web", **annotations):
    """Takes one, and waits until it can be used; what it says."""
    place, namespace = bench.place, bench.namespace
    place.apply({
        "apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
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


MEMORY = {"fairway.dev/memory": "true"}
# Lives in memory alone: what it counts is nowhere on disk.
COUNTING = "setsid sh -c 'mkdir -p /dev/shm; i=0; while :; do i=$((i+1)); echo $i > /dev/shm/count; sleep 0.1; done' >/dev/null 2>&1 </dev/null &"


def remembered(bench):
    return condition(status(bench, "vmi"), "MemoryRestored")


def back(bench, name, of):
    """Stops the machine, brings it back, and starts it."""
    place, namespace = bench.place, bench.namespace
    place.virtctl("stop", "web", "-n", namespace)
    printable(bench, "Stopped")
    restore(bench, name, of)
    place.wait(f"vmrestore/{name}", "jsonpath={.status.complete}=true", namespace)
    place.virtctl("start", "web", "-n", namespace)
    ready(bench)


@scenario()
def goes_on(bench):
    """A snapshot with memory: the guest goes on where it was, its programs and open files included; a machine that was changed says why it cannot."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    ssh, _ = web(bench, seed=SEED)
    ready(bench)
    key.login(ssh)
    agent(bench)
    key.ssh(ssh, "echo before > mark; sync; " + COUNTING)
    eventually("it counts", lambda: int(key.ssh(ssh, "cat /dev/shm/count")) > 5)
    boot = key.ssh(ssh, "cat /proc/sys/kernel/random/boot_id")
    taken = snapshot(bench, "first", **MEMORY)
    check(condition(taken, "Memory").get("status") == "True", f"memory is in it: {taken}")
    check(key.ssh(ssh, "cat /proc/sys/kernel/random/boot_id") == boot, "the guest has gone on")
    check(condition(status(bench, "vmi"), "Paused") == {}, "and is not paused")
    kept = list((bench.world.data / "machines" / "snapshots").rglob("memory.luks"))
    check(len(kept) == 1 and kept[0].stat().st_mode & 0o777 == 0o600, f"one file, for its owner alone: {kept}")
    check(b"boot_id" not in kept[0].read_bytes(), "it cannot be read")
    then = int(key.ssh(ssh, "cat /dev/shm/count"))
    key.ssh(ssh, "echo after > mark; sync")

    back(bench, "back", "first")
    key.login(ssh)
    check(remembered(bench).get("status") == "True", f"it went on: {status(bench, 'vmi')}")
    check(key.ssh(ssh, "cat /proc/sys/kernel/random/boot_id") == boot, "it has not booted")
    check(key.ssh(ssh, "cat mark") == "before", "its disk is of the same moment")
    eventually("it counts on", lambda: int(key.ssh(ssh, "cat /dev/shm/count")) > then)
    key.ssh(ssh, "echo more >> mark; sync; cat mark")
    agent(bench)
    behind = abs(int(key.ssh(ssh, "date +%s")) - int(place.must("date", "+%s")))
    check(behind < 30, f"its clock is {behind} s off")
    check(not list(bench.world.data.glob("machines/run/*/memory.luks")), "no copy of its memory is left")

    # Once more from the same snapshot, but with more memory: it says so, and boots from the disk.
    place.virtctl("stop", "web", "-n", namespace)
    printable(bench, "Stopped")
    restore(bench, "again", "first")
    place.wait("vmrestore/again", "jsonpath={.status.complete}=true", namespace)
    place.kubectl("patch", "vm", "web", "-n", namespace, "--type=merge", "-p",
                  '{"spec": {"template": {"spec": {"domain": {"memory": {"guest": "160Mi"}}}}}}')
    place.virtctl("start", "web", "-n", namespace)
    ready(bench)
    key.login(ssh)
    told = remembered(bench)
    check(told.get("status") == "False" and "memory" in told["message"], f"it says why: {told}")
    check(key.ssh(ssh, "cat /proc/sys/kernel/random/boot_id") != boot, "it has booted")
    check(key.ssh(ssh, "cat mark") == "before", "from the disk of the snapshot")
    place.kubectl("delete", "vmsnapshot", "first", "-n", namespace, "--timeout=60s")
    eventually("its memory is gone", lambda: not list((bench.world.data / "machines" / "snapshots").rglob("memory.*")), 60)
