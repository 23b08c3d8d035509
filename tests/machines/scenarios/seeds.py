"""Manifests that people wrote: what becomes of each as it is, and that the corrected form works."""

import copy
import os
import pathlib

import yaml

from guest import http, node_port
from scenario import scenario
from scenarios.life import condition
from world import Skipped, check, eventually

NAMESPACES = ("openshift-cnv", "vm-production", "vm-staging", "kubevirt-vms", "shared-services")

# What kubectl says of each: whether it is taken, and words of warnings or of the refusal.
VERDICTS = {
    "001/10-hyperconverged-kubevirt-hyperconverged.yaml": (True, ["HyperConverged has no such field"]),
    "001/11-networkattachmentdefinition-prod-management-network.yaml": (True, ["macvlan"]),
    "001/12-networkattachmentdefinition-staging-management-network.yaml": (True, ["macvlan"]),
    "001/20-virtualmachine-scalable-vm-template.yaml": (False, ["RunStrategy must be specified"]),
    "004/01-virtualmachine-dev-k8s-cluster.yaml": (True, ["spec.running is deprecated"]),
    "004/02-service-dev-k8s-api.yaml": (True, []),
    "004/13-networkpolicy-allow-vcluster-access.yaml": (False, ["*-k8s-cluster"]),
}


def verdict(place, path, taken, words):
    done = place.run("kubectl", "apply", "-f", path)
    said = done.stdout + done.stderr
    check((done.returncode == 0) == taken, f"{path}: {'taken' if taken else 'refused'} was expected: {said}")
    for word in words:
        check(word in said, f"{path}: {word!r} is not said: {said}")


def told(place, kind, name, namespace):
    return (place.get(kind, name, "-n", namespace) or {}).get("status", {})


@scenario(workspace="acme/seeds")
def as_written(bench):
    """Each manifest about machines is taken or refused as it should be, says what does not work, and works when that is corrected."""
    folder = os.environ.get("FAIRWAY_CONFORMANCE")
    if not folder:
        raise Skipped("FAIRWAY_CONFORMANCE does not name a folder with manifests")
    place, seeds = bench.place, pathlib.Path(folder) / "seeds"
    read = lambda name: yaml.safe_load((seeds / name).read_text())
    for namespace in NAMESPACES:
        place.namespace(namespace)
    try:
        for name, (taken, words) in VERDICTS.items():
            verdict(place, seeds / name, taken, words)
        settings(place)
        scalable(bench, read("001/20-virtualmachine-scalable-vm-template.yaml"))
        cluster(bench, read("004/01-virtualmachine-dev-k8s-cluster.yaml"))
        policy(place, read("004/13-networkpolicy-allow-vcluster-access.yaml"))
    finally:
        place.run("kubectl", "delete", "namespace", *NAMESPACES, "--timeout=120s")


def settings(place):
    """What is waited for before anything else is done: that virtualization is there."""
    place.wait("hyperconverged/kubevirt-hyperconverged", "condition=Available", "openshift-cnv")


def scalable(bench, vm):
    """With a strategy it is taken, and says what it waits for; where there is such a node, and room, it runs."""
    place, (name, namespace) = bench.place, (vm["metadata"]["name"], vm["metadata"]["namespace"])
    root = bench.world.root()
    (node,) = [it["metadata"]["name"] for it in root.get("nodes")["items"]]
    vm["spec"]["runStrategy"] = "Always"
    domain = vm["spec"]["template"]["spec"]["domain"]
    domain["memory"]["guest"] = "64Mi"
    domain["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    vm["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    place.apply(vm)
    place.wait(f"vm/{name}", "jsonpath={.status.printableStatus}=ErrorUnschedulable", namespace)
    why = condition(told(place, "vmi", name, namespace), "PodScheduled")
    check("node" in why.get("message", ""), f"it says what it waits for: {why}")
    labels = {"node-role.kubernetes.io/worker": "", "vm-workload": "true"}
    try:
        root.kubectl("label", "node", node, *[f"{key}={value}" for key, value in labels.items()])
        place.wait(f"vm/{name}", "jsonpath={.status.printableStatus}=Running", namespace)
        found = told(place, "vmi", name, namespace)
        check(found.get("interfaces", []) == [], f"it has no card: {found}")
    finally:
        root.run("kubectl", "label", "node", node, *[f"{key}-" for key in labels])
        place.kubectl("delete", "vm", name, "-n", namespace, "--timeout=60s")


def cluster(bench, vm):
    """As written its guest is larger than this host, or its image cannot be had, which it says; a small one from an image that is here boots."""
    place, (name, namespace) = bench.place, (vm["metadata"]["name"], vm["metadata"]["namespace"])
    word = eventually("it says what is wrong", lambda: (lambda it: it if "Err" in it or "BackOff" in it else None)(
        told(place, "vm", name, namespace).get("printableStatus", "")))
    check(word in ("ErrorUnschedulable", "ErrImagePull", "ImagePullBackOff"), f"a word of upstream's: {word}")
    place.kubectl("delete", "vm", name, "-n", namespace, "--timeout=60s")

    small = copy.deepcopy(vm)
    del small["spec"]["running"]
    small["spec"]["runStrategy"] = "Always"
    spec = small["spec"]["template"]["spec"]
    spec["domain"]["cpu"]["cores"] = 1
    spec["domain"]["resources"]["requests"]["memory"] = "128Mi"
    spec["terminationGracePeriodSeconds"] = 0
    spec["volumes"][0]["containerDisk"]["image"] = "fairway-images/tiny"
    seed = spec["volumes"][1]["cloudInitNoCloud"]
    # This image has nobody to install a cluster from; what answers at its port is a web server. It calls its card otherwise than the network
    # data do, which must not keep it from the network.
    check("enp1s0" in seed["networkData"], f"the network data name a card: {seed}")
    begin, _ = seed["userData"].replace("${SSH_PUBLIC_KEY}", bench.key.public).split("runcmd:")
    seed["userData"] = begin + "runcmd:\n- mkdir -p /srv/api && echo dev-k8s-api > /srv/api/index.html\n- busybox httpd -p 6443 -h /srv/api\n"
    place.apply(small)
    place.wait(f"vm/{name}", "condition=Ready", namespace)
    port = node_port(place, namespace, "dev-k8s-api", 6443)
    check("dev-k8s-api" in eventually("its Service answers", lambda: http(port)), "through the Service of the manifest")
    options = [f"--local-ssh-opts={it}" for it in ("-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "-oLogLevel=ERROR")]
    ask = lambda: place.virtctl("ssh", f"kube@vmi/{name}", "-n", namespace, "-i", bench.key.path, *options, "--command", "hostname")
    said = eventually("its user can log in", ask)
    check(said.strip() == "dev-k8s-master", f"its host name: {said}")
    said = place.virtctl("ssh", f"kube@vmi/{name}", "-n", namespace, "-i", bench.key.path, *options, "--command",
                         "cat /run/cloud-init/network.sh; cloud-init status --long")
    check("enp1s0" in said and "net_dhcp" in said and "status: done" in said, f"the network data were followed: {said}")
    place.kubectl("delete", "vm", name, "-n", namespace, "--timeout=60s")


def policy(place, policy):
    """With selectors that are ones it is taken."""
    policy["spec"]["ingress"][0]["from"] = [{
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kubevirt-vms"}},
        "podSelector": {"matchLabels": {"cluster-type": "kubernetes"}},
    }]
    place.apply(policy)
