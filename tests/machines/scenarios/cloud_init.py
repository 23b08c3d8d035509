"""What a seed comes to: the same on tiny as with the real cloud-init, and errors that are seen."""

import contextlib
import hashlib
import http.server
import pathlib
import re
import subprocess
import threading

from guest import boot_time, node_port
from manifests import from_image, machine, secret, service, user_data
from scenario import scenario
from scenarios.life import ready, status, web
from world import HERE, Skipped, check, eventually

FACTS = (HERE / "facts.sh").read_text()
SEED = """#cloud-config
hostname: web-1
groups: [engines]
ssh_pwauth: true
users:
  - default
  - name: ada
    gecos: Ada Lovelace
    groups: [adm, engines]
    shell: /bin/bash
    lock_passwd: false
    plain_text_passwd: 'count: 7'
    ssh_authorized_keys:
      - KEY
  - name: reader
    uid: 1234
    homedir: /srv/reader
write_files:
  - path: /etc/motd
    permissions: "0640"
    content: |
      Hello 'guest'
        indented
  - path: /srv/b64
    encoding: b64
    content: aGVsbG8=
    owner: ada:ada
    defer: true
  - path: /srv/append
    content: "one\\n"
  - path: /srv/append
    append: true
    content: "two\\n"
  - path: /srv/facts.sh
    content: |
FACTS
bootcmd:
  - echo boot >>/srv/bootcmd
runcmd:
  - [sh, -c, 'echo "list $0" > /srv/list', "it's"]
  - echo text >/srv/text
  - |
    for i in 1 2; do
      echo $i >>/srv/loop
    done
  - sh /srv/facts.sh ada reader /etc/motd /srv/b64 /srv/append /srv/bootcmd /srv/list /srv/text /srv/loop >/srv/facts 2>&1
"""


def facts(bench, image, memory):
    """Boots an image with the seed, and returns what it came to."""
    place, namespace = bench.place, bench.namespace
    script = "".join(f"      {line}\n" for line in FACTS.splitlines())
    seed = SEED.replace("KEY", bench.key.public).replace("FACTS\n", script)
    whole = machine(image, namespace, secret=f"{image}-seed", memory=memory)
    whole["spec"]["dataVolumeTemplates"][0]["spec"] = from_image(image, "3Gi")
    place.apply(secret(f"{image}-seed", namespace, userdata=seed), service(image, namespace, {"app": image}, ssh=22), whole)
    port = node_port(place, namespace, image, 22)
    bench.key.login(port, user="ada", patience=900)
    status = eventually("cloud-init has finished", lambda: finished(bench, port), patience=900, pause=2)
    told = bench.key.ssh(port, "cat /srv/facts", user="ada")
    if image == "debian":
        copied(bench, image)
    place.kubectl("delete", "vm", image, "-n", namespace, "--timeout=120s")
    return status, told


