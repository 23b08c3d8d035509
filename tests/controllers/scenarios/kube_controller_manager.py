"""kube-controller-manager with all its default controllers, beside Fairway's own, as `system:kube-controller-manager`."""

import json
import re

import harness
import servers
from harness import Unmet

PROGRAM = "kube-controller-manager 1.36.3"
LISTENS_EVERYWHERE = False
COMPLAINTS = re.compile(r"^[EF]\d{4} |^panic:")
FILES = harness.HERE / "files"


def prepare():
    harness.build("kube-controller-manager")


def run(fairway):
    kubeconfig = fairway.identities.certificate("system:kube-controller-manager")
    with manager(fairway, kubeconfig, "first"):
        holder = fairway.expect("it holds its Lease", lambda: lease_holder(fairway))
        fairway.expect("each controller has a service account of its own", lambda: own_accounts(fairway))
        fairway.apply(FILES / "workloads.yaml")
        fairway.expect("a namespace gets its default service account and kube-root-ca.crt",
                       lambda: fairway.get("serviceaccount", "default", "-n", "dock")
                       and fairway.get("configmap", "kube-root-ca.crt", "-n", "dock"))
        workloads(fairway)
        quota(fairway)
        collection(fairway)
        fairway.kubectl("delete", "namespace", "dock", "--wait=false")
        fairway.expect("a deleted namespace goes, with all that is in it",
                       lambda: fairway.get("namespace", "dock") is None, within=120)
        idle = fairway.cpu_over(10)
        fairway.note(f"Fairway and it leave each other alone: {idle:.1f} % of a core in 10 s", 10)
        if idle > 25:
            raise harness.Failed(f"Fairway uses {idle:.0f} % of a core although nothing happens")
    with manager(fairway, kubeconfig, "second"):
        fairway.expect("another one takes the Lease over",
                       lambda: lease_holder(fairway) not in (None, "", holder), within=90)
        fairway.apply("{apiVersion: v1, kind: Namespace, metadata: {name: quay}}")
        fairway.kubectl("create", "deployment", "tug", "-n", "quay", "--image=example.com/tug:1")
        fairway.expect("and works on", lambda: len(pods(fairway, "app=tug", "quay")) == 1)


def manager(fairway, kubeconfig, name):
    pki = fairway.data / "pki"
    return fairway.program(
        f"kube-controller-manager-{name}",
        [
            harness.TOOLS / "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--use-service-account-credentials=true",
            "--leader-elect=true",
            f"--root-ca-file={pki / 'ca.crt'}",
            f"--cluster-signing-cert-file={pki / 'ca.crt'}",
            f"--cluster-signing-key-file={pki / 'ca.key'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={servers.free_port()}",
            f"--cert-dir={fairway.directory / 'controller-manager'}",
        ],
        COMPLAINTS,
        harness.allow_list("kube-controller-manager"),
    )


def lease_holder(fairway):
    lease = fairway.get("lease", "kube-controller-manager", "-n", "kube-system")
    return (lease or {}).get("spec", {}).get("holderIdentity")


def own_accounts(fairway):
    names = {item["metadata"]["name"] for item in fairway.items("serviceaccounts", "-n", "kube-system")}
    missing = {"deployment-controller", "replicaset-controller", "resourcequota-controller"} - names
    return Unmet(f"missing: {sorted(missing)}") if missing else True


def pods(fairway, selector, namespace="dock"):
    return [pod for pod in fairway.items("pods", "-n", namespace, "-l", selector)
            if "deletionTimestamp" not in pod["metadata"]]


def count(fairway, what, selector, wanted):
    found = len(pods(fairway, selector)) if what == "pods" else len(fairway.items(what, "-n", "dock", "-l", selector))
    return True if found == wanted else Unmet(f"{found} {what} with {selector}, wanted {wanted}")


