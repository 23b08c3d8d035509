"""Objects of machines, as people write them."""

import base64


def machine(name, namespace, *, disk="root", strategy="Always", memory="128Mi", cores=1, labels=None, volumes=(), disks=(),
            secret=None, user_data=None, keys=None, instance=None, metadata=None, **spec):
    """A VirtualMachine. `disk`: a DataVolume from the image tiny, made with the machine; None for a machine without one."""
    volume_list, disk_list = [], []
    if disk:
        volume_list.append({"name": "root", "dataVolume": {"name": f"{name}-{disk}"}})
        disk_list.append({"name": "root", "disk": {"bus": "virtio"}})
    if secret or user_data:
        source = {"secretRef": {"name": secret}} if secret else {"userData": user_data}
        volume_list.append({"name": "cloud-init", "cloudInitNoCloud": source})
        disk_list.append({"name": "cloud-init", "disk": {"bus": "virtio"}})
    template = {
        "domain": {
            "cpu": {"cores": cores},
            "memory": {"guest": memory},
            "devices": {
                "disks": disk_list + list(disks),
                "interfaces": [{"name": "default", "masquerade": {}}],
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "terminationGracePeriodSeconds": 30,
        "volumes": volume_list + list(volumes),
    }
    if keys:
        source = {"secret": {"secretName": keys}}
        template["accessCredentials"] = [{"sshPublicKey": {"source": source, "propagationMethod": {"noCloud": {}}}}]
    template.update(instance or {})
    whole = {
        "runStrategy": strategy,
        "template": {"metadata": {"labels": {"app": name, **(labels or {})}}, "spec": template},
        **spec,
    }
    if disk:
        whole["dataVolumeTemplates"] = [{"metadata": {"name": f"{name}-{disk}"}, "spec": from_image()}]
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": namespace, **(metadata or {})},
        "spec": whole,
    }


def from_image(image="tiny", size="512Mi"):
    return {
        "sourceRef": {"kind": "DataSource", "name": image, "namespace": "fairway-images"},
        "storage": {"resources": {"requests": {"storage": size}}},
    }


def data_volume(name, namespace, source, size="64Mi", **spec):
    return {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"source": source, "storage": {"resources": {"requests": {"storage": size}}}, **spec},
    }


def secret(name, namespace, **values):
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


def service(name, namespace, selector, *, kind="NodePort", **ports):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": kind, "selector": selector,
                 "ports": [{"name": key, "port": number} for key, number in ports.items()]},
    }


# A web server that starts at every boot, and a user with keys of the machine's access credentials.
USER_DATA = """#cloud-config
hostname: {name}
user: {{name: demo}}
write_files:
- path: /srv/www/index.html
  content: |
    {greeting}
bootcmd:
- mkdir -p /srv/www
- busybox httpd -p 8080 -h /srv/www
"""


def user_data(name, greeting=None):
    return USER_DATA.format(name=name, greeting=greeting or f"hello from {name}")
