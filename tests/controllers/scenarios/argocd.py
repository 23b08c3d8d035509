"""Argo CD's application-controller and repo-server with Redis: an Application from a Git repository on disk.

Everything that `manifests/install.yaml` brings is applied, its definitions with an annotation; the controller runs beside Fairway as the service
account that it names.
"""

import re
import shutil
import subprocess

import harness
import servers
from harness import Unmet

PROGRAM = "Argo CD 3.2.11"
LISTENS_EVERYWHERE = True
NAMESPACE = "argocd"
COMPLAINTS = re.compile(r"level=(error|fatal)|\"level\":\"(error|fatal)\"|^panic:|^E\d{4} ")
FILES = harness.HERE / "files" / "argocd"


def prepare():
    harness.build("argocd")
    if shutil.which("redis-server") is None:
        subprocess.run([harness.ROOT / "scripts" / "tools.sh", "redis"], check=True)


def run(fairway):
    install(fairway)
    repository = Repository(fairway)
    redis, server, metrics = (servers.free_port() for _ in range(3))
    account = fairway.identities.account(NAMESPACE, "argocd-application-controller")
    binary, allowed = harness.TOOLS / "argocd", harness.allow_list("argocd")
    folders = {}
    for name in ("TLS", "SSH"):
        folders[f"ARGOCD_{name}_DATA_PATH"] = fairway.directory / name.lower()
        folders[f"ARGOCD_{name}_DATA_PATH"].mkdir()
    environment = folders | {"ARGOCD_GPG_ENABLED": "false", "KUBECONFIG": account}
    with (
        fairway.program("redis", ["redis-server", "--port", redis, "--bind", "127.0.0.1", "--save", ""],
                        re.compile(r"# Fatal|# Failed")),
        fairway.program(
            "argocd-repo-server",
            [binary, "--redis", f"127.0.0.1:{redis}", "--disable-tls", "--address", "127.0.0.1",
             "--port", server, "--metrics-port", metrics],
            COMPLAINTS, allowed, ARGOCD_BINARY_NAME="argocd-repo-server", **environment),
        fairway.program(
            "argocd-application-controller",
            [binary, "--redis", f"127.0.0.1:{redis}", "--repo-server", f"127.0.0.1:{server}", "--repo-server-plaintext",
             "--namespace", NAMESPACE],
            COMPLAINTS, allowed, ARGOCD_BINARY_NAME="argocd-application-controller", ARGOCD_FAKE_IN_CLUSTER="true",
            **environment),
    ):
        application(fairway, repository)


def install(fairway):
    module = harness.module_directory("argocd", "github.com/argoproj/argo-cd/v3")
    fairway.kubectl("create", "namespace", NAMESPACE)
    # Fairway serves these kinds itself; here Argo CD's own controllers are to have them.
    brought = (module / "manifests" / "install.yaml").read_text()
    own = "kind: CustomResourceDefinition\nmetadata:\n"
    if brought.count(own) != 3:
        raise harness.Failed("install.yaml does not bring the three definitions in the usual form")
    fairway.apply(brought.replace(own, own + "  annotations:\n    fairway.dev/served-by: definition\n"), "-n", NAMESPACE)
    fairway.apply(FILES / "project.yaml")
    # argocd-server, which has no part here, would make the key at its first start.
    fairway.kubectl("patch", "secret", "argocd-secret", "-n", NAMESPACE, "--type=merge",
                    "-p", '{"stringData":{"server.secretkey":"only-for-this-test"}}')
    fairway.kubectl("create", "namespace", "pier")


class Repository:
    """A Git repository with manifests."""

    def __init__(self, fairway):
        self.path = fairway.directory / "repository"
        shutil.copytree(FILES / "repository", self.path)
        self.environment = fairway.environment()
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("start")

    def git(self, *arguments):
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
        done = subprocess.run(["git", *identity, *arguments], cwd=self.path, env=self.environment,
                              capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, message):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")


def state(fairway, name="pier"):
    found = (fairway.get("application", name, "-n", NAMESPACE) or {}).get("status", {})
    return (found.get("sync", {}).get("status"), found.get("health", {}).get("status"),
            found.get("sync", {}).get("revision"),
            # Warnings are conditions too: two Applications share a CRD here.
            [entry for entry in found.get("conditions", []) if entry["type"].endswith("Error")])


def settled(fairway, revision, name="pier"):
    seen = state(fairway, name)
    return True if seen[:3] == ("Synced", "Healthy", revision) and not seen[3] else Unmet(str(seen))


def refresh(fairway):
    fairway.kubectl("annotate", "application", "pier", "-n", NAMESPACE, "argocd.argoproj.io/refresh=normal", "--overwrite")


def value(fairway, name):
    return ((fairway.get("configmap", name, "-n", "pier") or {}).get("data") or {}).get("colour")


def application(fairway, repository):
    head = repository.git("rev-parse", "HEAD")
    text = (FILES / "application.yaml").read_text().replace("REPOSITORY", f"file://{repository.path}")
    fairway.apply(text)
    fairway.expect("the Application is Synced and Healthy", lambda: settled(fairway, head), within=120)
    if value(fairway, "lamp-1") != "red" or fairway.get("beacons.example.com", "north", "-n", "pier") is None:
        raise harness.Failed("Argo CD says Synced, but objects of the repository are missing")

    file = repository.path / "lamps.yaml"
    file.write_text(file.read_text().replace("colour: red", "colour: green"))
    head = repository.commit("green")
    refresh(fairway)
    fairway.expect("a commit is synced", lambda: settled(fairway, head) is True and value(fairway, "lamp-1") == "green")

    fairway.kubectl("patch", "configmap", "lamp-1", "-n", "pier", "--type=merge", "-p", '{"data":{"colour":"white"}}')
    fairway.expect("drift is healed", lambda: value(fairway, "lamp-1") == "green" and settled(fairway, head) is True)

    (repository.path / "spare.yaml").unlink()
    head = repository.commit("no spare")
    refresh(fairway)
    fairway.expect("what the repository no longer has is pruned",
                   lambda: settled(fairway, head) is True and fairway.get("configmap", "spare", "-n", "pier") is None)

    other = text.replace("name: pier", "name: pier-apply").replace("namespace: pier\n", "namespace: default\n")
    fairway.apply(other.replace("# syncOptions", "syncOptions: [ServerSideApply=true]"))
    fairway.expect("another one, by server-side apply",
                   lambda: settled(fairway, head, "pier-apply"), within=120)

    fairway.kubectl("delete", "application", "pier", "-n", NAMESPACE, "--wait=false")
    fairway.expect("a deleted Application takes its objects with it",
                   lambda: fairway.get("application", "pier", "-n", NAMESPACE) is None
                   and fairway.get("configmap", "lamp-1", "-n", "pier") is None)
    idle = fairway.cpu_over(10)
    fairway.note(f"at rest: Fairway uses {idle:.1f} % of a core in 10 s", 10)
