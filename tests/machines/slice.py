"""The slice: from `git push` to a machine that answers, through changes and a gateway with keys, to its end. `make demo-slice` runs it.

    slice.py --fairway BINARY [--keep]

It uses what `examples/vm` has, in a workspace below another, prints every command with what it says, and ends with code 1 at the first
thing that is not as it should be.
"""

import argparse
import json
import os
import pathlib
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from guest import Key, boot_time, http, node_port
from world import HERE, Failed, World, check, eventually, images, servers

EXAMPLE = HERE.parents[1] / "examples" / "vm"
NAMESPACE = "user-vms"
WORKSPACE = "acme/shop"
HOST = "web.apps.fairway.localhost"
# In front of the Service: a Gateway, a route to it, and a policy that lets in who has a key. The keys are made in the cluster.
PUBLISHED = """apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: web, namespace: user-vms}}
spec:
  gatewayClassName: fairway
  listeners:
  - {{name: http, port: {port}, protocol: HTTP}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: web, namespace: user-vms}}
spec:
  parentRefs: [{{name: web}}]
  hostnames: [{host}]
  rules:
  - backendRefs: [{{name: web, port: 8080}}]
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {{name: web, namespace: user-vms}}
spec:
  targetRef: {{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}}
  rules:
    authentication:
      api-key:
        apiKey: {{selector: {{matchLabels: {{app: web}}}}}}
        credentials: {{authorizationHeader: {{prefix: APIKEY}}}}
"""


