"""What a machine starts with: UEFI, a ConfigDrive, and objects as disks."""

import base64
import json
import shutil

from guest import node_port
from manifests import machine, secret, service, user_data
from scenario import scenario
from scenarios.life import condition, printable, ready, status
from world import Skipped, check, eventually

# Every disk whose serial number is a name is copied to where anybody can read it.
SHOW = """- |
  for it in /sys/block/vd*; do
      name=$(cat $it/serial)
      case $name in
          from-*)
              mkdir -p /mnt/$name /srv/$name
              mount -o ro /dev/${it##*/} /mnt/$name
              cp -r /mnt/$name/. /srv/$name/
              chmod -R a+rX /srv/$name
              ;;
      esac
  done
"""


def disk(name, **source):
    """A volume and the disk that it is."""
    return {"name": name, **source}, {"name": name, "serial": name, "disk": {"bus": "virtio"}}


def claims(token):
    """What a token says."""
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


@scenario()
def uefi_and_disks_of_objects(bench):
    """UEFI, a ConfigDrive, and a Secret, a ConfigMap and a ServiceAccount as disks, all as the guest sees them."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    place.apply(
        secret("hidden", namespace, word="open sesame"),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "told", "namespace": namespace}, "data": {"app.conf": "color = blue\n"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": namespace}},
        secret("seed", namespace, userdata=user_data("web") + SHOW),
        secret("keys", namespace, key=key.public),
        service("web", namespace, {"app": "web"}, ssh=22),
    )
    volumes, disks = zip(
        ({"name": "seed", "cloudInitConfigDrive": {"secretRef": {"name": "seed"}}}, {"name": "seed", "disk": {"bus": "virtio"}}),
        disk("from-secret", secret={"secretName": "hidden"}),
        disk("from-map", configMap={"name": "told"}),
        disk("from-account", serviceAccount={"serviceAccountName": "robot"}),
    )
    # UEFI needs more than a guest of ours has elsewhere.
    made = machine("web", namespace, memory="256Mi", volumes=volumes, disks=disks)
    spec = made["spec"]["template"]["spec"]
    spec["domain"]["firmware"] = {"bootloader": {"efi": {"secureBoot": False}}}
    spec["accessCredentials"] = [{"sshPublicKey": {"source": {"secret": {"secretName": "keys"}}, "propagationMethod": {"configDrive": {}}}}]
    place.apply(made)
    ssh = node_port(place, namespace, "web", 22)
    ready(bench)
    key.login(ssh)
    check(key.ssh(ssh, "hostname") == "web", "user data and keys came by the ConfigDrive")
    check(key.ssh(ssh, "ls -d /sys/firmware/efi") == "/sys/firmware/efi", "the guest was started by UEFI")
    check(not condition(status(bench, "vmi"), "SpecHonoured"), f"all of it is followed: {status(bench, 'vmi')}")

    check(key.ssh(ssh, "cat /srv/from-secret/word") == "open sesame", "the Secret is a disk")
    check(key.ssh(ssh, "cat /srv/from-map/app.conf") == "color = blue", "the ConfigMap is a disk")
    check(key.ssh(ssh, "cat /srv/from-account/namespace") == namespace, "the ServiceAccount is a disk")
    said = claims(key.ssh(ssh, "cat /srv/from-account/token"))
    check(said["sub"] == f"system:serviceaccount:{namespace}:robot", f"its token is one of it: {said}")

    place.kubectl("delete", "vm", "web", "-n", namespace, "--timeout=120s")
    eventually("nothing is left of it", lambda: not list(bench.world.data.glob("machines/run/*/*")))


@scenario()
def variables_go(bench):
    """What a UEFI guest and a TPM store lives as long as the instance: whoever asks for more is told so, and the machine runs."""
    if not shutil.which("swtpm"):
        raise Skipped("there is no swtpm here")
    place, namespace = bench.place, bench.namespace
    made = machine("web", namespace, disk=None, memory="256Mi", instance={"terminationGracePeriodSeconds": 0})
    domain = made["spec"]["template"]["spec"]["domain"]
    domain["firmware"] = {"bootloader": {"efi": {"secureBoot": False, "persistent": True}}}
    domain["devices"]["tpm"] = {"persistent": True}
    done = place.run("kubectl", "apply", "-f", "-", stdin=json.dumps(made))
    for field in ("efi.persistent", "tpm.persistent"):
        check(done.returncode == 0 and field in done.stderr, f"kubectl prints a warning about {field}: {done}")
    printable(bench, "Running")
    told = eventually("the instance says so", lambda: condition(status(bench, "vmi"), "SpecHonoured"))
    check(told["reason"] == "FieldsNotHonoured" and "efi.persistent" in told["message"], f"the instance says so: {told}")
