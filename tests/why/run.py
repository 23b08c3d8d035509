"""Injects every fault of the catalogue (faults.py) into a Fairway of its own, and asks `fairway why` of each.

    run.py --fairway BINARY --tools .tools [--images DIR] [--only TEXT]

A fault counts as named rightly if the first broken link is the one of the catalogue, what is shown for it has the cause in it, something is
advised, and the program ends with 2. Of all at least 28 of 30 have to be, and the catalogue has at least two of each link. What nothing is wrong with has to end with 0, and what cannot be
answered with 1. Once a fault is in place it is asked about once more, by the clock: an answer may take a second of processors (the program's
and the server's), and five of wall clock, as the machine may have something else to do; whoever waits for what does nothing takes longer.
"""

import argparse
import collections
import contextlib
import http.server
import json
import math
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "clients"))
sys.path.insert(0, str(ROOT / "tests" / "machines"))

import faults  # noqa: E402
import servers  # noqa: E402

# Statuses are written a moment after what they are about; guests boot in emulated processors.
PATIENCE = 20
GUEST_PATIENCE = 120
# Seconds that an answer may take, of processors and by the clock.
CPU_LIMIT = 1.0
WALL_LIMIT = 5.0
# The timeline, and how many faults of each of its links the catalogue has at least.
LINKS = ["form", "run", "commit", "render", "admission", "sync", "scheduling", "disk", "boot", "cloud-init", "Service", "gateway"]
FAULTS_OF_A_LINK = 2
# Links that only disks, policies, APIs and keys have.
OTHER_LINKS = ["source", "filling", "claim", "policy", "product", "request", "approval", "secret"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, required=True)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / ".tools")
    parser.add_argument("--images", type=pathlib.Path, help="a directory with the image tiny [default: it is built]")
    parser.add_argument("--only", help="faults with this in their names")
    parser.add_argument("--no-guests", action="store_true", help="without those that need a guest to boot")
    options = parser.parse_args()
    check_catalogue()
    images = options.images or built(options.fairway.resolve())
    with tempfile.TemporaryDirectory(prefix="fairway-why-") as scratch, files() as web:
        directory = pathlib.Path(scratch)
        (directory / "data").mkdir(mode=0o700)
        shutil.copytree(images, directory / "data" / "images", symlinks=True)
        with servers.fairway(options.fairway, directory, "--image-allowed-hosts", "loopback") as kubeconfig:
            world = World(options, directory, kubeconfig, web)
            try:
                wanted = [it for it in faults.FAULTS if not options.only or options.only in it.name]
                failed = world.run([it for it in wanted if not (options.no_guests and it.guest)])
                if not options.only:
                    failed |= world.run_sound([it for it in faults.SOUND if not (options.no_guests and it.guest)])
                    failed |= world.run_errors()
            finally:
                world.end()
    sys.exit(1 if failed else 0)


def check_catalogue():
    """Whether every link has its faults, and no fault a link that there is not: nothing is right about a link that nobody asks for."""
    found = collections.Counter(it.link for it in faults.FAULTS)
    few = {link: found[link] for link in LINKS if found[link] < FAULTS_OF_A_LINK}
    unknown = sorted(set(found) - set(LINKS) - set(OTHER_LINKS))
    if few or unknown:
        raise SystemExit(f"the catalogue wants {FAULTS_OF_A_LINK} faults of each link: it has {few}, and unknown links {unknown}")


def built(binary):
    """The image of the guests, built once for all tests."""
    import world

    target = binary.parent.parent / "tmp" / "machines"
    target.mkdir(parents=True, exist_ok=True)
    return world.images(binary, target, ["tiny"])


@contextlib.contextmanager
def files():
    """A web server that has nothing."""
    class Nothing(http.server.BaseHTTPRequestHandler):
        def answer(self):
            self.send_error(404)

        do_GET = do_HEAD = answer

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


