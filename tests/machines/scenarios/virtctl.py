"""The real virtctl."""

import json
import subprocess

from guest import Terminal, banner, boot_time, forwarded, http
from manifests import machine
from scenario import scenario
from scenarios.life import ready, web
from world import check, eventually, servers


@scenario(quick=True)
def doors(bench):
    """console, ssh, scp, port-forward and vnc (proxy only) of the real virtctl; guestosinfo, fslist, userlist."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    ssh, _ = web(bench)
    ready(bench)
    console = Terminal(place, "virtctl", "console", "web", "-n", namespace)
    try:
        console.expect("web login:", nudge="\n")
        console.type("\x1d")
        check(console.end() == 0, "the console is left by ctrl-]")
    finally:
        console.close()
    key.login(ssh)
    options = [f"--local-ssh-opts={it}" for it in ("-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "-oLogLevel=ERROR")]
    said = place.virtctl("ssh", "demo@vmi/web", "-n", namespace, "-i", key.path, *options, "--command", "hostname")
    check(said.strip() == "web", f"virtctl ssh: {said!r}")
    # The guest has no scp: that it says so shows that scp got there. Where there is one files are copied (cloud_init/like-the-real-one).
    done = place.run("virtctl", "scp", key.path, "demo@vmi/web:/tmp/key", "-n", namespace, "-i", key.path, "--local-ssh-opts=-O", *options)
    check(done.returncode == 1 and "scp: not found" in done.stderr, f"virtctl scp: {done}")
    # Not 8080 here, too: a gateway may have that.
    ports = f"{servers.free_port()}:8080"
    with forwarded(place, "virtctl", "port-forward", "vmi/web", "-n", namespace, ports, marker=r"127\.0\.0\.1:(\d+)") as port:
        check("hello from web" in eventually("HTTP", lambda: http(port)), "HTTP through a forwarded port")
    with forwarded(place, "virtctl", "vnc", "web", "-n", namespace, "--proxy-only", marker=r'"port": ?(\d+)') as port:
        check(banner(port).startswith(b"RFB 003.00"), "the screen speaks RFB")
    told = eventually("the agent answers", lambda: json.loads(place.virtctl("guestosinfo", "web", "-n", namespace)))
    check(told.get("hostname") == "web", f"guestosinfo: {told}")
    check("items" in json.loads(place.virtctl("fslist", "web", "-n", namespace)), "fslist")
    place.virtctl("userlist", "web", "-n", namespace)
    first = boot_time(key, ssh)
    place.virtctl("soft-reboot", "web", "-n", namespace)
    eventually("it boots again", lambda: boot_time(key, ssh) != first)


@scenario()
def image_upload(bench):
    """virtctl image-upload brings a disk of one's own, and a machine boots from it."""
    place, namespace = bench.place, bench.namespace
    images = json.loads(place.fairway("image", "list", "--data", bench.world.data, "-o", "json"))
    tiny = next(it for it in images if it["name"] == "tiny")
    blob = bench.world.data / "images" / "blobs" / tiny["digest"]
    packed = bench.world.scratch / "disk.qcow2"
    subprocess.run(["qemu-img", "convert", "-O", "qcow2", "-c", str(blob), str(packed)], check=True)
    # Where to send it is asked of the CDIConfig, and can be said.
    send = ["image-upload", "-n", namespace, "--size=512Mi", f"--image-path={packed}", "--insecure"]
    place.virtctl(*send, "dv", "mine")
    place.wait("dv/mine", "jsonpath={.status.phase}=Succeeded", namespace)
    config = place.get("cdiconfig/config")
    place.virtctl(*send, "pvc", "plain", f"--uploadproxy-url={config['status']['uploadProxyURL']}")
    for name in ("mine", "plain"):
        disk = bench.world.disk(place, namespace, name)
        subprocess.run(["qemu-img", "compare", "-q", str(blob), str(disk)], check=True)
    # Nobody sends into a disk that is there, nor anything that is none.
    for name, path in (("mine", packed), ("other", __file__)):
        refused = [it if not it.startswith("--image-path") else f"--image-path={path}" for it in send]
        said = place.run("virtctl", *refused, "dv", name)
        check(said.returncode != 0, f"{name}: {said.stdout} {said.stderr}")
    volume = {"name": "root", "dataVolume": {"name": "mine"}}
    disk = {"name": "root", "disk": {"bus": "virtio"}}
    place.apply(machine("own", namespace, disk=None, volumes=[volume], disks=[disk], memory="160Mi"))
    ready(bench, "own")
    console = Terminal(place, "virtctl", "console", "own", "-n", namespace)
    try:
        console.expect("login:", nudge="\n")
    finally:
        console.close()
