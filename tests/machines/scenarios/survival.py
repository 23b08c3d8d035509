"""What happens to guests when something is killed."""

import os
import signal
import time

from guest import boot_time, http
from manifests import user_data
from scenario import scenario
from scenarios.life import printable, ready, status, web
from scenarios.strategies import bare, phase
from world import check, eventually


@scenario(quick=True)
def killed(bench):
    """A killed Fairway finds its machine again, untouched and on the network; a killed QEMU is started again."""
    world, key = bench.world, bench.key
    ssh, web_port = web(bench)
    ready(bench)
    key.login(ssh)
    first, process = boot_time(key, ssh), world.qemus()
    check(len(process) == 1, f"one QEMU: {process}")

    world.kill()
    check(world.qemus() == process, "the guest outlives Fairway")
    world.start()
    check(boot_after(bench, ssh) == first, "the same boot goes on")
    check(world.qemus() == process, "the same process goes on")
    check("hello from web" in eventually("HTTP answers", lambda: http(web_port)), "the web server answers")
    ready(bench)

    world.stop()
    check(world.qemus() == process, "the guest outlives the end of Fairway")
    world.start()
    check(boot_after(bench, ssh) == first, "the same boot goes on after an orderly end")

    os.kill(process[0], signal.SIGKILL)
    eventually("another QEMU runs", lambda: [pid for pid in world.qemus() if pid not in process])
    check(boot_after(bench, ssh) != first, "it has booted again")
    ready(bench)
    reasons = {it["reason"] for it in bench.place.get("events", "-n", bench.namespace)["items"]}
    check("Stopped" in reasons or "Failed" in reasons or "Crashed" in reasons, f"an event tells of the end: {reasons}")


def boot_after(bench, ssh):
    return eventually("the guest answers", lambda: boot_time(bench.key, ssh))


@scenario()
def killed_while_away(bench):
    """A QEMU that is killed while Fairway is down is started again when Fairway comes back."""
    world, key = bench.world, bench.key
    ssh, _ = web(bench)
    ready(bench)
    key.login(ssh)
    first, process = boot_time(key, ssh), world.qemus()
    world.kill()
    os.kill(process[0], signal.SIGKILL)
    eventually("no QEMU runs", lambda: not world.qemus())
    world.start()
    check(boot_after(bench, ssh) != first, "it has booted again")


@scenario()
def again_and_again(bench):
    """A QEMU that is killed as soon as it runs is started again at once, and when that happens again after a pause, which the machine tells of."""
    world = bench.world
    bare(bench, "m", "Always")
    printable(bench, "Running", "m")

    def kill():
        (pid,) = world.qemus()
        os.kill(pid, signal.SIGKILL)
        return pid, time.monotonic()

    another = lambda pid: [it for it in world.qemus() if it != pid]
    first, _ = kill()
    eventually("it is started again", lambda: another(first))
    eventually("it runs again", lambda: phase(bench, "m") == "Running" and another(first))
    second, killed = kill()
    eventually("the machine tells of it", lambda: status(bench, "vm", "m").get("printableStatus") == "CrashLoopBackOff")
    failure = status(bench, "vm", "m").get("startFailure", {})
    check(failure.get("consecutiveFailCount") == 2 and failure.get("retryAfterTimestamp"), f"how often, and until when it waits: {failure}")
    check(not world.qemus(), "nothing runs meanwhile")
    eventually("it is started once more", lambda: another(second), patience=60)
    check(9 < time.monotonic() - killed < 40, f"after a pause of {time.monotonic() - killed:.0f} s")
    printable(bench, "Running", "m")


@scenario()
def deaf_guest(bench):
    """A guest that ignores the power button is ended when its grace period is over, and not before."""
    place, world = bench.place, bench.world
    deaf = user_data("web").replace("bootcmd:", "bootcmd:\n- rm -rf /etc/acpi /sbin/shutdown")
    ssh, _ = web(bench, seed=deaf, instance={"terminationGracePeriodSeconds": 12})
    ready(bench)
    bench.key.login(ssh)
    began = time.monotonic()
    place.virtctl("stop", "web", "-n", bench.namespace)
    printable(bench, "Stopped")
    took = time.monotonic() - began
    check(10 < took < 60, f"it took {took:.0f} s")
    check(not world.qemus(), "no QEMU runs")


@scenario()
def guest_powers_off(bench):
    """What a guest that powers off itself means is for the run strategy to say: Always boots it again, RerunOnFailure does not."""
    place, key = bench.place, bench.key
    ssh, _ = web(bench, seed=ROOT_TOO.format(key=key.public) + user_data("web").removeprefix("#cloud-config\n"))
    ready(bench)
    key.login(ssh, user="root")
    first = boot_time(key, ssh, user="root")
    key.try_ssh(ssh, "poweroff", user="root")
    eventually("it boots again", lambda: boot_time(key, ssh, user="root") != first)
    place.kubectl("patch", "vm", "web", "-n", bench.namespace, "--type=merge", "-p", '{"spec": {"runStrategy": "RerunOnFailure"}}')
    ready(bench)
    key.try_ssh(ssh, "poweroff", user="root")
    printable(bench, "Stopped")
    check(not bench.world.qemus(), "no QEMU runs")


ROOT_TOO = """#cloud-config
users:
- default
- name: root
  ssh_authorized_keys: ["{key}"]
"""