def socket_is_closed(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


class Show:
    """Prints what is done, how long it took, and what came of it."""

    def __init__(self):
        self.began = time.monotonic()

    def step(self, text):
        print(f"\n== {time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    @staticmethod
    def command(words):
        print(f"$ {shlex.join(map(str, words))}", flush=True)

    @staticmethod
    def said(text):
        for line in text.rstrip().splitlines():
            print(f"  {line}", flush=True)


class Slice:
    def __init__(self, world, place, scratch):
        self.world, self.place, self.scratch = world, place, scratch
        self.show = Show()
        self.key = Key(scratch)
        self.tree = scratch / "user-vms"

    def run(self, *words):
        self.show.command([pathlib.Path(words[0]).name, *words[1:]])
        done = self.place.run(*words)
        self.show.said(done.stdout + done.stderr)
        check(done.returncode == 0, f"{words[0]} ended with {done.returncode}")
        return done.stdout

    def git(self, *words):
        self.show.command(["git", *words])
        trust = {"GIT_SSL_CAINFO": str(self.world.data / "pki" / "ca.crt"), "GIT_AUTHOR_NAME": "Demo",
                 "GIT_AUTHOR_EMAIL": "demo@example.com", "GIT_COMMITTER_NAME": "Demo", "GIT_COMMITTER_EMAIL": "demo@example.com"}
        environment = {**servers.environment(self.place.kubeconfig, self.scratch, self.world.binary), **trust}
        done = subprocess.run(["git", "-c", "http.sslCAInfo=" + trust["GIT_SSL_CAINFO"], *words], cwd=self.tree, env=environment,
                              capture_output=True, text=True, timeout=300)
        self.show.said(done.stdout + done.stderr)
        check(done.returncode == 0, f"git ended with {done.returncode}")
        return done.stdout + done.stderr

    def edit(self, file, before, after):
        path = self.tree / "manifests" / file
        text = path.read_text()
        check(before in text, f"{file} has no {before!r}")
        path.write_text(text.replace(before, after, 1))

    def push(self, message, branch="main"):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("push", "-o", "fairway.wait=120", "origin", f"HEAD:{branch}")

    def settled(self):
        self.run(self.world.binary, "app", "wait", "user-vms", "--sync", "--health", "--timeout", "300")

    def boot(self):
        return eventually("the guest answers", lambda: boot_time(self.key, self.ssh))

    def page(self, port):
        text = eventually("the web server answers", lambda: http(port))
        self.show.command(["curl", f"http://127.0.0.1:{port}/"])
        self.show.said(text)
        check("out of Git" in text, "it is the page out of the repository")

    def through_gateway(self, expected, key=None):
        """Asks by the host name until the answer is as expected."""
        self.show.command(["curl", "-i", "-H", f"Host: {HOST}", *(["-H", "Authorization: APIKEY ..."] if key else []),
                           f"http://127.0.0.1:{self.gateway}/"])
        headers = {"Host": HOST, **({"Authorization": f"APIKEY {key}"} if key else {})}

        def ask():
            try:
                with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.gateway}/", headers=headers), timeout=10) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as answer:
                return answer.code, ""
            except OSError as error:
                raise Failed(str(error)) from error

        code, text = eventually(f"it is answered with {expected}", lambda: (lambda it: it if it[0] == expected else None)(ask()))
        self.show.said(f"{code}\n{text}")
        return text

    def repository(self):
        self.show.step("a repository in the workspace, with what examples/vm has and a key of ours")
        url = self.run(self.world.binary, "repo", "create", f"{WORKSPACE.replace('/', '.')}/user-vms", "--with-token").strip()
        shutil.copytree(EXAMPLE, self.tree)
        sent = self.key.public
        path = self.tree / "manifests" / "ssh-key.yaml"
        lines = [f"  key: {sent}" if line.startswith("  key:") else line for line in path.read_text().splitlines()]
        path.write_text("\n".join(lines) + "\n")
        # The host is outside of the machines' network, so the Service opens ports of the host, too.
        self.edit("service.yaml", "type: ClusterIP", "type: NodePort")
        self.git("init", "-q", "-b", "main")
        self.git("remote", "add", "origin", url)

    def application(self):
        self.show.step("an Application that syncs it")
        self.place.namespace("argocd")
        plain = (EXAMPLE / "application.yaml").read_text()
        address = self.git("remote", "get-url", "origin").strip()
        host = address.split("@")[-1]
        text = "\n".join(f"    repoURL: https://{host}" if "repoURL" in line else line for line in plain.splitlines())
        self.show.command(["kubectl", "apply", "-f", "application.yaml"])
        self.show.said(self.place.kubectl("apply", "-f", "-", stdin=text))

    def first(self):
        self.show.step("git push, and what becomes of it")
        self.push("A machine with a web server")
        self.settled()
        self.run("kubectl", "get", "vm,vmi,dv,service", "-n", NAMESPACE)
        managers = self.place.get("vm", "web", "-n", NAMESPACE, "--show-managed-fields")["metadata"]["managedFields"]
        check(any(it["manager"] == "argocd-controller" and it["operation"] == "Apply" for it in managers), "it was applied by the engine")
        self.show.step("SSH and HTTP through its Service")
        self.ssh = node_port(self.place, NAMESPACE, "web", 22)
        self.http = node_port(self.place, NAMESPACE, "web", 8080)
        self.key.login(self.ssh)
        self.show.command(["ssh", "-p", self.ssh, "demo@127.0.0.1", "uname -a; hostname"])
        self.show.said(self.key.ssh(self.ssh, "uname -a; hostname"))
        check(self.key.ssh(self.ssh, "hostname") == "web", "the host name is from the seed")
        self.page(self.http)
        address = self.place.get("service", "web", "-n", NAMESPACE)["spec"]["clusterIP"]
        said = self.key.ssh(self.ssh, f"busybox wget -q -O - http://{address}:8080/")
        check("out of Git" in said, "the guest reaches the Service at its cluster address")

    def live_change(self):
        self.show.step("a change in Git that is made while the machine runs: a label, and a Service that selects it")
        before = self.boot()
        self.edit("machine.yaml", "      labels:\n        app: web\n", "      labels:\n        app: web\n        tier: front\n")
        service = (self.tree / "manifests" / "service.yaml").read_text()
        front = service.replace("name: web\n", "name: front\n", 1).replace("app: web", "tier: front")
        (self.tree / "manifests" / "front.yaml").write_text(front)
        self.push("Select machines of the front by their label")
        self.settled()
        eventually("the instance has the label",
                   lambda: self.place.get("vmi", "web", "-n", NAMESPACE)["metadata"]["labels"].get("tier") == "front")
        self.page(node_port(self.place, NAMESPACE, "front", 8080))
        check(self.boot() == before, "the machine did not boot for that")

    def restart(self):
        self.show.step("a change in Git that needs a restart: the plan says so, then the push makes it")
        before = self.boot()
        check(self.key.ssh(self.ssh, "nproc") == "1", "the machine has one processor")
        self.edit("machine.yaml", "cores: 1", "cores: 2")
        self.git("checkout", "-q", "-b", "larger")
        self.git("commit", "-q", "-a", "-m", "Two processors")
        self.git("push", "-q", "-o", "fairway.wait=false", "origin", "larger")
        owner = WORKSPACE.replace("/", ".")
        plan = self.run(self.world.binary, "app", "plan", "--repo", f"{owner}/user-vms", "--branch", "larger")
        check("restart" in plan, "the plan tells of the restart")
        self.git("checkout", "-q", "main")
        self.git("merge", "-q", "--ff-only", "larger")
        self.git("push", "-o", "fairway.wait=120", "origin", "main")
        eventually("the machine boots again", lambda: boot_time(self.key, self.ssh) != before)
        check(eventually("it has two processors", lambda: self.key.ssh(self.ssh, "nproc") == "2"), "two processors")
        self.settled()
        self.page(self.http)

    def by_hand(self):
        self.show.step("changes by hand are healed: a Service is deleted, and the machine is switched off")
        self.run("kubectl", "delete", "service", "front", "-n", NAMESPACE)
        eventually("the Service is there again", lambda: self.place.get("service", "front", "-n", NAMESPACE))
        patch = json.dumps({"spec": {"runStrategy": "Halted"}})
        self.run("kubectl", "patch", "vm", "web", "-n", NAMESPACE, "--type=merge", "-p", patch)
        eventually("Git's word holds", lambda: self.place.get("vm", "web", "-n", NAMESPACE)["spec"]["runStrategy"] == "Always")
        self.place.wait("vm/web", "condition=Ready", NAMESPACE)
        self.key.login(self.ssh)
        self.settled()

    def published(self):
        self.show.step("a Gateway, a route and a policy before the Service, out of Git: who has no key is refused")
        self.gateway = servers.free_port()
        (self.tree / "manifests" / "published.yaml").write_text(PUBLISHED.format(port=self.gateway, host=HOST))
        self.push("Publish the web server, to who has a key")
        self.settled()
        self.place.wait("authpolicy/web", "condition=Enforced", NAMESPACE)
        self.run("kubectl", "get", "gateway,httproute,authpolicy", "-n", NAMESPACE)
        self.through_gateway(401)
        key = secrets.token_hex(16)
        self.place.apply({"apiVersion": "v1", "kind": "Secret", "stringData": {"api_key": key}, "metadata": {
            "name": "ann", "namespace": NAMESPACE, "labels": {"app": "web", "authorino.kuadrant.io/managed-by": "authorino"}}})
        check("out of Git" in self.through_gateway(200, key), "it is the page out of the repository")
        self.through_gateway(401, key[::-1])
        self.run("kubectl", "delete", "secret", "ann", "-n", NAMESPACE)
        self.through_gateway(401, key)

    def delete(self):
        self.show.step("a file that goes from Git takes its object with it")
        for name in ("front", "published"):
            (self.tree / "manifests" / f"{name}.yaml").unlink()
        self.push("One Service is enough, for us alone")
        eventually("the Service is gone", lambda: self.place.get("service", "front", "-n", NAMESPACE) is None)
        eventually("nobody listens for the Gateway", lambda: socket_is_closed(self.gateway))
        self.show.step("the machine goes from Git: that waits for a person")
        (self.tree / "manifests" / "machine.yaml").unlink()
        self.push("No machine")
        waits = lambda: "approv" in json.dumps(self.place.get("application", "user-vms", "-n", "argocd").get("status"))
        eventually("the sync waits for approval", waits)
        check(self.place.get("vm", "web", "-n", NAMESPACE), "the machine is still there")
        self.run(self.world.binary, "app", "approve", "user-vms")
        eventually("the machine is gone", lambda: self.place.get("vm", "web", "-n", NAMESPACE) is None)
        eventually("and its process", lambda: not self.world.qemus())
        self.run(self.world.binary, "app", "delete", "user-vms", "--yes", "--wait")
        eventually("the namespace is gone", lambda: self.place.get("namespace", NAMESPACE) is None)

    def whole(self):
        self.repository()
        self.application()
        self.first()
        self.live_change()
        self.restart()
        self.by_hand()
        self.published()
        self.delete()
        self.show.step("done")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, required=True)
    parser.add_argument("--keep", action="store_true", help="leave the directory with data and logs where it is")
    options = parser.parse_args()
    binary = options.fairway.resolve()
    target = binary.parent.parent / "tmp" / "machines"
    target.mkdir(parents=True, exist_ok=True)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="fw-", dir=target))
    print(f"fairway image build tiny (in {target})", flush=True)
    world = World(binary, scratch, images(binary, target, ["tiny"]))
    good = False
    place = None
    try:
        print(f"fairway up: ready after {world.start():.1f} s", flush=True)
        print(f"fairway workspace create {WORKSPACE}", flush=True)
        place = world.workspace(WORKSPACE)
        Slice(world, place, scratch).whole()
        good = True
    except Failed as failed:
        print(f"\nFAILED: {failed}", flush=True)
        if place:
            world.tell(place, NAMESPACE)
            done = place.run("kubectl", "get", "application", "user-vms", "-n", "argocd", "-o", "yaml")
            print(done.stdout[-6000:], file=sys.stderr)
    finally:
        try:
            world.end()
        except Failed as failed:
            good = False
            print(f"\nFAILED: {failed}", flush=True)
        if good and not options.keep:
            shutil.rmtree(scratch, ignore_errors=True)
        else:
            print(f"data and logs are in {scratch}", flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    os.environ.pop("GIT_DIR", None)
    main()
