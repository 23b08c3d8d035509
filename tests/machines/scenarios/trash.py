"""The disks of machines that Git has pruned."""

import datetime
import json

from guest import node_port
from manifests import machine, secret, service, user_data
from repository import git
from scenario import scenario
from scenarios.life import ready
from world import check, eventually


class Repository:
    """A repository, and an Application that syncs it into the bench's namespace."""

    def __init__(self, bench, name):
        self.bench, self.name = bench, name
        self.tree = bench.world.scratch / name
        (self.tree / "manifests").mkdir(parents=True)

    def git(self, *words):
        done = git(self.bench.place, self.tree, *words)
        check(done.returncode == 0, f"git {' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def fairway(self, *words):
        return self.bench.place.fairway(*words)

    def begin(self):
        url = self.fairway("repo", "create", f"root/{self.name}", "--with-token").strip()
        self.git("init", "-q", "-b", "main")
        self.git("remote", "add", "origin", url)
        source = {"repoURL": f"https://{url.split('@')[-1]}", "path": "manifests", "targetRevision": "main"}
        self.bench.place.namespace("argocd")
        self.push("A machine")
        self.bench.place.apply({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": self.name, "namespace": "argocd"},
            "spec": {"project": "default", "source": source,
                     "destination": {"server": "https://kubernetes.default.svc", "namespace": self.bench.namespace},
                     "syncPolicy": {"automated": {"prune": True, "selfHeal": True}, "syncOptions": ["ServerSideApply=true"]}}})

    def push(self, message):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        self.git("push", "-q", "-o", "fairway.wait=60", "origin", "HEAD:main")

    def prune(self, file):
        """Takes a file out of Git, and says that what it has made may go."""
        (self.tree / "manifests" / file).unlink()
        self.push(f"No {file}")
        asks = lambda: "approv" in json.dumps((self.bench.place.get("application", self.name, "-n", "argocd") or {}).get("status"))
        eventually("the sync waits for approval", asks)
        self.fairway("app", "approve", self.name)
        eventually("the machine is gone", lambda: self.bench.place.get("vm", "web", "-n", self.bench.namespace) is None)

    def end(self):
        self.bench.place.run(self.bench.world.binary, "app", "delete", self.name, "--yes", "--wait")


@scenario()
def kept_for_a_while(bench):
    """A machine that Git pruned comes back with its disk by a revert; without one the disk goes when its time is over, and not before."""
    place, namespace, key = bench.place, bench.namespace, bench.key
    place.apply(secret("web-seed", namespace, userdata=user_data("web")), secret("web-ssh", namespace, key=key.public),
                service("web", namespace, {"app": "web"}, ssh=22))
    ssh = node_port(place, namespace, "web", 22)
    repository = Repository(bench, f"{namespace}-vms")
    file = repository.tree / "manifests" / "machine.json"

    def write(keep):
        made = machine("web", namespace, secret="web-seed", keys="web-ssh", metadata={"annotations": {"fairway.dev/keep-disks": keep}})
        file.write_text(json.dumps(made, indent=2))

    gone = lambda: eventually("its process is gone", lambda: not bench.world.qemus())
    # A folder that is not there would be a mistake, and not an order to delete everything.
    stays = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stays"}}
    (repository.tree / "manifests" / "stays.json").write_text(json.dumps(stays))
    disks = lambda: list((bench.world.data / "machines" / "volumes").rglob("disk.qcow2"))
    until = lambda: [datetime.datetime.fromisoformat(text) for it in place.get("pv")["items"]
                     if (text := it["metadata"].get("annotations", {}).get("fairway.dev/trash-until"))]
    left = lambda: (until()[0] - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    try:
        write("72h")
        repository.begin()
        eventually("the machine is made", lambda: place.get("vm", "web", "-n", namespace))
        ready(bench)
        key.login(ssh)
        key.ssh(ssh, "echo kept > /home/demo/note && sync")
        (disk,) = disks()
        repository.prune("machine.json")
        gone()
        eventually("its volume says until when it is kept", until)
        check(71 * 3600 < left() <= 72 * 3600, f"for as long as the machine says: {left():.0f} s")
        check(disks() == [disk], f"its disk is there: {disks()}")

        repository.git("revert", "--no-edit", "HEAD")
        repository.git("push", "-q", "-o", "fairway.wait=60", "origin", "HEAD:main")
        eventually("the machine is made again", lambda: place.get("vm", "web", "-n", namespace))
        ready(bench)
        key.login(ssh)
        check(key.ssh(ssh, "cat /home/demo/note") == "kept", "with the disk that it had")
        check(disks() == [disk] and not until(), f"which is no longer in the trash: {disks()} {until()}")

        write("25s")
        repository.push("Keep its disks for less")
        eventually("the machine says so", lambda: "25s" in json.dumps(place.get("vm", "web", "-n", namespace)["metadata"]["annotations"]))
        repository.prune("machine.json")
        gone()
        eventually("its volume says until when it is kept", until)
        end = until()[0]
        eventually("its disk goes", lambda: not disks(), patience=90)
        late = (datetime.datetime.now(datetime.timezone.utc) - end).total_seconds()
        check(-1 <= late < 45, f"when its time is over: {late:.0f} s after it")
    finally:
        repository.end()