def copied(bench, name):
    """Files there and back by scp, which tiny does not have: virtctl's, and that of `fairway vm`."""
    place, scratch = bench.place, bench.world.scratch
    options = [f"--local-ssh-opts={it}" for it in ("-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "-oLogLevel=ERROR")]
    content = "copied there and back\n" * 1000
    (scratch / "there").write_text(content)
    for number, program in enumerate((("virtctl",), (bench.world.binary, "vm", "--kubeconfig", place.kubeconfig))):
        with_key = ("-n", bench.namespace, "-i", bench.key.path, *options)
        place.must(*program, "scp", scratch / "there", f"ada@vmi/{name}:copy{number}", *with_key)
        place.must(*program, "scp", f"ada@vmi/{name}:copy{number}", scratch / f"back{number}", *with_key)
        check((scratch / f"back{number}").read_text() == content, f"{program[0]}: what comes back is what was sent")


def finished(bench, port):
    said = bench.key.try_ssh(port, "cloud-init status --long", user="ada", timeout=60).stdout
    return said if re.search("^status: (done|error)", said, re.M) else None


@scenario(images=("tiny", "debian"))
def like_the_real_one(bench):
    """Users, keys, files, host name and commands are the same on tiny and with cloud-init on Debian."""
    tiny_status, tiny = facts(bench, "tiny", "128Mi")
    check("status: done" in tiny_status, tiny_status)
    debian_status, debian = facts(bench, "debian", "512Mi")
    check("status: done" in debian_status, debian_status)
    check(tiny == debian, f"they differ:\n{tiny}\n---\n{debian}")
    pathlib.Path(bench.world.scratch / "facts").write_text(tiny)


# Every card by a pattern, whatever the entry is called; what that means in general is a table in tests/machines/test_network_data.py.
BY_DHCP = """version: 2
ethernets:
  nic0:
    match: {name: "e*"}
    dhcp4: true
"""
# One by its hardware address, which gets a name, and everything else is fixed.
STATIC = """version: 1
config:
- type: physical
  name: lan0
  mac_address: "MAC"
  mtu: 1400
  subnets:
  - type: static
    address: ADDRESS
    netmask: 255.255.0.0
    gateway: 10.88.0.1
    dns_nameservers: [10.88.0.1]
    dns_search: [svc.cluster.local]
"""
ASK = "ip -o link; ip -o -4 addr; ip route; cat /etc/resolv.conf; ls /run/udhcpc.*.pid; cloud-init status --long"


@scenario(quick=True)
def network_data(bench):
    """A guest has its address by DHCP or from its seed alone, in both versions of network data; the card is found by a pattern or its hardware address."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    mac = "02:11:22:aa:bb:cc"

    def made(text):
        whole = machine("web", namespace, secret="web-seed", keys="web-ssh", instance={"terminationGracePeriodSeconds": 0})
        spec = whole["spec"]["template"]["spec"]
        spec["domain"]["devices"]["interfaces"] = [{"name": "default", "masquerade": {}, "macAddress": mac}]
        spec["volumes"][1]["cloudInitNoCloud"]["networkData"] = text
        return whole

    def told():
        place.wait("vmi/web", "condition=Ready", namespace)
        key.login(ssh)
        said = key.ssh(ssh, f"{ASK}; true")
        check("error: " not in said, f"nothing is wrong: {said}")
        return said

    place.apply(secret("web-seed", namespace, userdata=user_data("web")), secret("web-ssh", namespace, key=key.public),
                service("web", namespace, {"app": "web"}, ssh=22), made(BY_DHCP))
    ssh = node_port(place, namespace, "web", 22)
    ready(bench)
    said = told()
    address = status(bench, "vmi")["interfaces"][0]["ipAddress"]
    check(f"{address}/16" in said and "udhcpc.eth0.pid" in said, f"its address is by DHCP: {said}")

    # Capitals mean the same.
    place.apply(made(STATIC.replace("MAC", mac.upper()).replace("ADDRESS", address)))
    instance = lambda: (place.get("vmi", "web", "-n", namespace) or {"metadata": {"uid": None}})["metadata"]["uid"]
    before = instance()
    place.virtctl("restart", "web", "-n", namespace)
    # Whoever asks one that is about to end waits for an answer in vain.
    eventually("there is another instance", lambda: instance() not in (None, before))
    said = told()
    check("lan0:" in said and "eth0" not in said, f"the card has the name of the seed: {said}")
    check(f"{address}/16" in said and "udhcpc." not in said, f"the address is the seed's, nobody asked for one: {said}")
    check("default via 10.88.0.1" in said and "mtu 1400" in said, f"router and MTU: {said}")
    check("nameserver 10.88.0.1" in said and "search svc.cluster.local" in said, f"names: {said}")
    cluster_ip = place.get("service", "web", "-n", namespace)["spec"]["clusterIP"]
    check(cluster_ip in key.ssh(ssh, f"nslookup web.{namespace}.svc.cluster.local"), "names are answered")


@scenario()
def errors_are_seen(bench):
    """Packages on tiny end in an error that cloud-init's status shows, and the console, too."""
    ssh, _ = web(bench, seed=user_data("web") + "packages: [nginx]\n")
    ready(bench)
    bench.key.login(ssh)
    said = eventually("cloud-init has finished", lambda: bench.key.try_ssh(ssh, "cloud-init status --long --wait", timeout=60).stdout)
    check("status: error" in said and "packages: this guest cannot do that" in said, said)
    check(boot_time(bench.key, ssh), "the rest works")


PACKAGE = "fairway-greeting"
CONTROL = f"""Package: {PACKAGE}
Version: 1.0
Architecture: all
Maintainer: Fairway's tests <tests@fairway.invalid>
Description: a file, to see that packages are installed
"""
WITH_PACKAGES = f"""#cloud-config
hostname: packed
users:
  - name: ada
    ssh_authorized_keys: [KEY]
bootcmd:
  # Those that the image was built from are not to be reached from here.
  - rm -f /etc/apt/sources.list.d/*
apt:
  preserve_sources_list: false
  sources_list: |
    deb [trusted=yes] http://AT/ ./
package_update: true
packages: [{PACKAGE}]
"""


def apt_repository(folder):
    """A repository of Debian packages with one in it: what apt asks for first, and the package."""
    tree = folder / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(CONTROL)
    (tree / "usr" / "share" / PACKAGE).mkdir(parents=True)
    (tree / "usr" / "share" / PACKAGE / "greeting").write_text("hello from a package\n")
    served = folder / "served"
    served.mkdir()
    package = served / f"{PACKAGE}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", str(tree), str(package)], check=True, stdout=subprocess.DEVNULL)
    content = package.read_bytes()
    (served / "Packages").write_text(
        f"{CONTROL}Filename: ./{package.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n")
    return served