def workloads(fairway):
    fairway.expect("a Deployment gets a ReplicaSet", lambda: count(fairway, "replicasets", "app=crane", 1))
    fairway.expect("and three Pods", lambda: count(fairway, "pods", "app=crane", 3))
    phases = {pod["status"]["phase"] for pod in pods(fairway, "app=crane")}
    if phases != {"Pending"}:
        raise harness.Failed(f"pods should wait for a node, but are {phases}")
    fairway.expect("whose number is in its status", lambda: status(fairway, "deployment", "crane").get("replicas") == 3)
    fairway.kubectl("scale", "deployment", "crane", "-n", "dock", "--replicas=1")
    fairway.expect("scaled down to one", lambda: count(fairway, "pods", "app=crane", 1))
    fairway.kubectl("set", "image", "deployment/crane", "-n", "dock", "main=example.com/crane:2")
    fairway.expect("a new image makes a second ReplicaSet", lambda: count(fairway, "replicasets", "app=crane", 2))
    fairway.expect("a StatefulSet gets its first Pod", lambda: fairway.get("pod", "mooring-0", "-n", "dock") and True)
    fairway.expect("a DaemonSet without nodes is content",
                   lambda: status(fairway, "daemonset", "lamp").get("observedGeneration") == 1)
    fairway.expect("a Service gets an EndpointSlice",
                   lambda: count(fairway, "endpointslices", "kubernetes.io/service-name=crane", 1))
    fairway.expect("a PodDisruptionBudget is counted",
                   lambda: status(fairway, "poddisruptionbudget", "crane").get("observedGeneration") == 1)
    fairway.expect("a Job is left to it, and gets its Pod",
                   lambda: status(fairway, "job", "unload").get("active") == 1
                   and count(fairway, "pods", "job-name=unload", 1) is True)
    if harness.condition(fairway.get("job", "unload", "-n", "dock"), "Failed"):
        raise harness.Failed("Fairway failed a Job that kube-controller-manager works on")
    fairway.expect("a claim is protected while it exists",
                   lambda: "kubernetes.io/pvc-protection"
                   in fairway.get("persistentvolumeclaim", "hold", "-n", "dock")["metadata"].get("finalizers", []))


def status(fairway, kind, name):
    return (fairway.get(kind, name, "-n", "dock") or {}).get("status", {})


def quota(fairway):
    def counted():
        used = status(fairway, "resourcequota", "crates").get("used", {})
        return True if used.get("count/configmaps") == "3" and used.get("services") == "1" else Unmet(str(used))
    fairway.apply(FILES / "quota.yaml")
    fairway.expect("a ResourceQuota is counted", counted)


def collection(fairway):
    for policy in ("background", "foreground"):
        name = f"cart-{policy}"
        fairway.kubectl("create", "deployment", name, "-n", "dock", "--image=example.com/cart:1", "--replicas=2")
        fairway.expect(f"{name}: two Pods", lambda: count(fairway, "pods", f"app={name}", 2))
        fairway.kubectl("delete", "deployment", name, "-n", "dock", f"--cascade={policy}", "--wait=false")
        fairway.expect(f"{name}: deleted with its ReplicaSet and Pods",
                       lambda: count(fairway, "pods", f"app={name}", 0) is True
                       and count(fairway, "replicasets", f"app={name}", 0) is True
                       and fairway.get("deployment", name, "-n", "dock") is None)
    fairway.kubectl("delete", "deployment", "crane", "-n", "dock", "--cascade=orphan")
    fairway.expect("orphaned ReplicaSets stay, without their owner",
                   lambda: all(not found["metadata"].get("ownerReferences")
                               for found in fairway.items("replicasets", "-n", "dock", "-l", "app=crane")))
    fairway.apply(FILES / "buoys.yaml")
    fairway.kubectl("wait", "--for=condition=Established", "crd/buoys.example.com", "--timeout=30s")
    fairway.apply(FILES / "owned.yaml")
    owner = fairway.get("buoy.example.com", "owner", "-n", "dock")["metadata"]["uid"]
    reference = {"apiVersion": "example.com/v1", "kind": "Buoy", "name": "owner", "uid": owner}
    fairway.kubectl("patch", "configmap", "owned", "-n", "dock", "--type=merge", "-p",
                    json.dumps({"metadata": {"ownerReferences": [reference]}}))
    fairway.kubectl("delete", "buoy.example.com", "owner", "-n", "dock")
    fairway.expect("what a custom object owned goes with it",
                   lambda: fairway.get("configmap", "owned", "-n", "dock") is None, within=90)
