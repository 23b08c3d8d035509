"""Crossplane's core and its RBAC manager, installed by their own Helm chart, each as its own service account.

The chart's pods do not run, since no node here runs pods; the programs run beside Fairway, with the rights that the
chart gives them. The core may touch an XR only after the RBAC manager has written a role for it and the role has been
aggregated, so the whole chain is seen. Composition functions are pods and out of reach.
"""

import base64
import re
import subprocess

import harness
import servers
from harness import Unmet, condition

PROGRAM = "Crossplane 2.1.0"
LISTENS_EVERYWHERE = True
NAMESPACE = "crossplane-system"
# Structured lines with level or severity; Go's own on a crash.
COMPLAINTS = re.compile(r"\tERROR\t|\"level\":\"error\"|^panic:|^E\d{4} |crossplane: error:")
FILES = harness.HERE / "files"


def prepare():
    harness.build("crossplane")


def run(fairway):
    module = harness.module_directory("crossplane", "github.com/crossplane/crossplane/v2")
    install_chart(fairway, module)
    core = fairway.identities.account(NAMESPACE, "crossplane")
    rbac = fairway.identities.account(NAMESPACE, "rbac-manager")
    initialise(fairway, module, core)
    allowed = harness.allow_list("crossplane")
    binary = harness.TOOLS / "crossplane"
    settings = tls_files(fairway) | {
        "ENABLE_WEBHOOKS": "false",
        "METRICS_PORT": servers.free_port(),
        "HEALTH_PROBE_PORT": servers.free_port(),
        "XPKG_CACHE_DIR": fairway.directory / "xpkg",
    }
    manager = fairway.program("crossplane-rbac-manager", [binary, "rbac", "start", "--debug"], COMPLAINTS, allowed, KUBECONFIG=rbac)
    with fairway.program("crossplane-core", [binary, "core", "start", "--debug"], COMPLAINTS, allowed, KUBECONFIG=core, **settings):
        with manager:
            definition(fairway, core)
            composite(fairway)
            removal(fairway)


def install_chart(fairway, module):
    """`helm install` of the chart in the module, whose version is a placeholder there."""
    chart = module / "cluster" / "charts" / "crossplane"
    done = subprocess.run(
        ["helm", "install", "crossplane", str(chart), "--namespace", NAMESPACE, "--create-namespace",
         "--set", "image.tag=v2.1.0", "--set", "webhooks.enabled=false"],
        env=fairway.environment(), capture_output=True, text=True,
    )
    if done.returncode:
        raise harness.Failed(f"helm install: {done.stderr}")
    fairway.expect("Helm has installed its chart", lambda: fairway.get("deployment", "crossplane", "-n", NAMESPACE))
    fairway.expect("the core's role is aggregated", lambda: (fairway.get("clusterrole", "crossplane") or {}).get("rules"))


