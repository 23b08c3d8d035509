"""The portal in a real browser: every page with real data, strangers' texts, refusals, what pages cost, and the golden path with a guest.

    run.py --fairway BINARY --tools .tools [--no-guest] [--screens DIR] [PART...]
    run.py --fairway BINARY --film docs            # the golden path alone, and its pictures into the documentation
    run.py --fairway BINARY --report bench/results # what pages cost, as a report

Parts are types, entrance, pages, frame, using, forms, layout, crowd, long, hostile, refusals, budget, changes, runs, large, machines and golden. Chromium and its driver come with
`scripts/tools.sh chromium portal`. Screenshots are kept in --screens (default: target/portal).
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests" / "machines"), str(ROOT / "tests" / "clients")]

import film  # noqa: E402
import grown  # noqa: E402
import manifests  # noqa: E402
import objects  # noqa: E402
import report  # noqa: E402
from world import World, check, eventually, images, servers  # noqa: E402

MANY = "many"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, required=True)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / ".tools")
    parser.add_argument("--screens", type=pathlib.Path, default=ROOT / "target" / "portal")
    parser.add_argument("--dist", type=pathlib.Path, help="a build of web/ to look at, in place of the one in the binary")
    parser.add_argument("--no-guest", action="store_true", help="without a machine that runs")
    parser.add_argument("--film", type=pathlib.Path, metavar="DOCS", help="go the golden path with nothing beside it, and put its pictures there")
    parser.add_argument("--report", type=pathlib.Path, metavar="DIR", help="measure what pages cost, and write a report there")
    parser.add_argument("--keep", action="store_true", help="leave the server running until a key is pressed")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    if options.film:
        options.parts = ["golden"]
    if options.report:
        options.parts, options.no_guest = ["budget", "long"], True
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairway-portal-") as scratch:
        directory = pathlib.Path(scratch)
        target = options.fairway.resolve().parent.parent / "tmp" / "machines"
        target.mkdir(parents=True, exist_ok=True)
        ready = None if options.no_guest else images(options.fairway.resolve(), target, ["tiny"])
        ports = [servers.free_port() for _ in range(3)]
        flags = ["--web-listen", f"127.0.0.1:{ports[0]}", "--dns-listen", f"127.0.0.1:{ports[1]}", "--gateway-address", own_address()]
        world = World(options.fairway, directory, ready, flags + (["--no-machines"] if options.no_guest else []))
        world.start()
        try:
            types(options, world)
            settings = prepare(options, world, ports)
            print(f"prepared after {time.monotonic() - began:.0f} s", flush=True)
            code = walk(options, directory, settings)
            if code == 0 and options.film:
                film.show(options.screens, options.film)
            if code == 0 and options.report:
                print(report.write(options.screens, options.fairway, options.dist, options.report))
            if options.keep:
                input(f"{settings['portal']} as {settings['user']} with {settings['password']}; Enter ends it: ")
        finally:
            world.root().run("kubectl", "delete", "vm", "--all", "-A", "--timeout=60s")
            world.end()
    print(f"{'ok' if code == 0 else 'FAILED'}, {time.monotonic() - began:.0f} s")
    sys.exit(code)


def own_address():
    """Where gateways are: an address of this host of which ports 443 and 8080 are free, whatever else runs here."""
    number = os.getpid() & 0xffffff
    return f"127.{number >> 16 | 0x40}.{number >> 8 & 0xff}.{(number & 0xff) or 1}"


def types(options, world):
    """The portal's types are those that the server says now: nobody sees by himself that they are older."""
    if options.parts and "types" not in options.parts:
        return
    eventually("the server is ready", lambda: "Fairway is ready" in world.log.read_text())
    script = ROOT / "web" / "scripts" / "generate-types.mjs"
    done = subprocess.run(["node", str(script), "--check", str(world.root().kubeconfig)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"types: {done.stderr.strip() or done.stdout.strip()}")
    print("ok       the portal's types are the server's", flush=True)


def prepare(options, world, ports):
    """What the browser has to know of the server; and objects for the pages to show, unless a film is made."""
    eventually("the server is ready", lambda: "Fairway is ready" in world.log.read_text())
    password = re.findall(r"password\s+(\S+)   \(shown this once", world.log.read_text())[0]
    root = world.root()
    git = json.loads(root.fairway("status", "-o", "json", "--data", world.data))["git"]
    if not options.film:
        stage(options, world, git, ports[2])
    return {
        "portal": git.replace("https://git.", "https://portal."), "user": "admin", "password": password, "many": f"root:{MANY}",
        "chromium": shutil.which("chromium"), "screens": str(options.screens.resolve()), "guest": not options.no_guest, "only": options.parts,
        "path": servers.environment(root.kubeconfig, world.scratch, world.binary)["PATH"], "kubeconfig": str(root.kubeconfig),
        "data": str(world.data), "authority": str(world.data / "pki" / "ca.crt"), "gateway": ports[2], "gateway_address": own_address(), "dist": str(options.dist.resolve()) if options.dist else None,
    }


def stage(options, world, git, port):
    """Repositories, workspaces and objects that the pages show."""
    root = world.root()
    propose = repository(world, root)
    for name in ["team", "openshift-gitops"]:
        root.namespace(name)
    root.apply(*objects.machines())
    root.apply(*objects.applications(git))
    eventually("the shop is synced", lambda: root.get("configmap", "settings", "-n", "shop"))
    propose()
    if not options.no_guest:
        # It boots while pages are looked at.
        root.apply(manifests.machine("guest", "team", user_data=manifests.user_data("guest")))
        root.namespace("herd")
        root.apply(manifests.machine("worker", "herd", strategy="Halted", user_data=manifests.user_data("worker"), instance={"terminationGracePeriodSeconds": 5}), *objects.herd())
    root.apply(*objects.gateway(port), objects.template(), *objects.questions())
    for name in ["acme", MANY]:
        root.fairway("workspace", "create", name)
    many(world)


def repository(world, root):
    """A repository with manifests, and with names and texts of a stranger. Returns how a pull request is made."""
    url = root.fairway("repo", "create", "root/shop", "--with-token").strip()
    work = world.scratch / "shop"
    for name, text in objects.FILES.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    port = url.split(":")[-1].split("/")[0]
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", "-c", f"http.curloptResolve=git.fairway.localhost:{port}:127.0.0.1"]

    def run(*words):
        done = subprocess.run([*git, *words], cwd=work, capture_output=True, text=True, env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_SSL_CAINFO": f"{world.data}/pki/ca.crt"})
        if done.returncode != 0:
            # Without its arguments: one of them has a token in it.
            raise SystemExit(f"git {words[0]} failed: {done.stderr}")

    run("init", "-q", "-b", "main")
    run("add", ".")
    run("commit", "-qm", "Settings of the shop <script>alert('commit')</script>")
    run("push", "-q", "-o", "fairway.wait=false", url, "main")
    run("checkout", "-qb", "larger")
    (work / "manifests" / "settings.yaml").write_text(objects.FILES["manifests/settings.yaml"].replace("replicas: \"1\"", "replicas: \"3\""))
    run("commit", "-qam", "More replicas")
    run("push", "-q", "-o", "fairway.wait=false", url, "larger")
    run("checkout", "-qb", "next", "main")
    (work / "manifests" / "settings.yaml").write_text(objects.FILES["manifests/settings.yaml"].replace("replicas: \"1\"", "replicas: \"5\""))
    run("rm", "-q", objects.PRECIOUS)
    run("commit", "-qam", "Without the machine")
    run("checkout", "-qb", "logs", "main")
    for name, text in objects.LOGS.items():
        (work / name).write_text(text)
    run("add", ".")
    run("commit", "-qm", "Logs")
    run("push", "-q", "-o", "fairway.wait=false", url, "next", "logs")
    token, address = re.fullmatch(r"https://[^:/]+:([^@]+)@(.+?)/root/shop\.git", url).groups()

    def propose():
        body = json.dumps({"title": "More replicas", "head": "larger", "base": "main", "body": "<img src=x onerror=alert('pull')>"})
        asked = ["curl", "-sf", "--cacert", f"{world.data}/pki/ca.crt", "--resolve", f"git.fairway.localhost:{port}:127.0.0.1", "-K", "-",
                 "-H", "Content-Type: application/json", "-d", body, f"https://{address}/api/v1/repos/root/shop/pulls"]
        # The token comes on the standard input, so that no list of processes shows it.
        subprocess.run(asked, input=f'header = "Authorization: token {token}"\n', text=True, check=True, stdout=subprocess.DEVNULL)

    return propose


def many(world):
    """A workspace with a thousand Applications as they are after months, which nobody syncs."""
    place = world.workspace(MANY)
    # The administrator of the installation has no rights in workspaces that others have made.
    place.kubectl("create", "clusterrolebinding", "people", "--clusterrole=cluster-admin", "--user=root/admin")
    place.namespace("openshift-gitops")
    items = grown.applications(1_000)
    for at in range(0, len(items), 250):
        place.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items[at:at + 250]}))
    kept = place.get("application.argoproj.io", items[0]["metadata"]["name"], "-n", "openshift-gitops")["status"]
    check(len(kept.get("resources", [])) == len(items[0]["status"]["resources"]), "the server has kept what the Applications have in their status")


def walk(options, directory, settings):
    work = directory / "walk"
    work.mkdir()
    for script in HERE.glob("*.mjs"):
        shutil.copy(script, work)
    # Scripts find their packages beside them.
    (work / "node_modules").symlink_to(options.tools.resolve() / "portal" / "node_modules")
    (work / "settings.json").write_text(json.dumps(settings))
    return subprocess.run(["node", "walk.mjs", "settings.json"], cwd=work).returncode


if __name__ == "__main__":
    main()