@contextlib.contextmanager
def served(folder, address, port):
    """A web server of this host with the files of a folder; what it was asked for."""
    asked = []

    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *words):
            super().__init__(*words, directory=str(folder))

        def log_message(self, _, *words):
            asked.append(str(words[0]))

    with http.server.ThreadingHTTPServer((address, port), Files) as it:
        thread = threading.Thread(target=it.serve_forever, daemon=True)
        thread.start()
        try:
            yield asked
        finally:
            it.shutdown()
            thread.join()


@scenario(images=("debian",))
def packages_come(bench):
    """Packages are installed on Debian, from a repository on the host that the operator allows, through the switch."""
    if not bench.world.allowed:
        raise Skipped("this host has no address of its own that machines could be allowed to reach", cannot="address")
    place, namespace, (address, port) = bench.place, bench.namespace, bench.world.allowed
    folder = bench.world.scratch / "apt"
    seed = WITH_PACKAGES.replace("KEY", bench.key.public).replace("AT", f"{address}:{port}")
    whole = machine("packed", namespace, secret="packed-seed", memory="512Mi")
    whole["spec"]["dataVolumeTemplates"][0]["spec"] = from_image("debian", "3Gi")
    with served(apt_repository(folder), address, port) as asked:
        place.apply(secret("packed-seed", namespace, userdata=seed), service("packed", namespace, {"app": "packed"}, ssh=22), whole)
        ssh = node_port(place, namespace, "packed", 22)
        bench.key.login(ssh, user="ada", patience=900)
        said = eventually("cloud-init has finished", lambda: finished(bench, ssh), patience=900, pause=2)
        check("status: done" in said, f"{said}\nasked for: {asked}")
        greeting = bench.key.ssh(ssh, f"cat /usr/share/{PACKAGE}/greeting", user="ada")
        check(greeting == "hello from a package", greeting)
        check(any(f"{PACKAGE}.deb" in it for it in asked), f"it came from the repository: {asked}")