class World:
    def __init__(self, options, directory, kubeconfig, web):
        self.fairway_program = str(options.fairway.resolve())
        self.kubectl_program = shutil.which("kubectl", path=f"{options.tools.resolve() / 'bin'}:{os.environ['PATH']}")
        self.directory, self.server = directory, web
        data = directory / "data"
        until("a running server", lambda: (data / "running.json").exists())
        running = json.loads((data / "running.json").read_text())
        self.git_port, self.process = running["web_listen"].rsplit(":", 1)[1], running["pid"]
        self.environment = dict(
            os.environ, KUBECONFIG=str(kubeconfig), HOME=str(directory), GIT_SSL_CAINFO=str(data / "pki" / "ca.crt"),
            GIT_TERMINAL_PROMPT="0", GIT_CONFIG_GLOBAL="/dev/null",
        )
        self.namespace("openshift-gitops")

    def run(self, wanted):
        spaces = {}
        for at, fault in enumerate(wanted):
            spaces[fault.name] = f"f{at:02}"
        # Those with guests first: they take their time while the others are asked.
        for fault in sorted(wanted, key=lambda it: not it.guest):
            space = spaces[fault.name]
            self.namespace(space)
            fault.inject(self, space)
        order = sorted(wanted, key=lambda it: it.guest)
        results = [self.judge(it, spaces[it.name]) for it in order]
        wrong = [why for why, _ in results if why]
        for link in LINKS:
            walls = [wall for it, (_, (wall, _)) in zip(order, results) if it.link == link]
            if walls:
                print(f"{link:10} {len(walls)} faults, {statistics.median(walls):.2f} s by the clock at the median")
        needed = math.ceil(len(wanted) * 28 / 30)
        right = len(wanted) - len(wrong)
        print(f"{right} of {len(wanted)} faults are named rightly ({needed} are needed)")
        return right < needed or self.is_slow([took for _, took in results])

    @staticmethod
    def is_slow(results):
        """Says what one answer took, of each fault; whether any took too long."""
        walls, cpus = sorted(wall for wall, _ in results), sorted(cpu for _, cpu in results)
        print(f"one answer took {statistics.median(walls):.2f} s at the median and {walls[-1]:.2f} s at most by the clock, "
              f"{sum(it < 1 for it in walls)} of {len(walls)} less than a second; "
              f"of processors {statistics.median(cpus):.2f} s and {cpus[-1]:.2f} s")
        slow = [(wall, cpu) for wall, cpu in results if cpu > CPU_LIMIT or wall > WALL_LIMIT]
        if slow:
            print(f"too slow: {len(slow)} answers took more than {CPU_LIMIT:.0f} s of processors or {WALL_LIMIT:.0f} s by the clock")
        return bool(slow)

    def words(self, ask, space):
        words = [self.fairway_program, "why", ask.replace("SPACE", space), "-o", "json"]
        if "://" not in ask and not ask.startswith("application/"):
            words += ["-n", space]
        return words

    def asked(self, words):
        return subprocess.run(words, capture_output=True, text=True, env=self.environment, timeout=60)

    def cost(self, words):
        """One answer: seconds of wall clock, and of processors, here and in the server."""
        def spent():
            fields = pathlib.Path(f"/proc/{self.process}/stat").read_text().rsplit(")", 1)[1].split()
            here = resource.getrusage(resource.RUSAGE_CHILDREN)
            return here.ru_utime + here.ru_stime + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        before, began = spent(), time.monotonic()
        self.asked(words)
        return time.monotonic() - began, spent() - before

    def judge(self, fault, space):
        """Asks until the fault is named, or patience ends, and then once more. What is wrong, and what that one answer took."""
        words = self.words(fault.ask, space)
        wanted = fault.shows.replace("SPACE", space)
        deadline = time.monotonic() + (GUEST_PATIENCE if fault.guest else PATIENCE)
        while True:
            done = self.asked(words)
            why = self.wrong(fault, wanted, done)
            if not why or time.monotonic() > deadline:
                break
            time.sleep(0.5)
        wall, cpu = self.cost(words)
        print(f"{'✗' if why else '✓'} {fault.link:10} {wall:5.2f} s, {cpu:5.2f} s of processors  {fault.name}", flush=True)
        if why:
            print(f"    {why}\n{done.stdout[-3000:]}{done.stderr[-1000:]}", flush=True)
        return why, (wall, cpu)

    def run_sound(self, wanted):
        """What nothing is wrong with; whether anything is said to be."""
        spaces = {it.name: f"s{at:02}" for at, it in enumerate(wanted)}
        for it in wanted:
            self.namespace(spaces[it.name])
            it.make(self, spaces[it.name])
        failed = False
        for it in wanted:
            words = self.words(it.ask, spaces[it.name])
            deadline = time.monotonic() + (GUEST_PATIENCE if it.guest else PATIENCE)
            while True:
                done = self.asked(words)
                answer = json.loads(done.stdout) if done.stdout else {}
                is_right = done.returncode == 0 and answer["sound"] and it.says in answer["verdict"]
                if is_right or time.monotonic() > deadline:
                    break
                time.sleep(0.5)
            print(f"{'✓' if is_right else '✗'} sound: {it.name}", flush=True)
            if not is_right:
                print(f"    it ended with {done.returncode}: {done.stdout[-3000:]}{done.stderr[-1000:]}", flush=True)
            failed |= not is_right
        return failed

    def run_errors(self):
        """What cannot be answered; whether anything is."""
        failed = False
        for words, says in faults.ERRORS:
            done = self.asked([self.fairway_program, *words])
            is_right = done.returncode == 1 and says in done.stderr and not done.stdout
            print(f"{'✓' if is_right else '✗'} error: fairway {' '.join(words)}", flush=True)
            if not is_right:
                print(f"    it ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}", flush=True)
            failed |= not is_right
        return failed

    @staticmethod
    def wrong(fault, wanted, done):
        if done.returncode != 2:
            return f"the program ended with {done.returncode} instead of 2"
        answer = json.loads(done.stdout)
        if answer["firstBroken"] != fault.link:
            return f"{answer['firstBroken']} is named: {answer['verdict']}"
        link = next(it for it in answer["links"] if it["link"] == fault.link)
        told = " ".join([link["finding"], *(f"{it['seenIn']} {it['message']}" for it in link["evidence"])])
        if wanted not in told:
            return f"{wanted!r} is not in what is shown: {told}"
        return None if link["advice"] else "nothing is advised"

    # What faults are made of.

    def kubectl(self, *words, **settings):
        done = subprocess.run([self.kubectl_program, *words], capture_output=True, text=True, env=self.environment, **settings)
        if done.returncode != 0:
            raise SystemExit(f"kubectl {' '.join(words)} failed: {done.stderr}")
        return done.stdout

    def namespace(self, name):
        self.kubectl("create", "namespace", name)

    def apply(self, namespace, *all):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(all)})
        self.kubectl("apply", "--server-side", "-n", namespace, "-f", "-", input=text)

    def template(self, entity):
        """Template entities come from the catalog, which reads repositories."""
        name = entity["metadata"]["name"]
        self.repository(f"t-{name}", {"catalog-info.yaml": json.dumps(entity)})
        show = [self.fairway_program, "template", "show", name]
        until(f"template {name}", lambda: subprocess.run(show, capture_output=True, env=self.environment).returncode == 0)

    def web(self, path):
        return f"{self.server}/{path}"

    def settle(self, namespace, what):
        until(f"a status of {what} in {namespace}", lambda: json.loads(self.kubectl("get", what, "-n", namespace, "-o", "json")).get("status"))

    def gone(self, kind, name, namespace):
        until(f"that {kind}/{name} in {namespace} goes", lambda: not self.kubectl("get", kind, name, "-n", namespace, "--ignore-not-found"))

    def golden_path(self, space):
        values = {"name": space, "sshKey": faults.KEY, "namespace": space}
        self.apply(space, faults.voyage("template:default/virtual-machine", values))
        phase = ["get", "voyage/run", "-n", space, "-o", "jsonpath={.status.phase}"]
        until(f"the end of the golden path in {space}", lambda: self.kubectl(*phase) == "Succeeded")

    def repository(self, name, content):
        done = subprocess.run([self.fairway_program, "repo", "create", f"root/{name}", "--with-token"], capture_output=True,
                              text=True, env=self.environment)
        if done.returncode != 0:
            raise SystemExit(f"no repository: {done.stderr}")
        work = self.directory / "work" / name
        for path, text in content.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(text)
        if not content:
            return f"https://git.fairway.localhost:{self.git_port}/root/{name}.git"
        git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com",
               "-c", f"http.curloptResolve=git.fairway.localhost:{self.git_port}:127.0.0.1"]
        for words in [["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"], ["push", "-q", done.stdout.strip(), "main"]]:
            pushed = subprocess.run([*git, *words], cwd=work, capture_output=True, text=True, env=self.environment)
            if pushed.returncode != 0:
                # Without the address, which has a token in it.
                raise SystemExit(f"git {words[0]} failed")
        return f"https://git.fairway.localhost:{self.git_port}/root/{name}.git"

    def application(self, space, url, path="manifests", revision="main", namespace=None, automated=faults.AUTO,
                    server="https://kubernetes.default.svc", project="default"):
        spec = {
            "project": project, "syncPolicy": {"syncOptions": ["ServerSideApply=true"]},
            "source": {"repoURL": url, "path": path, "targetRevision": revision},
            "destination": {"server": server, "namespace": (namespace or space).replace("SPACE", space)},
        }
        if automated:
            spec["syncPolicy"]["automated"] = automated
        self.apply("openshift-gitops", {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                                        "metadata": {"name": space}, "spec": spec})

    def end(self):
        """Machines outlive the server that started them."""
        subprocess.run([self.kubectl_program, "delete", "vm", "-A", "--all", "--timeout=60s"], capture_output=True,
                       env=self.environment)


def until(what, ask):
    deadline = time.monotonic() + GUEST_PATIENCE
    while not ask():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: waited for in vain for {GUEST_PATIENCE} s")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
