"""`fairway vm`, beside the real virtctl where both can be asked."""

import json
import subprocess

from guest import Key, Terminal, banner, boot_time, forwarded, http, node_port
from manifests import from_image, machine, secret, service, user_data
from scenario import scenario
from scenarios.life import ready, web
from world import Failed, check, eventually

SSH = ("-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "-oLogLevel=ERROR")


@scenario(quick=True)
def verbs(bench):
    """console, ssh, scp, port-forward, vnc, screenshot, pause, credentials, freeze, reset, soft-reboot, stop and start of `fairway vm`; what the
    agent tells is what virtctl shows."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    # Keys by the seed for the first login, and by the agent for whoever comes later.
    source = lambda name: {"source": {"secret": {"secretName": name}}}
    place.apply(secret("web-agent", namespace, first=key.public))
    ssh, _ = web(bench, instance={"accessCredentials": [
        {"sshPublicKey": {**source("web-ssh"), "propagationMethod": {"noCloud": {}}}},
        {"sshPublicKey": {**source("web-agent"), "propagationMethod": {"qemuGuestAgent": {"users": ["demo"]}}}}]})
    # The kubeconfig of the place, whatever else this host has.
    here = ("--kubeconfig", place.kubeconfig)

    def vm(*words, **options):
        return place.fairway("vm", *here, *words, **options)

    # From here on the console waits by itself.
    eventually("there is an instance", lambda: place.get("vmi", "web", "-n", namespace))
    console = Terminal(place, bench.world.binary, "vm", *here, "console", f"{namespace}/web")
    try:
        console.expect("Successfully connected to web console")
        console.expect("web login:", nudge="\n")
        console.type("\x1d")
        check(console.end() == 0, "the console is left by ctrl-]")
    finally:
        console.close()
    ready(bench)
    key.login(ssh)
    options = [f"--local-ssh-opts={it}" for it in SSH]
    said = vm("ssh", "demo@vm/web", "-n", namespace, "-i", key.path, *options, "--command", "hostname; cat /etc/hostname")
    check(said.split() == ["web", "web"], f"fairway vm ssh: {said!r}")
    done = place.run(bench.world.binary, "vm", *here, "ssh", f"demo@{namespace}/web", "-i", key.path, *options, "-c", "exit 7")
    check(done.returncode == 7, f"the exit code of the command is that of fairway vm ssh: {done}")
    # The guest has no scp: that it says so shows that scp got there, and what it asked for.
    done = place.run(bench.world.binary, "vm", *here, "scp", key.path, f"demo@vmi/web.{namespace}:/tmp/key", "-i", key.path,
                     "-t", "-O", *options)
    check(done.returncode == 1 and "scp: not found" in done.stderr, f"fairway vm scp: {done}")
    with forwarded(place, bench.world.binary, "vm", *here, "port-forward", f"{namespace}/web", "0:8080",
                   marker=r"forwarding tcp 127\.0\.0\.1:(\d+) to 8080") as port:
        check("hello from web" in eventually("HTTP", lambda: http(port)), "HTTP through a forwarded port")
    done = place.run(bench.world.binary, "vm", *here, "port-forward", "--stdio", f"vm/web.{namespace}", "8080",
                     stdin="GET / HTTP/1.0\r\n\r\n")
    check("hello from web" in done.stdout, f"what is said after the end of the input is heard: {done}")
    with forwarded(place, bench.world.binary, "vm", *here, "vnc", "web", "-n", namespace, "--proxy-only",
                   marker=r'"port": ?(\d+)') as port:
        check(banner(port).startswith(b"RFB 003.00"), "the screen speaks RFB")
    picture = bench.world.scratch / "screen.png"
    vm("vnc", "screenshot", "web", "-n", namespace, "-f", picture)
    check(picture.read_bytes().startswith(b"\x89PNG\r\n"), "a picture of the screen")

    for verb in ("guestosinfo", "fslist", "userlist"):
        told = eventually("the agent answers", lambda verb=verb: json.loads(vm(verb, f"{namespace}/web")))
        virtctl = json.loads(place.virtctl(verb, "web", "-n", namespace))
        if verb == "guestosinfo":
            check(told.get("hostname") == virtctl.get("hostname") == "web", f"{verb}: {told} {virtctl}")
        else:
            check(len(told.get("items") or []) == len(virtctl.get("items") or []), f"{verb}: {told} {virtctl}")

    def paused():
        found = place.get("vmi", "web", "-n", namespace)
        return any(it["type"] == "Paused" and it["status"] == "True" for it in found["status"]["conditions"])

    check(vm("pause", "vm", "web", "-n", namespace) == "VMI web was scheduled to pause\n", "pause")
    eventually("it is paused", paused)
    for program in (("virtctl",), (bench.world.binary, "vm", *here)):
        again = place.run(*program, "pause", "vm", "web", "-n", namespace)
        check(again.returncode == 1 and "VMI is already paused" in again.stderr, f"{program} pause of a paused one: {again}")
    vm("unpause", "web", "-n", namespace)
    eventually("it goes on", lambda: not paused())
    for program in (("virtctl",), (bench.world.binary, "vm", *here)):
        again = place.run(*program, "unpause", "vm", "web", "-n", namespace)
        check(again.returncode == 1 and "VMI is not paused" in again.stderr, f"{program} unpause of one that runs: {again}")
    more = Key(bench.world.scratch, "more")
    which = ("-u", "demo", "-f", more.path.with_suffix(".pub"), f"{namespace}/web")
    check(more.try_ssh(ssh, "true").returncode == 255, "a stranger's key")
    done = place.run(bench.world.binary, "vm", *here, "credentials", "add-ssh-key", *which)
    check(done.returncode == 1 and "does not have an owner reference" in done.stderr, f"a Secret that may be that of others: {done}")
    vm("credentials", "add-ssh-key", "--force", *which)
    eventually("the new key lets in", lambda: more.try_ssh(ssh, "true").returncode == 0)
    vm("credentials", "remove-ssh-key", "--force", *which)
    eventually("and no longer does", lambda: more.try_ssh(ssh, "true").returncode == 255)
    check(key.ssh(ssh, "hostname") == "web", "the other key still does")

    frozen = lambda: json.loads(vm("guestosinfo", f"{namespace}/web")).get("fsFreezeStatus") == "frozen"
    vm("freeze", f"{namespace}/web", "--unfreeze-timeout=1m")
    eventually("its file systems are frozen", frozen)
    vm("unfreeze", f"{namespace}/web")
    eventually("and no longer", lambda: not frozen())

    first = boot_time(key, ssh)
    vm("reset", f"{namespace}/web")
    eventually("it boots again", lambda: boot_time(key, ssh) != first)
    first = boot_time(key, ssh)
    vm("soft-reboot", f"{namespace}/web")
    eventually("it boots again", lambda: boot_time(key, ssh) != first)
    vm("stop", f"{namespace}/web")
    place.kubectl("wait", "vmi/web", "-n", namespace, "--for=delete", "--timeout=120s")
    vm("start", f"{namespace}/web")
    ready(bench)


@scenario(quick=True)
def disks(bench):
    """`fairway vm image-upload`, `addvolume`, `removevolume`, `restart` and `expose`, and `fairway image import` and `rm`, on a real guest: an image of a
    file, a machine from it, a disk that was sent, plugged and pulled, a Service."""
    place, namespace, key, world = bench.place, bench.namespace, bench.key, bench.world
    here = ("--kubeconfig", place.kubeconfig, "-n", namespace)
    vm = lambda *words, **options: place.fairway("vm", *here, *words, **options)
    image = lambda *words: place.fairway("image", *words, "--data", world.data)
    names = lambda: [it["name"] for it in json.loads(image("list", "-o", "json"))]

    # An image that somebody brings along: the disk of tiny, packed.
    (tiny,) = [it for it in json.loads(image("list", "-o", "json")) if it["name"] == "tiny"]
    packed = world.scratch / "brought.qcow2"
    subprocess.run(["qemu-img", "convert", "-O", "qcow2", "-c", str(world.data / "images" / "blobs" / tiny["digest"]), str(packed)], check=True)
    image("import", packed)
    check("brought" in names(), f"fairway image import: {names()}")
    made = machine("web", namespace, secret="web-seed", keys="web-ssh", instance={"terminationGracePeriodSeconds": 0})
    made["spec"]["dataVolumeTemplates"][0]["spec"] = from_image("brought")
    # A Service by its command instead of a manifest.
    made["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][0]["ports"] = [{"name": "ssh", "port": 22}]
    place.apply(secret("web-seed", namespace, userdata=user_data("web")), secret("web-ssh", namespace, key=key.public), made)
    said = vm("expose", "vm", "web", "--name=web", "--type=NodePort", "--port=22", "--target-port=ssh")
    check(said == "Service web successfully created for vm web\n", f"fairway vm expose: {said}")
    ssh = node_port(place, namespace, "web", 22)
    ready(bench)
    key.login(ssh)

    data = world.scratch / "data.raw"
    data.write_bytes(b"sent".ljust(48 << 20, b"\0"))
    said = vm("image-upload", "dv", "sent", "--size=48Mi", f"--image-path={data}", "--insecure")
    check("Uploading" in said and "completed successfully" in said, f"fairway vm image-upload: {said}")
    place.wait("dv/sent", "jsonpath={.status.phase}=Succeeded", namespace)
    boot = boot_time(key, ssh)
    # A user reads no disks; it is known by its length.
    there = lambda: str((48 << 20) // 512) in key.ssh(ssh, "cat /sys/block/[sv]d*/size").split()
    check(vm("addvolume", "web", "--volume-name=sent").startswith("Successfully submitted add volume request"), "fairway vm addvolume")
    eventually("the guest sees the disk", there)
    said = vm("removevolume", "web", "--volume-name=sent")
    check(said.startswith("Successfully submitted remove volume request"), f"fairway vm removevolume: {said}")
    eventually("the guest sees it go", lambda: not there())
    # Declared with the machine, it is there after a restart, too.
    vm("addvolume", "web", "--volume-name=sent", "--persist")
    eventually("the guest sees it again", there)
    check(boot_time(key, ssh) == boot, "nothing of that was a boot")
    instance = lambda: (place.get("vmi", "web", "-n", namespace) or {"metadata": {"uid": None}})["metadata"]["uid"]
    before = instance()
    check(vm("restart", "web") == "VM web was scheduled to restart\n", "fairway vm restart")
    eventually("there is another instance", lambda: instance() not in (None, before))
    place.wait("vmi/web", "condition=Ready", namespace)
    key.login(ssh)
    check(boot_time(key, ssh) != boot, "it has booted")
    eventually("the disk is still the machine's", there)

    # Machines keep their disks when an image is forgotten; new ones do not find it.
    image("rm", "brought")
    check("brought" not in names(), f"fairway image rm: {names()}")
    check(key.ssh(ssh, "hostname") == "web", "the machine goes on")


@scenario(quick=True)
def why(bench):
    """`fairway vm why` names the first broken link: no such image, not enough memory, a cloud-init that failed, a Service
    that selects others; and says when all is well. `list`, `top` and `events` show the same machines."""
    place, namespace = bench.place, bench.namespace
    here = ("--kubeconfig", place.kubeconfig, "-n", namespace)

    def ask(name):
        done = place.run(bench.world.binary, "vm", *here, "why", name, "-o", "json")
        if done.returncode == 1:
            return 1, {"link": None}, {"error": done.stderr}
        told = json.loads(done.stdout)
        named = [it for it in told["links"] if it["link"] == told["firstBroken"]]
        return done.returncode, (named or told["links"])[0], told

    def broken(name, link, words, evidence=None):
        """Waits until this link is the one that is broken."""
        def look():
            code, last, told = ask(name)
            is_it = (code, last["link"], last["state"]) == (2, link, "broken") and words in last["finding"]
            shown = evidence is None or any(evidence in f"{it['seenIn']}: {it['message']}" for it in last["evidence"])
            if not (is_it and shown):
                raise Failed(f"{told}")
            return last
        return eventually(f"{name}: {link} is broken: {words}", look)

    code, _, told = ask("nobody")
    check(code == 1 and "there is no VirtualMachine nobody" in told["error"], f"a machine that does not exist: {told}")

    lost = machine("lost", namespace)
    lost["spec"]["dataVolumeTemplates"][0]["spec"]["sourceRef"]["name"] = "no-such-image"
    place.apply(lost, machine("giant", namespace, disk=None, memory="4Ti"))
    broken("lost", "disk", "the DataSource fairway-images/no-such-image, which does not exist")
    broken("giant", "scheduling", "no node takes it")

    place.apply(machine("seeded", namespace, user_data="#cloud-config\npackages: [nginx]\n"))
    broken("seeded", "cloud-init", "packages", evidence="console: ")
    # A guest that prints nothing has an agent that can be asked all the same.
    found = broken("seeded", "cloud-init", "packages", evidence="cloud-init in the guest, by its agent: packages")
    check(found["advice"], f"there is something to do: {found}")
    place.fairway("vm", *here, "stop", "seeded", "--force", "--grace-period=0")
    place.kubectl("wait", "vmi/seeded", "-n", namespace, "--for=delete", "--timeout=60s")

    web(bench)
    ready(bench)

    def well():
        code, _, told = ask("web")
        return code == 0 and told["verdict"] == "every link holds"
    eventually("all is well", well)
    place.apply(service("web", namespace, {"app": "wep"}, ssh=22, http=8080))
    broken("web", "Service", "selects other labels", evidence="app=wep")
    text = place.run(bench.world.binary, "vm", *here, "why", "web").stdout
    check("the first broken link is Service" in text, f"the same for people: {text}")

    listed = place.fairway("vm", *here, "list", "-o", "wide")
    line = next(it.split() for it in listed.splitlines() if it.startswith("web "))
    check(line[1:3] == ["Running", "True"] and line[3].startswith("10."), f"fairway vm list: {listed}")
    used = json.loads(place.fairway("vm", *here, "top", "-o", "json"))
    check([it["name"] for it in used if it["memoryBytes"] > 32 << 20 and it["cpuMillicores"] >= 0] == ["web"],
          f"fairway vm top: {used}")
    events = place.fairway("vm", *here, "events", "web")
    check("virtualmachine/web" in events and "virtualmachine/giant" not in events, f"fairway vm events: {events}")
    place.apply(service("web", namespace, {"app": "web"}, ssh=22, http=8080))
    place.fairway("vm", *here, "stop", "web", "--force", "--grace-period=0")

    def off():
        code, _, told = ask("web")
        is_off = any(it["state"] == "off" for it in told["links"])
        return code == 0 and is_off and "nothing is broken" in told["verdict"]
    eventually("one that is stopped is not broken", off)
