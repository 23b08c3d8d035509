"""The golden path without hands: from a sign-in to a machine that answers, through changes, to its end. `make demo` runs it.

    run.py --fairway BINARY --tools .tools [--keep]

It does what a person would at a terminal, with fairway, kubectl, git, ssh and curl, prints every command with what it says and every step
with its time, and ends with code 1 at the first thing that is not as it should be. Numbers in brackets are the requirements that a step
shows (docs/conformance/golden-path.md).

It runs in a network namespace of its own, so that ports 80 and 443 of routes are free whatever else runs here; guests need none of the
host's networks.
"""

import argparse
import contextlib
import importlib.util
import json
import mailbox
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "machines"))

from scenarios.joining import NAME as SECOND, node, node_of  # noqa: E402
from scenarios.life import condition, status  # noqa: E402
from slice import Slice  # noqa: E402
from steps import step, table  # noqa: E402
from world import Failed, Place, World, check, eventually, images, servers  # noqa: E402

NAMESPACE = "user-vms"
HOST = "web.apps.fairway.localhost"
LIMIT = 8
RAISED = 200


def gateway_tests():
    """The module of tests/gateway, whose way of asking through a Route is used here, too."""
    found = importlib.util.spec_from_file_location("gateway_tests", ROOT / "tests" / "gateway" / "run.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


class Demo(Slice):
    def __init__(self, world, scratch, options):
        super().__init__(world, world.root(), scratch)
        self.took = []
        gateway = gateway_tests()
        self.router = gateway.Flow(options, scratch, world.data / "kubeconfig", None)
        self.bench = types.SimpleNamespace(world=world, place=self.place, namespace=NAMESPACE, key=self.key)
        self.mails = scratch / "mails"
        self.mail_port = servers.free_port()

    # What steps are made of.

    def fairway(self, *words):
        return self.run(self.world.binary, *words)

    def application(self, name):
        return self.place.get("application", name, "-n", "openshift-gitops")

    def settled(self, *names):
        for name in names or ("web",):
            self.fairway("app", "wait", f"openshift-gitops/{name}", "--sync", "--health", "--timeout", "240")
            found = self.application(name)["status"]
            words = found["sync"]["status"], found["health"]["status"], found.get("conditions", [])
            check(words == ("Synced", "Healthy", []), f"{name}: {words}")

    def guest(self, command, name="web"):
        """What a command in a guest prints, through the tunnel of `fairway vm ssh`."""
        ssh = ["-i", self.key.path, "--known-hosts", "/dev/null"]
        for option in ("StrictHostKeyChecking=no", "LogLevel=ERROR", "BatchMode=yes", "ConnectTimeout=10"):
            ssh += ["-t", f"-o {option}"]
        return self.place.must(self.world.binary, "vm", "ssh", f"demo@{name}", "-n", NAMESPACE, *ssh, "-c", command, timeout=60).strip()

    def logged_in(self, name="web"):
        return eventually(f"demo can log in to {name}", lambda: self.guest("hostname", name) == name, pause=1)

    def boot_id(self, name="web"):
        return eventually("the guest answers", lambda: self.guest("cat /proc/sys/kernel/random/boot_id", name), pause=1)

    def ask(self, key=None):
        answer = self.router.ask(host=HOST, path="/", authorization=f"APIKEY {key}" if key else None)
        words = ["curl", *(["-H", "Authorization: APIKEY ..."] if key else []), f"https://{HOST}/"]
        self.show.command(words)
        self.show.said(f"{answer['status']}  {answer.get('body', answer.get('error', '')).strip()}")
        return answer

    def reached(self, ask):
        """What asking answers, and how many connections it has opened in the guest: its web server takes a new one for each request."""
        def opened():
            lines = [line.split() for line in self.guest("cat /proc/net/snmp").splitlines() if line.startswith("Tcp:")]
            return int(dict(zip(*lines))["PassiveOpens"])

        # Looking takes a connection of SSH, too, which is not theirs.
        first, before = opened(), opened()
        answers = ask()
        return answers, (opened() - before) - (before - first)

    def expect(self, wanted, key=None, patience=120):
        return eventually(f"{HOST} answers {wanted}", lambda: (lambda it: it if it["status"] == wanted else None)(self.ask(key)),
                          patience=patience, pause=1)

    def push(self, message, branch="main"):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("push", "-o", "fairway.wait=120", "origin", f"HEAD:{branch}")

    def new(self, name, *answers):
        words = ["new", "virtual-machine", "-y", "--set", f"name={name}", "--set", f"sshKey={self.key.public}"]
        for answer in answers:
            words += ["--set", answer]
        return self.fairway(*words)

    def voyage(self, name):
        voyages = self.place.get("voyages", "-A")["items"]
        return next(it for it in voyages if it["spec"]["values"]["name"] == name)

    # The steps.

    @step("sign in, with the password that the first start printed", 88)
    def signs_in(self):
        (password,) = re.findall(r"password\s+(\S+)   \(shown this once", self.world.log.read_text())
        own = self.scratch / "admin.kubeconfig"
        words = ["login", "--username", "admin", "--password-stdin", "--write", own, "--data", self.world.data]
        self.show.command(["fairway", *words])
        self.show.said(self.place.must(self.world.binary, *words, stdin=password + "\n"))
        self.place = Place(self.world, own)
        self.bench.place = self.place
        said = self.fairway("whoami")
        check("root/admin" in said, "the server knows who signed in")
        check("virtual-machine" in self.fairway("template", "list"), "the golden path is registered")

    @step("a mail server, and who is told through it")
    def mail_is_set_up(self):
        self.place.namespace("openshift-gitops")
        self.place.apply({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-notifications-cm", "namespace": "openshift-gitops"},
            "data": {"service.email": f"host: 127.0.0.1\nport: {self.mail_port}\nfrom: fairway@example.com\n"},
        })

    @step("two machines by the golden path, one of them published with an API key and a limit", 1)
    def machines_are_ordered(self):
        said = self.new("web", "connectivity=true", f"host={HOST}", "auth=api-key", f"rateLimit={LIMIT}", "email=ann@example.com")
        check("fairway api-key request web" in said, "it says how to get a key")
        self.new("other")
        made = [it["name"] for it in self.voyage("web")["status"]["steps"] if it["state"] == "completed"]
        order = [made.index(it) for it in ("Make the repository", "Make the Application", "Register it in the catalog", "Tell the owner")]
        check(order == sorted(order), f"repository, Application, catalog, mail: {made}")
        entity = self.fairway("catalog", "get", "component:default/web")
        check("virtual-machine" in entity, "it is in the catalog")

    @step("everything is there, Synced and Healthy; the Namespace is shared", 2, 3, 4, 5, 14)
    def both_are_synced(self):
        self.settled("web", "other")
        spec = self.application("web")["spec"]
        check(spec["source"]["path"] == "manifests", f"it points at manifests/: {spec['source']}")
        check(spec["syncPolicy"]["automated"] == {"prune": True, "selfHeal": True}, f"automated: {spec['syncPolicy']}")
        managers = self.place.get("vm", "web", "-n", NAMESPACE, "--show-managed-fields")["metadata"]["managedFields"]
        check(any(it["manager"] == "argocd-controller" and it["operation"] == "Apply" for it in managers), "applied by the engine")
        self.run("kubectl", "get", "vm,dv,service,gateway,httproute,authpolicy,ratelimitpolicy,planpolicy,apiproduct,route", "-n", NAMESPACE)
        for kind in ("gateway", "httproute", "authpolicy", "ratelimitpolicy", "planpolicy/web-plans", "apiproduct", "route"):
            kind, _, name = kind.partition("/")
            check(self.place.get(kind, name or "web", "-n", NAMESPACE), f"there is a {kind}")
            check(self.place.get(kind, "other", "-n", NAMESPACE) is None, f"the other has no {kind}")
        ports = [it["port"] for it in self.place.get("service", "web", "-n", NAMESPACE)["spec"]["ports"]]
        check(ports == [22, 8080], f"ports: {ports}")
        for name in ("web-cloud-init", "web-ssh"):
            check(self.place.get("secret", name, "-n", NAMESPACE), f"there is a Secret {name}")
        check(status(self.bench, "dv", "web-root")["phase"] == "Succeeded", "its disk came by a DataVolume")

    @step("SSH with the key; what cloud-init was told is so", 9)
    def ssh_works(self):
        self.logged_in()
        self.show.command(["fairway", "vm", "ssh", "demo@web", "-n", NAMESPACE, "-c", "hostname; id -un; uname -sr"])
        said = self.guest("hostname; id -un; uname -sr; cat /srv/www/index.html; cat .ssh/authorized_keys")
        self.show.said(said)
        lines = said.splitlines()
        check(lines[:2] == ["web", "demo"], f"host name and user: {lines[:2]}")
        check("Hello from web." in said, "the file is written")
        check(self.key.public.split()[1] in said, "the key is there")

    @step("HTTP through the Route, the Gateway and the HTTPRoute: 401 without a key, 200 with one, 429 beyond the limit", 6, 7, 8)
    def http_works(self):
        refused = self.expect(401)
        check("Hello" not in refused["body"], "nothing of the guest comes through")
        said, came = self.reached(lambda: [self.ask(key)["status"] for key in (None, None, "wrong")])
        check(said == [401] * 3 and came == 0, f"without a key, or with a wrong one, 401, and nothing reaches the guest: {said}, {came} requests")
        words = ["api-key", "request", "web", "-n", NAMESPACE, "--approve"]
        self.show.command(["fairway", *words])
        self.api_key = self.place.fairway(*words).strip()
        self.show.said("...")
        check(len(self.api_key) >= 40, "a key is printed")
        answer = self.expect(200, self.api_key)
        check("Hello from web." in answer["body"], f"the guest answers: {answer['body']}")
        # More than two minutes together allow, as one may end meanwhile.
        said, came = self.reached(lambda: [self.ask(self.api_key)["status"] for _ in range(2 * LIMIT + 1)])
        check(set(said) == {200, 429}, f"beyond the limit 429: {said}")
        check(came == said.count(200), f"429 is the proxy's answer, and {came} requests have reached the guest: {said}")
        check(self.api_key not in self.world.log.read_text(), "the key is not in the log")

    @step("clone the repository; there is no secret in it")
    def repository_is_cloned(self):
        session = next((self.scratch / ".local/state/fairway/sessions").glob("*root*.json"))
        git = json.loads(self.place.fairway("status", "-o", "json", "--data", self.world.data))["git"]
        self.tree.mkdir()
        self.git("-c", f"credential.helper=!{self.world.binary} credential git --session {session}", "clone", "-q", f"{git}/root/web.git", ".")
        self.git("config", "credential.helper", f"!{self.world.binary} credential git --session {session}")
        said = self.place.must("git", "-C", self.tree, "log", "-p")
        check(self.api_key not in said and "PRIVATE KEY" not in said, "neither the API key nor a private key is in Git")

    @step("a policy is changed in Git: it holds at once, and the machine runs on", 10, 11)
    def policy_is_changed(self):
        before = self.boot_id()
        self.edit("ratelimitpolicy.yaml", f"limit: {LIMIT}", f"limit: {RAISED}")
        self.push("Let more requests through")
        self.settled()
        eventually("the limit is another one", lambda: self.place.get(
            "ratelimitpolicy", "web", "-n", NAMESPACE)["spec"]["overrides"]["limits"]["everybody"]["rates"][0]["limit"] == RAISED)
        self.expect(200, self.api_key)
        check(self.boot_id() == before, "the machine did not boot for that")

    @step("changes by hand are taken back: a limit is lifted, a Service is deleted", 12)
    def by_hand_is_reverted(self):
        limits = lambda: self.place.get("ratelimitpolicy", "web", "-n", NAMESPACE)["spec"]["overrides"]["limits"]["everybody"]["rates"]
        lifted = {"spec": {"overrides": {"limits": {"everybody": {"rates": [{"limit": 1000000, "window": "60s"}]}}}}}
        self.run("kubectl", "patch", "ratelimitpolicy", "web", "-n", NAMESPACE, "--type=merge", "-p", json.dumps(lifted))
        eventually("the limit is that of Git", lambda: limits()[0]["limit"] == RAISED)
        self.run("kubectl", "delete", "service", "web", "-n", NAMESPACE)
        eventually("the Service is there again", lambda: self.place.get("service", "web", "-n", NAMESPACE))
        self.expect(401)
        self.expect(200, self.api_key)
        self.settled()

    @step("a file goes from Git, and its object with it", 13)
    def file_is_pruned(self):
        (self.tree / "manifests" / "planpolicy.yaml").unlink()
        self.push("No plans")
        eventually("the PlanPolicy is gone", lambda: self.place.get("planpolicy", "web-plans", "-n", NAMESPACE) is None)
        self.settled()

    @step("the machine moves to a second node, and does not boot for that", 14)
    def machine_moves(self):
        before, first = self.boot_id(), node_of(self.bench, "web")
        with node(self.bench) as second:
            eventually("it can move", lambda: condition(status(self.bench, "vmi"), "LiveMigratable").get("status") == "True")
            for where in (SECOND, first):
                self.fairway("vm", "migrate", "web", "-n", NAMESPACE)
                eventually(f"it is on {where}", lambda: node_of(self.bench, "web") == where)
                eventually("it is over", lambda: status(self.bench, "vmi").get("migrationState", {}).get("completed"))
                check(len(second.qemus()) == (1 if where == SECOND else 0), "it runs once")
                check(self.boot_id() == before, "it has not booted")
                self.expect(200, self.api_key)
        self.settled()

    @step("the VM's spec is changed in Git: it restarts, and has two processors", 11)
    def spec_is_changed(self):
        before = self.boot_id()
        self.edit("virtual-machine.yaml", "cores: 1", "cores: 2")
        self.push("Two processors", "larger")
        plan = self.fairway("app", "plan", "--repo", "root/web", "--branch", "larger")
        check("restart" in plan, f"the plan tells of the restart: {plan}")
        said = self.git("push", "-o", "fairway.wait=120", "origin", "HEAD:main")
        for words in ("~ VirtualMachine user-vms/web", "Synced and Healthy"):
            check(words in said, f"the push tells what becomes of it: {words!r} is not in {said}")
        eventually("it boots again", lambda: self.guest("cat /proc/sys/kernel/random/boot_id") != before, pause=1)
        check(self.guest("nproc") == "2", "it has two processors")
        self.settled()

    @step("stop and start, in Git's words", 14)
    def machine_stops_and_starts(self):
        self.edit("virtual-machine.yaml", "runStrategy: Always", "runStrategy: Halted")
        self.push("Off for the night")
        eventually("it is off", lambda: self.place.get("vmi", "web", "-n", NAMESPACE) is None)
        self.run("kubectl", "get", "vm", "-n", NAMESPACE)
        self.edit("virtual-machine.yaml", "runStrategy: Halted", "runStrategy: Always")
        self.push("And on again")
        self.settled()
        self.logged_in()
        self.expect(200, self.api_key)

    @step("the mail has come", 1)
    def mail_has_come(self):
        box = mailbox.Maildir(self.mails)
        (mail,) = eventually("there is one mail", lambda: list(box) or None)
        self.show.said(f"To: {mail['To']}\nSubject: {mail['Subject']}\n\n{mail.get_payload(decode=True).decode()}")
        check("web is on its way" in mail["Subject"], f"its subject: {mail['Subject']}")

    @step("one of two is decommissioned, and the other lives on")
    def one_goes(self):
        before = self.boot_id("other")
        self.fairway("voyage", "decommission", self.voyage("web")["metadata"]["name"])
        eventually("the machine is gone", lambda: self.place.get("vm", "web", "-n", NAMESPACE) is None)
        check(self.application("web") is None, "its Application is gone")
        check(self.place.get("repositories.fairway.dev", "web") is None, "its repository is gone")
        self.expect(None)
        self.settled("other")
        check(self.place.get("namespace", NAMESPACE), "the Namespace stays")
        check(self.boot_id("other") == before, "the other has run on")

    @step("an organisation of its own knows nobody from here; a group gives rights and takes them; a disabled user is out", 59, 60, 88)
    def realms_are_apart(self):
        root = self.world.root()
        for name in ("acme", "beta"):
            root.fairway("org", "create", name)
        said = root.fairway("user", "create", "ann", "--org", "acme")
        password = re.search(r"Password: (\S+)", said).group(1)
        own = self.scratch / "ann.kubeconfig"
        words = ["login", "--org", "acme", "--username", "ann", "--password-stdin", "--data", self.world.data, "--write", own]
        root.must(self.world.binary, *words, stdin=password + "\n")
        elsewhere = [*words[:1], "--org", "beta", *words[3:]]
        check(root.run(self.world.binary, *elsewhere, stdin=password + "\n").returncode != 0, "beta does not know ann")
        ann, acme = Place(self.world, own), self.world.workspace("acme")
        may = lambda: ann.run("kubectl", "get", "secrets", "-n", "default").returncode == 0
        root.fairway("group", "create", "developers", "--org", "acme")
        acme.kubectl("create", "clusterrolebinding", "developers", "--clusterrole=edit", "--group=acme/developers")
        check(not may(), "ann has no rights yet")
        root.fairway("group", "add", "developers", "ann", "--org", "acme")
        check(may(), "who joins the group has its rights with the next request")
        root.fairway("group", "remove", "developers", "ann", "--org", "acme")
        check(not may(), "who leaves it loses them")
        root.fairway("group", "add", "developers", "ann", "--org", "acme")
        check(may(), "and has them again")
        root.fairway("user", "disable", "ann", "--org", "acme")
        check(not may(), "a disabled user is out of the API")
        check(root.run(self.world.binary, *words, stdin=password + "\n").returncode != 0, "and cannot sign in")
        self.show.said("ann of acme: unknown to beta, let in and out by a group, out when disabled")

    @step("the other goes, too, and nothing is left running")
    def all_goes(self):
        self.fairway("voyage", "decommission", self.voyage("other")["metadata"]["name"])
        eventually("no machine runs", lambda: not self.world.qemus())

    def whole(self):
        steps = [value for value in vars(type(self)).values() if getattr(value, "is_step", False)]
        as_documented(steps)
        mails = [sys.executable, "-m", "aiosmtpd", "-n", "-l", f"127.0.0.1:{self.mail_port}", "-c", "aiosmtpd.handlers.Mailbox", str(self.mails)]
        with servers.process(mails, self.scratch / "mail.log"):
            for one in steps:
                one(self)
        print(f"\n{table(self.took)}\n", flush=True)


def as_documented(steps):
    """What docs/conformance/golden-path.md says of steps is so: a table that nobody checks is soon wrong."""
    rows = dict(re.findall(r"^\| (\d+) \|(.*)$", (ROOT / "docs" / "conformance" / "golden-path.md").read_text(), re.MULTILINE))
    told = {(int(number), name) for number, row in rows.items() for name in re.findall(r"`demo::(\w+)`", row)}
    shown = {(number, one.__name__) for one in steps for number in one.requirements}
    check(told == shown, f"golden-path.md and the steps differ: {sorted(told ^ shown)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, required=True)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / ".tools")
    parser.add_argument("--keep", action="store_true", help="leave the directory with data and logs where it is")
    parser.add_argument("--images", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    binary = options.fairway.resolve()
    target = binary.parent.parent / "tmp" / "machines"
    target.mkdir(parents=True, exist_ok=True)
    if not options.images:
        print(f"fairway image build tiny (in {target})", flush=True)
        # While there is a network to fetch from.
        built = images(binary, target, ["tiny"])
        # As root, or as anybody where namespaces of users are allowed.
        namespaces = ["-n"] if os.geteuid() == 0 else ["-r", "-n"]
        os.execvp("unshare", ["unshare", *namespaces, sys.executable, *sys.argv, "--images", str(built)])
    for command in ["link set lo up", f"addr add {gateway_tests().HOST}/32 dev lo"]:
        subprocess.run(["ip", *command.split()], check=True)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="fw-", dir=target))
    world = World(binary, scratch, options.images, ["--gateway-address", gateway_tests().HOST, "--webhook-allowed-hosts", "loopback"])
    good, demo, began = False, None, time.monotonic()
    try:
        print(f"fairway up: ready after {world.start():.1f} s", flush=True)
        # The API answers a moment before the server has said what it says once.
        eventually("the server has said hello", lambda: "Fairway is ready" in world.log.read_text(), patience=60)
        demo = Demo(world, scratch, options)
        demo.whole()
        good = True
    except Failed as failed:
        print(f"\nFAILED: {failed}", flush=True)
        if demo:
            tell(world)
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
    print(f"the demo {'went well' if good else 'FAILED'}, {time.monotonic() - began:.0f} s", flush=True)
    sys.exit(0 if good else 1)


def tell(world):
    """What somebody who looks into a failure wants to see."""
    world.tell(world.root(), NAMESPACE)
    for words in (["get", "applications,voyages", "-A"], ["get", "applications", "-A", "-o", "yaml"]):
        done = world.root().run("kubectl", *words)
        print(f"--- kubectl {' '.join(words)}\n{(done.stdout + done.stderr)[-5000:]}", file=sys.stderr)


if __name__ == "__main__":
    os.environ.pop("GIT_DIR", None)
    with contextlib.suppress(KeyboardInterrupt):
        main()
