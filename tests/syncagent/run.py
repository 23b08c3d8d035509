"""The sync agent as a command, between a Fairway with workspaces and a service cluster.

    run.py --fairway BINARY                     the service cluster is another Fairway
    run.py --fairway BINARY --upstream COMMAND  the service cluster is the real kube-apiserver

The agent has the rights of `files/*-rights.yaml` and no others. It is killed in the middle of its work and started again.
"""

import argparse
import base64
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))

import servers

FILES = HERE / "files"
PATIENCE = 60


class Place:
    """A server, or one of its workspaces, as kubectl sees it."""

    def __init__(self, kubeconfig, workspace=None):
        self.kubeconfig = kubeconfig
        self.server = server_of(kubeconfig) + (f"/clusters/{workspace}" if workspace else "")

    def try_kubectl(self, *words, stdin=None):
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig), "--server", self.server, *words]
        environment = servers.environment(self.kubeconfig, self.kubeconfig.parent)
        return subprocess.run(command, input=stdin, capture_output=True, text=True, env=environment)

    def kubectl(self, *words, stdin=None):
        done = self.try_kubectl(*words, stdin=stdin)
        if done.returncode != 0:
            raise SystemExit(f"kubectl {' '.join(words)}: {done.stderr}")
        return done.stdout

    def create(self, what):
        text = what if isinstance(what, str) else json.dumps(what)
        self.kubectl("create", "-f", "-", stdin=text)

    def get(self, *words):
        done = self.try_kubectl("get", *words, "-o", "json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def secret(self, namespace, name):
        found = self.get("secret", name, "-n", namespace)
        return base64.b64decode(found["data"]["k"]).decode() if found else None

    def account(self, path):
        """A kubeconfig of the service account `syncagent`."""
        token = self.kubectl("create", "token", "syncagent", "-n", "default").strip()
        text = self.kubeconfig.read_text()
        authority = re.search(r"certificate-authority-data: *\"?([A-Za-z0-9+/=]+)", text).group(1)
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": self.server, "certificate-authority-data": authority}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }))
        return path


def server_of(kubeconfig):
    return re.search(r"server: *\"?([^\s\"]+)", kubeconfig.read_text()).group(1)


def eventually(what, holds):
    deadline = time.monotonic() + PATIENCE
    while True:
        if holds():
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {PATIENCE} s: {what}")
        time.sleep(0.1)


def workspace(place, name, kind=None):
    spec = {"type": {"name": kind, "path": "root"}} if kind else {}
    place.create({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}, "spec": spec})
    # There is no status before the first controller has looked at it.
    phase = lambda: place.get("workspace", name).get("status", {}).get("phase")
    eventually(f"workspace {name} is ready", lambda: phase() == "Ready")


def machine(name, **spec):
    return {"apiVersion": "cloud.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": spec}


def condition(published, kind):
    for it in (published or {}).get("status", {}).get("conditions", []):
        if it["type"] == kind:
            return it
    return {}


