"""What comes and goes while a machine runs."""

import json
import os
import shutil

from guest import boot_time
from manifests import data_volume, user_data
from scenario import scenario
from scenarios.isolation import RANGE, process
from scenarios.life import condition, ready, status, web
from world import Skipped, check, eventually


def sizes(bench, ssh):
    """Bytes of the guest's disks."""
    return [int(line) * 512 for line in bench.key.ssh(ssh, "cat /sys/block/*/size").split()]


@scenario()
def volumes_and_cards(bench):
    """A volume is plugged into a running machine by virtctl, a card by a change of its template; the guest sees both come and go."""
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

    cards = lambda: bench.key.ssh(ssh, "cd /sys/class/net; for it in eth*; do cat $it/address; done").split()
    (first,) = cards()
    config = json.dumps({"cniVersion": "0.3.1", "type": "bridge", "bridge": "br1", "vlan": 7})
    place.apply({"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                 "metadata": {"name": "lan", "namespace": namespace}, "spec": {"config": config}})
    change = lambda *steps: place.kubectl("patch", "vm", "web", "-n", namespace, "--type=json", "-p", json.dumps(
        [{"op": "add", "path": f"/spec/template/spec/{path}", "value": value} for path, value in steps]))
    change(("networks/-", {"name": "lan", "multus": {"networkName": "lan"}}),
           ("domain/devices/interfaces/-", {"name": "lan", "bridge": {}}))
    eventually("the guest sees the card", lambda: len(cards()) == 2)
    (mac,) = set(cards()) - {first}
    lan = lambda: next((it for it in status(bench, "vmi").get("interfaces", []) if it.get("name") == "lan"), {})
    eventually("the status tells of the same card", lambda: lan().get("mac") == mac)
    check(not condition(status(bench, "vm"), "RestartRequired"), f"nothing waits for a restart: {status(bench, 'vm')['conditions']}")
    change(("domain/devices/interfaces/1/state", "absent"))
    eventually("the guest sees it go", lambda: cards() == [first])
    eventually("the status forgets it", lambda: not lan())
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


# What a distribution's udev does in larger guests: the driver is loaded, and what is plugged in is used.
GROWS = """- path: /srv/grow
  content: |
    echo online > /sys/devices/system/memory/auto_online_blocks
    modprobe virtio_mem
    (while sleep 1; do
        for it in /sys/devices/system/cpu/cpu[1-9]/online; do echo 1 > $it; done
    done) > /dev/null 2>&1 < /dev/null &
"""


def growing(name):
    return user_data(name).replace("bootcmd:", GROWS + "bootcmd:") + "runcmd:\n- sh /srv/grow\n"


@scenario()
def more_processors_and_memory(bench):
    """Processors and memory are plugged into a guest that runs, within their maxima; it sees them, and does not boot for that."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    domain = {"cpu": {"cores": 1, "sockets": 1, "maxSockets": 4}, "memory": {"guest": "1Gi", "maxGuest": "2Gi"}, "devices": {
        "disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "cloud-init", "disk": {"bus": "virtio"}}],
        "interfaces": [{"name": "default", "masquerade": {}}]}}
    ssh, _ = web(bench, seed=growing("web"), instance={"domain": domain})
    ready(bench)
    key.login(ssh)
    boot = boot_time(key, ssh)
    memory = lambda: int(key.ssh(ssh, "grep MemTotal /proc/meminfo").split()[1]) >> 10
    check(key.ssh(ssh, "nproc") == "1", "one processor")
    first = memory()
    check(first < 1024, f"{first} MiB at first")

    def change(**fields):
        patch = {"spec": {"template": {"spec": {"domain": fields}}}}
        place.kubectl("patch", "vm", "web", "-n", namespace, "--type=merge", "-p", json.dumps(patch))

    change(cpu={"sockets": 2})
    eventually("the status tells of two sockets", lambda: status(bench, "vmi").get("currentCPUTopology", {}).get("sockets") == 2)
    eventually("the guest has two processors", lambda: key.ssh(ssh, "nproc") == "2")
    change(memory={"guest": "1280Mi"})
    eventually("the guest has more memory", lambda: memory() > first + 200)
    eventually("the status tells of it", lambda: status(bench, "vmi").get("memory", {}).get("guestCurrent") == "1280Mi")
    check(not condition(status(bench, "vm"), "RestartRequired"), f"nothing waits for a restart: {status(bench, 'vm')['conditions']}")
    check(boot_time(key, ssh) == boot, "it did not boot for that")

    # Beyond what it was started with.
    change(cpu={"sockets": 5, "maxSockets": 8})
    eventually("more than the maximum needs a restart", lambda: condition(status(bench, "vm"), "RestartRequired").get("status") == "True")
    check(key.ssh(ssh, "nproc") == "2", "and is not done before")


@scenario()
def tpm(bench):
    """A machine with a TPM: the real swtpm runs beside QEMU as the same user, the guest has a TPM 2.0, and nothing is left of it."""
    if not shutil.which("swtpm"):
        raise Skipped("there is no swtpm here")
    place, namespace, key = bench.place, bench.namespace, bench.key
    domain = {"cpu": {"cores": 1}, "memory": {"guest": "256Mi"}, "devices": {
        "tpm": {}, "disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "cloud-init", "disk": {"bus": "virtio"}}],
        "interfaces": [{"name": "default", "masquerade": {}}]}}
    ssh, _ = web(bench, seed=user_data("web") + "- modprobe tpm_crb\n", instance={"domain": domain})
    ready(bench)
    (qemu,) = bench.world.qemus()
    emulators = lambda: [pid for pid, words in bench.world.machines().items() if "swtpm" in words.split(" ")[0]]
    (swtpm,) = emulators()
    users = [process(pid, "Uid")[0] for pid in (qemu, swtpm)]
    check(users[0] == users[1], f"both are of one user: {users}")
    if os.geteuid() == 0:
        check(int(users[0]) in RANGE, f"which is the machine's own: {users}")
    key.login(ssh)
    eventually("the guest has a TPM", lambda: key.ssh(ssh, "ls /dev/tpm0"))
    check(key.ssh(ssh, "cat /sys/class/tpm/tpm0/tpm_version_major") == "2", "of version 2")
    place.kubectl("delete", "vm", "web", "-n", namespace, "--timeout=120s")
    eventually("its emulator is gone", lambda: not emulators())
