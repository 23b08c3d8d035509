"""Run strategies: who starts a machine, and when."""

from manifests import data_volume, machine
from scenario import scenario
from scenarios.life import printable, status
from world import check, eventually


def bare(bench, name, strategy, **options):
    """A machine with an empty disk: its firmware waits there for ever, which takes no time to begin."""
    volume = {"name": "root", "dataVolume": {"name": f"{name}-empty"}}
    disk = {"name": "root", "disk": {"bus": "virtio"}}
    bench.place.apply(
        data_volume(f"{name}-empty", bench.namespace, {"blank": {}}),
        machine(name, bench.namespace, disk=None, strategy=strategy, volumes=[volume], disks=[disk],
                instance={"terminationGracePeriodSeconds": 0}, **options),
    )


def phase(bench, name):
    return status(bench, "vmi", name).get("phase")


@scenario()
def each_strategy(bench):
    """Halted, Manual, Always, RerunOnFailure and Once, with virtctl's start and stop."""
    place, namespace, world = bench.place, bench.namespace, bench.world
    strategy = lambda: place.get("vm", "m", "-n", namespace)["spec"].get("runStrategy")
    bare(bench, "m", "Halted")
    printable(bench, "Stopped", "m")
    check(not world.qemus(), "a halted machine does not run")
    place.virtctl("start", "m", "-n", namespace)
    printable(bench, "Running", "m")
    check(strategy() == "Always", f"starting a halted machine makes it Always, not {strategy()}")
    place.virtctl("stop", "m", "-n", namespace)
    printable(bench, "Stopped", "m")
    check(strategy() == "Halted", f"stopping it makes it Halted, not {strategy()}")

    place.kubectl("patch", "vm", "m", "-n", namespace, "--type=merge", "-p", '{"spec": {"runStrategy": "Manual"}}')
    check(not world.qemus(), "Manual starts nothing by itself")
    place.virtctl("start", "m", "-n", namespace)
    printable(bench, "Running", "m")
    check(strategy() == "Manual", "starting it by hand leaves the strategy alone")
    first = status(bench, "vm", "m")
    uid = lambda: (place.get("vmi", "m", "-n", namespace) or {"metadata": {}})["metadata"].get("uid")
    # A guest that needs no time to end is replaced before virtctl has returned.
    before = uid()
    place.virtctl("restart", "m", "-n", namespace)
    eventually("another instance runs", lambda: uid() not in (None, before) and phase(bench, "m") == "Running")
    check(first.get("created") is True, "the machine says that it has an instance")
    place.virtctl("stop", "m", "-n", namespace)
    printable(bench, "Stopped", "m")

    place.kubectl("patch", "vm", "m", "-n", namespace, "--type=merge", "-p", '{"spec": {"runStrategy": "RerunOnFailure"}}')
    printable(bench, "Running", "m")
    place.virtctl("stop", "m", "-n", namespace)
    printable(bench, "Stopped", "m")
    done = place.run("virtctl", "stop", "m", "-n", namespace)
    check(done.returncode != 0, f"stopping a stopped machine is refused: {done.stdout}")

    place.kubectl("delete", "vm", "m", "-n", namespace)
    bare(bench, "once", "Once")
    printable(bench, "Running", "once")
    check(place.run("virtctl", "start", "once", "-n", namespace).returncode != 0, "Once is not started by hand")
    place.kubectl("delete", "vm", "once", "-n", namespace)
    eventually("no QEMU runs", lambda: not world.qemus())
