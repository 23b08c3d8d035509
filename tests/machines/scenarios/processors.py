"""Processors that a machine has for itself."""

import os
import pathlib

from manifests import machine
from scenario import scenario
from scenarios.isolation import process
from scenarios.joining import NAME, node, node_of
from scenarios.life import condition, printable, status
from world import Skipped, check, eventually

RESOURCE = "fairway.dev/dedicated-cpus"
# The right to that, as the kernel numbers them.
SYS_NICE = 23


def processors():
    """Those that Fairway may use, if it may give any of them away."""
    usable = os.sched_getaffinity(0)
    if len(usable) < 2:
        raise Skipped("the only processor of this host is everybody's", cannot="processors")
    rights = int(process("self", "CapEff")[0], 16)
    if os.geteuid() == 0 and not rights & 1 << SYS_NICE:
        raise Skipped("this root may not move the threads of others (CAP_SYS_NICE)", cannot="sched")
    return usable


def bare(bench, name, cores=1, **cpu):
    """A machine whose firmware finds nothing on its disk, and waits; it is known by its process."""
    before = set(bench.world.qemus())
    volume = {"name": "root", "emptyDisk": {"capacity": "64Mi"}}
    disk = {"name": "root", "disk": {"bus": "virtio"}}
    made = machine(name, bench.namespace, disk=None, cores=cores, volumes=[volume], disks=[disk],
                   instance={"terminationGracePeriodSeconds": 0})
    made["spec"]["template"]["spec"]["domain"]["cpu"].update(cpu)
    bench.place.apply(made)
    return lambda: next(pid for pid in bench.world.qemus() if pid not in before)


def kept(pid):
    """The processors that each thread of a process may use, as the kernel has them."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        (text,) = [line.split(":")[1].strip() for line in lines if line.startswith("Cpus_allowed_list:")]
        ranges = [part.split("-") for part in text.split(",")]
        found.append({number for part in ranges for number in range(int(part[0]), int(part[-1]) + 1)})
    return found


def is_alone(pid, own, rest):
    """Whether each of its own has one thread, and all other threads share the rest."""
    threads = kept(pid)
    singles = [it for it in threads if it <= own]
    return sorted(singles, key=min) == [{it} for it in sorted(own)] and all(it == rest for it in threads if it not in singles)


@scenario(quick=True)
def alone(bench):
    """A processor is a machine's alone, also over a restart of Fairway; others make room, wait for it, and have it again."""
    place, namespace, world = bench.place, bench.namespace, bench.world
    usable = processors()
    givable = sorted(usable)[1:]
    (node,) = place.get("nodes")["items"]
    check(node["metadata"]["labels"]["cpumanager"] == "true", "the Node says that it has processors to give")
    check(node["status"]["allocatable"][RESOURCE] == str(len(givable)), f"how many: {node['status']['allocatable']}")

    shares = bare(bench, "shares")
    printable(bench, "Running", "shares")
    shares = shares()
    check(all(it == usable for it in kept(shares)), f"a machine runs where it likes: {kept(shares)}")

    single = bare(bench, "single", dedicatedCpuPlacement=True)
    printable(bench, "Running", "single")
    single = single()
    own = next(iter(it for it in kept(single) if len(it) == 1 and it != {min(usable)}), set())
    check(own and own <= set(givable), f"a processor of its own: {kept(single)}")
    rest = usable - own
    settled = lambda: is_alone(single, own, rest) and all(it == rest for it in kept(shares))
    check(settled(), f"the other one has made room: {kept(single)}, {kept(shares)}")
    (thread,) = [it for it in pathlib.Path(f"/proc/{single}/task").iterdir() if (it / "comm").read_text().startswith("CPU 0/")]
    check(process(f"{single}/task/{thread.name}", "Cpus_allowed_list") == [str(min(own))], "it is that of the guest's processor")
    told = status(bench, "vmi", "single")
    check(told["qosClass"] == "Guaranteed", told["qosClass"])
    check(not condition(told, "SpecHonoured"), f"it has what it asks for: {condition(told, 'SpecHonoured')}")

    # It would have to have all that can be given.
    second = bare(bench, "second", cores=len(givable), dedicatedCpuPlacement=True)
    why = lambda: condition(status(bench, "vmi", "second"), "PodScheduled").get("message", "")
    eventually("there is none left", lambda: f"1 Insufficient {RESOURCE}" in why())

    world.kill()
    world.start()
    for name in ("single", "shares"):
        pause = lambda: place.run("virtctl", "pause", "vm", name, "-n", namespace).returncode == 0
        eventually(f"{name} is in hand again", pause)
    check(settled(), f"it is still its own: {kept(single)}, {kept(shares)}")
    check(f"1 Insufficient {RESOURCE}" in why(), f"and nobody else's: {why()}")

    place.kubectl("delete", "vm", "single", "-n", namespace, "--timeout=90s")
    printable(bench, "Running", "second")
    second = second()
    check(is_alone(second, set(givable), {min(usable)}), f"it was waited for: {kept(second)}")
    check(all(it == {min(usable)} for it in kept(shares)), f"one is always shared: {kept(shares)}")
    place.kubectl("delete", "vm", "second", "-n", namespace, "--timeout=90s")
    eventually("everything is shared again", lambda: all(it == usable for it in kept(shares)))


@scenario()
def grown(bench):
    """A machine that grows while it runs gets more processors for itself, or says that there are none left and keeps what it has."""
    place, namespace = bench.place, bench.namespace
    usable = processors()
    single = bare(bench, "single", sockets=1, maxSockets=len(usable) + 1, dedicatedCpuPlacement=True)
    printable(bench, "Running", "single")
    single = single()
    alone_on = lambda count: [own for own in [{next(iter(it)) for it in kept(single) if len(it) == 1} - {min(usable)}]
                              if len(own) == count and is_alone(single, own, usable - own)]
    (own,) = alone_on(1)

    def sockets(count):
        place.kubectl("patch", "vm", "single", "-n", namespace, "--type=merge", "-p",
                      f'{{"spec": {{"template": {{"spec": {{"domain": {{"cpu": {{"sockets": {count}}}}}}}}}}}}}')

    if len(usable) > 2:
        sockets(2)
        (grown,) = eventually("the second one is its own, too", lambda: alone_on(2))
        check(own < grown, f"it keeps what it has: {own}, {grown}")
        own = grown
    sockets(len(usable))
    change = lambda: condition(status(bench, "vmi", "single"), "HotVCPUChange")
    eventually("there are not so many", lambda: "are left to give" in change().get("message", ""))
    check(alone_on(len(own)) == [own], f"it keeps what it has: {kept(single)}")


@scenario()
def moved(bench):
    """A machine that moves has a processor for itself on the other node, and leaves the one that it had."""
    place, namespace, world = bench.place, bench.namespace, bench.world
    usable = processors()
    own = {sorted(usable)[1]}
    bare(bench, "shares")
    bare(bench, "single", dedicatedCpuPlacement=True)
    for name in ("shares", "single"):
        printable(bench, "Running", name)
    with node(bench) as second:
        eventually("it can move", lambda: condition(status(bench, "vmi", "single"), "LiveMigratable").get("status") == "True")
        place.virtctl("migrate", "single", "-n", namespace)
        eventually("it is on the other node", lambda: node_of(bench, "single") == NAME)
        (there,) = second.qemus()
        check(is_alone(there, own, usable - own), f"a processor of its own there: {kept(there)}")
        eventually("and no more where it was", lambda: [all(it == usable for it in kept(pid)) for pid in world.qemus()] == [True])
        place.kubectl("delete", "vm", "single", "-n", namespace, "--timeout=90s")