def fetched(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read().decode()


def scenario(binary, hub_config, service_config, scratch):
    root, service = Place(hub_config), Place(service_config)
    workspace(root, "services", "universal")
    workspace(root, "acme")
    acme = Place(hub_config, "root:acme")
    for project in ("frontend", "backend"):
        workspace(acme, project)
    provider = Place(hub_config, "root:services")
    frontend, backend = (Place(hub_config, f"root:acme:{it}") for it in ("frontend", "backend"))

    provider.create({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "cloud"}, "spec": {}})
    provider.create((FILES / "provider-rights.yaml").read_text())
    service.create((FILES / "service-rights.yaml").read_text())
    service.create((FILES / "definition.yaml").read_text())
    eventually("the export has a slice", lambda: provider.get("apiexportendpointslice", "cloud"))
    command = [
        str(binary.resolve()), "syncagent",
        "--kubeconfig", str(service.account(scratch / "service.json")),
        "--kcp-kubeconfig", str(provider.account(scratch / "provider.json")),
        "--apiexport-ref", "cloud", "--log", "debug", "--enable-leader-election",
    ]
    ports = {name: servers.free_port() for name in ("metrics", "health")}
    probes = [word for name, port in ports.items() for word in (f"--{name}-address", f"127.0.0.1:{port}")]
    log = scratch / "agent.log"
    with servers.process([*command, *probes], log) as agent:
        eventually("the agent has installed its kind", lambda: service.get("publishedresources"))
        service.create((FILES / "published.yaml").read_text())
        told = lambda kind: condition(service.get("publishedresource", "machines"), kind)
        eventually("it is exported", lambda: told("Exported").get("status") == "True")
        assert told("Synchronized")["reason"] == "NoConsumers", told("Synchronized")
        for place in (frontend, backend):
            place.create((FILES / "binding.yaml").read_text())
            eventually("the kind is served", lambda: place.get("virtualmachines"))
        # Same name, two projects.
        for place, namespace, size in ((frontend, "ws-acme-frontend-default", 1), (backend, "ws-acme-backend-default", 2)):
            place.create(machine("web", size=size, key="ssh"))
            eventually("there is a copy", lambda: service.get("machine", "web", "-n", namespace))
            copy = service.get("machine", "web", "-n", namespace)
            assert copy["spec"] == {"size": size, "key": "ssh", "tier": "bronze"}, copy["spec"]
            status = json.dumps({"status": {"phase": f"Up {size}", "host": "node"}})
            service.kubectl("patch", "machine", "web", "-n", namespace, "--subresource=status", "--type=merge", "-p", status)
            eventually("the status is up", lambda: place.get("vm", "web").get("status") == {"phase": f"Up {size}"})
        eventually("it is ready", lambda: told("Ready").get("status") == "True")
        assert fetched(ports["health"], "/healthz") == fetched(ports["health"], "/readyz") == "ok"
        assert "controller_runtime_reconcile_total" in fetched(ports["metrics"], "/metrics")
        namespace = "ws-acme-frontend-default"
        # Secrets both ways.
        service.kubectl("create", "secret", "generic", "web-credentials", "-n", namespace, "--from-literal=k=up")
        frontend.kubectl("create", "secret", "generic", "ssh", "--from-literal=k=down")
        eventually("one comes up", lambda: frontend.secret("default", "web-credentials") == "up")
        eventually("one goes down", lambda: service.secret(namespace, "ssh") == "down")
        assert service.secret("ws-acme-backend-default", "ssh") is None
        # What the consumer takes away goes, what the service adds stays.
        service.kubectl("patch", "machine", "web", "-n", namespace, "--type=merge", "-p", '{"spec": {"host": "node"}}')
        frontend.kubectl("patch", "vm", "web", "--type=merge", "-p", '{"spec": {"size": 5, "key": null}}')
        wanted = {"size": 5, "tier": "bronze", "host": "node"}
        eventually("the copy follows", lambda: service.get("machine", "web", "-n", namespace)["spec"] == wanted)
        eventually("and what is no longer named goes", lambda: service.secret(namespace, "ssh") is None)
        assert "machines" not in frontend.kubectl("api-resources", "--no-headers", "--api-group=inner.io")
        reasons = {it["reason"] for it in frontend.get("events")["items"]}
        assert {"ObjectAccepted", "ObjectPlaced", "ObjectSynced", "ObjectStatusSynced"} <= reasons, reasons
        # Killed in the middle.
        for number in range(10):
            frontend.create(machine(f"m{number}", size=1))
        agent.kill()
        agent.wait()
    frontend.kubectl("delete", "vm", "m0", "m1", "--wait=false")
    frontend.kubectl("patch", "vm", "web", "--type=merge", "-p", '{"spec": {"size": 6}}')
    second = scratch / "second.log"
    alone = [*command, "--metrics-address", "0"]
    with servers.process(alone, log) as first, servers.process(alone, second):
        # One of the two works once the Lease of the one that was killed has run out, and the other when that one ends.
        elected = lambda path: "elected: " in path.read_text()
        eventually("one is elected", lambda: elected(log) or elected(second))
        assert not (elected(log) and elected(second))
        if elected(log):
            first.terminate()
            assert first.wait(20) == 0
            eventually("the other takes over", lambda: elected(second))

        def names(place, *words):
            return sorted(it["metadata"]["name"] for it in place.get(*words)["items"])

        left = sorted([f"m{number}" for number in range(2, 10)] + ["web"])
        eventually("the originals are settled", lambda: names(frontend, "vm") == left)
        eventually("the copies are settled", lambda: names(service, "machines", "-n", namespace) == left)
        eventually("what was missed is made up for", lambda: service.get("machine", "web", "-n", namespace)["spec"]["size"] == 6)
        # The end of a project takes its copies along, and of an object what was copied up.
        frontend.kubectl("delete", "vm", "web")
        assert service.get("machine", "web", "-n", namespace) is None
        eventually("the credentials go", lambda: frontend.secret("default", "web-credentials") is None)
        acme.kubectl("delete", "workspace", "backend")
        eventually("the copies go", lambda: service.get("machine", "web", "-n", "ws-acme-backend-default") is None)
        # An object that the service refuses is told to the provider.
        service.kubectl("patch", "crd", "machines.inner.io", "--type=json", "-p", json.dumps([
            {"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations",
             "value": [{"rule": "self.size < 100", "message": "too large"}]}]))
        eventually("there is another schema", lambda: len(provider.get("apiresourceschemas")["items"]) == 2)
        eventually("which consumers feel", lambda: "too large" in frontend.try_kubectl(
            "create", "-f", "-", "--dry-run=server", stdin=json.dumps(machine("huge", size=100))).stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, metavar="BINARY", required=True)
    parser.add_argument("--upstream", metavar="COMMAND")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairway-syncagent-") as directory:
        scratch = pathlib.Path(directory)
        (scratch / "hub").mkdir()
        (scratch / "service").mkdir()
        if options.upstream:
            name, service = "the real kube-apiserver", servers.upstream(options.upstream, scratch / "service")
        else:
            name, service = "another Fairway", servers.fairway(options.fairway, scratch / "service")
        with servers.fairway(options.fairway, scratch / "hub") as hub, service as there:
            try:
                scenario(options.fairway, hub, there, scratch)
            except (SystemExit, AssertionError, TypeError):
                for log in scratch.glob("*.log"):
                    print(f"{log.name}:\n{log.read_text(errors='replace')[-6000:]}")
                raise
    print(f"sync agent with {name}: as expected, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
