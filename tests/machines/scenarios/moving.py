"""Live migration: a machine moves to a second node, with its disk, and whoever talks to it does not notice."""

import subprocess
import time

from scenario import scenario
from scenarios.joining import NAME, node, node_of
from scenarios.life import condition, ready, status, web
from guest import boot_time
from world import check, eventually

# Counts for whoever connects.
COUNT = "setsid sh -c '(i=0; while true; do i=$((i+1)); echo $i; sleep 0.2; done) | nc -l -p 7777' > /dev/null 2>&1 < /dev/null &"

# A layer over an image that both nodes have, and no claim.
IMAGE = {"disk": None, "volumes": [{"name": "root", "containerDisk": {"image": "fairway-images/tiny"}}],
         "disks": [{"name": "root", "bootOrder": 1, "disk": {"bus": "virtio"}}]}


class Session:
    """A connection from one guest to the other that stays open, and what comes through it."""

    def __init__(self, key, port, address, host="127.0.0.1"):
        words = ["ssh", *key.options(), "-p", str(port), f"demo@{host}", f"nc {address} 7777"]
        # The end of its input would be the end of the connection.
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def next(self):
        line = self.process.stdout.readline()
        check(line, f"the session has ended with {self.process.poll()}")
        return int(line)

    def end(self):
        self.process.kill()
        self.process.wait()


@scenario()
def there_and_back(bench):
    """A machine moves to another node and back while a session to it stays open; its disk goes with it, its address stays."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    ssh, _ = web(bench)
    other, _ = web(bench, "other", **IMAGE)
    for name, port in (("web", ssh), ("other", other)):
        ready(bench, name)
        key.login(port)
    first, boot, address = node_of(bench, "web"), boot_time(key, ssh), status(bench, "vmi")["interfaces"][0]["ipAddress"]
    key.ssh(ssh, "echo kept > /home/demo/note && sync")
    with node(bench) as second:
        eventually("it can move", lambda: condition(status(bench, "vmi"), "LiveMigratable").get("status") == "True")
        key.ssh(ssh, COUNT)
        session = Session(key, other, address)
        try:
            for where in (NAME, first):
                before = session.next()
                began = time.monotonic()
                place.virtctl("migrate", "web", "-n", namespace)
                eventually(f"it is on {where}", lambda: node_of(bench, "web") == where)
                took = time.monotonic() - began
                state = eventually("it is over", lambda: (lambda it: it if it.get("completed") else None)(
                    status(bench, "vmi").get("migrationState", {})))
                check(not state.get("failed"), f"it succeeded: {state}")
                after = [session.next() for _ in range(int(took * 5) + 10)]
                check(after == list(range(before + 1, before + 1 + len(after))), f"nothing is lost: {before}, then {after[:5]}…")
                check((len(second.qemus()), len(bench.world.qemus())) == ((1, 1) if where == NAME else (0, 2)), "it runs once")
                check(boot_time(key, ssh) == boot, "it has not booted")
                here, there = (len(list(data.glob("machines/volumes/*/pvc-*/disk.qcow2"))) for data in (bench.world.data, second.data))
                check((here, there) == ((0, 1) if where == NAME else (1, 0)), f"its disk is where it is: {here} here, {there} there")
                check(key.ssh(ssh, "cat /home/demo/note") == "kept", "its disk is there")
                check(status(bench, "vmi")["interfaces"][0]["ipAddress"] == address, "its address is the same")
        finally:
            session.end()
        figures = lambda: place.kubectl("get", "--raw", "/metrics").splitlines()
        told = lambda *words: [line for line in figures() if all(word in line for word in words)]
        check(len(told("kubevirt_vmi_migration_succeeded{", f'namespace="{namespace}"', 'vmi="web"')) == 2, f"figures of both: {told('migration')}")
        check(told("kubevirt_vmi_migration_end_time_seconds{", f'namespace="{namespace}"', 'status="succeeded"'), "when the last one was over")
        check(told("kubevirt_vm_info{", f'namespace="{namespace}",name="web"', 'status_group="running"'), "a figure of the machine")
        check(told("kubevirt_number_of_vms{", f'namespace="{namespace}"}} 2'), f"how many there are: {told('kubevirt_number_of_vms')}")
        check(told("kubevirt_vmi_status_addresses{", 'name="web"', f'address="{address}"'), "its address")
        eventually("its file systems", lambda: told("kubevirt_vmi_filesystem_used_bytes{", 'name="web"', 'mount_point="/"'))
        place.kubectl("delete", "vm", "web", "other", "-n", namespace, "--timeout=120s")
        eventually("its disk is gone", lambda: not list(bench.world.data.glob("machines/volumes/*/pvc-*")))


@scenario()
def called_off(bench):
    """`fairway vm migrate` begins a move that takes long, `fairway vm migrate-cancel` ends it: the guest goes on where it was, without a boot, and nothing is
    left on the other node."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    here = ("--kubeconfig", place.kubeconfig, "-n", namespace)
    # So slow that there is time to think better of it.
    place.apply({"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt", "namespace": namespace},
                 "spec": {"configuration": {"migrations": {"bandwidthPerMigration": "512Ki", "allowAutoConverge": False}}}})
    ssh, _ = web(bench, **IMAGE)
    ready(bench)
    key.login(ssh)
    first, boot = node_of(bench, "web"), boot_time(key, ssh)
    moving = lambda: status(bench, "vmi").get("migrationState", {})
    with node(bench) as second:
        eventually("it can move", lambda: condition(status(bench, "vmi"), "LiveMigratable").get("status") == "True")
        place.fairway("vm", *here, "migrate", "web")
        eventually("it is under way", lambda: moving().get("startTimestamp") and second.qemus())
        said = place.fairway("vm", *here, "migrate-cancel", "web")
        check(said == "VM web was scheduled to migrate-cancel\n", f"fairway vm migrate-cancel: {said}")
        state = eventually("it is over", lambda: moving() if moving().get("completed") else None)
        check(state.get("failed") and state.get("abortStatus") == "Succeeded", f"it was called off: {state}")
        eventually("the migration is gone", lambda: not place.get("vmim", "-n", namespace)["items"])
        eventually("nothing is left on the other node", lambda: not second.qemus())
        check(node_of(bench, "web") == first, "it is where it was")
        check(boot_time(key, ssh) == boot, "and has not booted")
        again = place.run(bench.world.binary, "vm", *here, "migrate-cancel", "web")
        check(again.returncode == 1, f"there is nothing to cancel any more: {again}")
        place.kubectl("delete", "vm", "web", "-n", namespace, "--timeout=120s")


