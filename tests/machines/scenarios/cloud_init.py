"""What a seed comes to: the same on tiny as with the real cloud-init, and errors that are seen."""

import pathlib
import re

from guest import boot_time
from manifests import from_image, machine, secret, service
from guest import node_port
from scenario import scenario
from scenarios.life import ready, web
from world import HERE, check, eventually

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
    place.kubectl("delete", "vm", image, "-n", namespace, "--timeout=120s")
    return status, told


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


@scenario()
def errors_are_seen(bench):
    """Packages on tiny end in an error that cloud-init's status shows, and the console, too."""
    from manifests import user_data
    ssh, _ = web(bench, seed=user_data("web") + "packages: [nginx]\n")
    ready(bench)
    bench.key.login(ssh)
    said = eventually("cloud-init has finished", lambda: bench.key.try_ssh(ssh, "cloud-init status --long --wait", timeout=60).stdout)
    check("status: error" in said and "packages: this guest cannot do that" in said, said)
    check(boot_time(bench.key, ssh), "the rest works")