def initialise(fairway, module, core):
    """What the chart's init container does: certificates, CRDs, the package lock."""
    done = subprocess.run(
        [harness.TOOLS / "crossplane", "core", "init"],
        env=fairway.environment(core) | {
            "ENABLE_WEBHOOKS": "false",
            "CRDS_PATH": str(module / "cluster" / "crds"),
            "POD_NAMESPACE": NAMESPACE,
            "POD_SERVICE_ACCOUNT": "crossplane",
            "TLS_CA_SECRET_NAME": "crossplane-root-ca",
            "TLS_SERVER_SECRET_NAME": "crossplane-tls-server",
            "TLS_CLIENT_SECRET_NAME": "crossplane-tls-client",
        },
        capture_output=True, text=True,
    )
    (fairway.directory / "crossplane-init.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        raise harness.Failed(f"crossplane core init: {done.stdout}{done.stderr}")
    def established():
        crds = [crd for crd in fairway.items("crds") if crd["spec"]["group"].endswith("crossplane.io")]
        waiting = [crd["metadata"]["name"] for crd in crds if condition(crd, "Established") != "True"]
        return len(crds) if crds and not waiting else Unmet(f"{len(crds)} CRDs, not established: {waiting}")
    count = fairway.expect("`core init` has made certificates and CRDs", established)
    if count != len(list((module / "cluster" / "crds").glob("*.yaml"))):
        raise harness.Failed(f"{count} of Crossplane's CRDs exist")


def tls_files(fairway):
    """The client certificate, where its pod would have it mounted."""
    found = {}
    for side in ("server", "client"):
        secret = fairway.get("secret", "crossplane-tls-client", "-n", NAMESPACE)
        folder = fairway.directory / f"tls-{side}"
        folder.mkdir(mode=0o700)
        for name, value in secret["data"].items():
            (folder / name).write_bytes(base64.b64decode(value))
        found[f"TLS_{side.upper()}_CERTS_DIR"] = folder
        found[f"TLS_{side.upper()}_SECRET_NAME"] = f"crossplane-tls-{side}"
    return found


def definition(fairway, core):
    code, _, _ = fairway.kubectl("auth", "can-i", "create", "berths.harbour.example.com", "-n", "default",
                                 kubeconfig=core, check=False)
    if code == 0:
        raise harness.Failed("the core may create XRs before anything granted it")
    fairway.apply(FILES / "xrd.yaml")
    fairway.expect("the XRD is Established",
                   lambda: condition(fairway.get("xrd", "berths.harbour.example.com"), "Established") == "True")
    crd = fairway.expect("its CRD is Established", lambda: established_crd(fairway))
    owner = crd["metadata"]["ownerReferences"][0]["kind"]
    if owner != "CompositeResourceDefinition":
        raise harness.Failed(f"the CRD is owned by a {owner}")
    fairway.expect("the RBAC manager's role has been aggregated into the core's",
                   lambda: fairway.kubectl("auth", "can-i", "create", "berths.harbour.example.com", "-n", "default",
                                           kubeconfig=core, check=False)[0] == 0)


def established_crd(fairway):
    crd = fairway.get("crd", "berths.harbour.example.com")
    return crd if condition(crd, "Established") == "True" else Unmet(str(crd and crd.get("status")))


def composite(fairway):
    """An XR is accepted, validated and defaulted by the schema that Crossplane made, and reconciled by its controller."""
    fairway.apply(FILES / "xr.yaml")
    code, _, err = fairway.kubectl("patch", "berth", "north", "-n", "default", "--type=merge",
                                   "-p", '{"spec":{"length":"long"}}', check=False)
    if code == 0 or "spec.length" not in err:
        raise harness.Failed(f"an XR with a wrong type was accepted: {err}")
    berth = fairway.get("berth", "north", "-n", "default")
    if berth["spec"].get("depth") != 12:
        raise harness.Failed(f"the default of the XRD's schema is missing: {berth['spec']}")
    def reconciled():
        found = fairway.get("berth", "north", "-n", "default")
        conditions = {c["type"]: c for c in found.get("status", {}).get("conditions", [])}
        synced = conditions.get("Synced")
        return synced["message"] if synced and synced["status"] == "False" else Unmet(str(conditions))
    message = fairway.expect("the XR's controller has looked at it and misses a Composition", reconciled)
    if "composition" not in message.lower():
        raise harness.Failed(f"the XR waits for something else: {message}")
    finalizers = fairway.get("berth", "north", "-n", "default")["metadata"].get("finalizers", [])
    if not finalizers:
        raise harness.Failed("Crossplane has put no finalizer on the XR")
    fairway.apply(FILES / "composition.yaml")
    fairway.expect("a Composition gets its revision",
                   lambda: fairway.items("compositionrevisions", "-l", "crossplane.io/composition-name=berth"))
    fairway.expect("and is selected for the XR",
                   lambda: fairway.get("berth", "north", "-n", "default")["spec"]
                   .get("crossplane", {}).get("compositionRef", {}).get("name") == "berth")


def removal(fairway):
    fairway.kubectl("delete", "berth", "north", "-n", "default", "--wait=false")
    fairway.expect("the XR goes when it is deleted", lambda: fairway.get("berth", "north", "-n", "default") is None)
    fairway.kubectl("delete", "xrd", "berths.harbour.example.com", "--wait=false")
    fairway.expect("the XRD goes, and its CRD with it",
                   lambda: fairway.get("xrd", "berths.harbour.example.com") is None
                   and fairway.get("crd", "berths.harbour.example.com") is None)