@scenario()
def emptied(bench):
    """kubectl drain empties a node: what may move moves without a boot; what may not stays and runs, and nothing new is placed there."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    ssh, _ = web(bench, instance={"evictionStrategy": "LiveMigrate"}, **IMAGE)
    web(bench, "stays", instance={"evictionStrategy": "None"}, **IMAGE)
    for name in ("web", "stays"):
        ready(bench, name)
    key.login(ssh)
    first, boot = node_of(bench, "web"), boot_time(key, ssh)
    with node(bench) as second:
        eventually("it can move", lambda: condition(status(bench, "vmi"), "LiveMigratable").get("status") == "True")
        # There are no pods that it could wait for: it returns when the node is cordoned.
        said = place.kubectl("drain", first, "--ignore-daemonsets", "--timeout=60s")
        check("cordoned" in said and "drained" in said, f"kubectl drain: {said}")
        try:
            eventually("it is on the other node", lambda: node_of(bench, "web") == NAME)
            eventually("it answers there", lambda: boot_time(key, ssh) == boot)
            check(node_of(bench, "stays") == first, "the other one was not to move")
            check((len(second.qemus()), len(bench.world.qemus())) == (1, 1), "each runs once")
            (migration,) = place.get("vmim", "-n", namespace)["items"]
            check(migration["status"]["phase"] == "Succeeded", f"the migration: {migration['status']}")
            web(bench, "new", **IMAGE)
            eventually("a new one is placed on the other node", lambda: node_of(bench, "new") == NAME)
        finally:
            place.kubectl("uncordon", first)
        place.kubectl("delete", "vm", "web", "stays", "new", "-n", namespace, "--timeout=120s")
        eventually("nothing runs there", lambda: not second.qemus())
