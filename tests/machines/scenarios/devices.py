"""What comes and goes while a machine runs."""

import json

from guest import boot_time
from manifests import data_volume
from scenario import scenario
from scenarios.life import condition, ready, status, web
from world import check, eventually


def sizes(bench, ssh):
    """Bytes of the guest's disks."""
    return [int(line) * 512 for line in bench.key.ssh(ssh, "cat /sys/block/*/size").split()]


@scenario()
def volumes(bench):
    """A volume is plugged into a running machine by virtctl, seen by the guest, and unplugged again."""
    place, namespace = bench.place, bench.namespace
    ssh, _ = web(bench)
    place.apply(data_volume("extra", namespace, {"blank": {}}, size="48Mi"))
    place.wait("dv/extra", "jsonpath={.status.phase}=Succeeded", namespace)
    ready(bench)
    bench.key.login(ssh)
    boot = boot_time(bench.key, ssh)
    place.virtctl("addvolume", "web", "--volume-name=extra", "-n", namespace)
    eventually("the guest sees the disk", lambda: 48 << 20 in sizes(bench, ssh))
    told = lambda: next((it for it in status(bench, "vmi").get("volumeStatus", []) if it["name"] == "extra"), {})
    eventually("the status tells of it", lambda: told().get("phase") == "Ready")
    check(told().get("target"), f"with its name in the guest: {told()}")
    place.virtctl("removevolume", "web", "--volume-name=extra", "-n", namespace)
    eventually("the guest sees it go", lambda: 48 << 20 not in sizes(bench, ssh))
    eventually("the status forgets it", lambda: not told())
    check(boot_time(bench.key, ssh) == boot, "it did not boot for that")


@scenario()
def larger_disk(bench):
    """A claim that asks for more makes the disk of a running machine grow."""
    place, namespace = bench.place, bench.namespace
    ssh, _ = web(bench)
    ready(bench)
    bench.key.login(ssh)
    check(512 << 20 in sizes(bench, ssh), f"the disk has the size that was asked for: {sizes(bench, ssh)}")
    patch = {"spec": {"resources": {"requests": {"storage": "768Mi"}}}}
    place.kubectl("patch", "pvc", "web-root", "-n", namespace, "--type=merge", "-p", json.dumps(patch))
    eventually("the guest sees more", lambda: 768 << 20 in sizes(bench, ssh))
    eventually("the claim says so",
               lambda: status(bench, "pvc", "web-root").get("capacity", {}).get("storage") == "768Mi")


@scenario()
def what_needs_a_restart(bench):
    """A change that cannot be made while a machine runs is told by RestartRequired, and made by the next restart."""
    place, namespace = bench.place, bench.namespace
    ssh, _ = web(bench)
    ready(bench)
    bench.key.login(ssh)
    boot = boot_time(bench.key, ssh)
    check(bench.key.ssh(ssh, "nproc") == "1", "one processor")
    patch = {"spec": {"template": {"spec": {"domain": {"cpu": {"cores": 2}}}}}}
    place.kubectl("patch", "vm", "web", "-n", namespace, "--type=merge", "-p", json.dumps(patch))
    eventually("the machine says so", lambda: condition(status(bench, "vm"), "RestartRequired").get("status") == "True")
    check(boot_time(bench.key, ssh) == boot, "it goes on until somebody restarts it")
    place.virtctl("restart", "web", "-n", namespace)
    eventually("it boots with two", lambda: bench.key.ssh(ssh, "nproc") == "2")
    check(not condition(status(bench, "vm"), "RestartRequired"), "nothing is left to do")
