"""Backstage's own clients (npm @backstage/catalog-client, @backstage/plugin-scaffolder-common) against the catalog and the scaffolder of
a server that was just started.

    run.py --fairway BINARY --tools .tools
"""

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "clients"))

import servers  # noqa: E402

FILES = {
    "catalog-info.yaml": """
apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: web
  annotations:
    backstage.io/kubernetes-id: web
spec: {type: service, lifecycle: production, owner: team, providesApis: [rest]}
---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: worker
spec: {type: library, lifecycle: production, owner: team}
---
apiVersion: backstage.io/v1alpha1
kind: API
metadata:
  name: rest
spec: {type: openapi, lifecycle: production, owner: team, definition: "openapi: 3.0.0"}
---
apiVersion: backstage.io/v1alpha1
kind: Group
metadata:
  name: team
spec: {type: team, children: []}
""",
    "late.yaml": """
apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: late
spec: {type: service, lifecycle: experimental, owner: team}
""",
    "twin.yaml": """
apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: late
spec: {type: service, lifecycle: production, owner: team}
""",
    "moved.yaml": """
apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: moved
spec: {type: service, lifecycle: experimental, owner: team}
""",
}

# A run of it is there to be cancelled.
SLOW = {
    "apiVersion": "scaffolder.backstage.io/v1beta3",
    "kind": "Template",
    "metadata": {"name": "slow", "namespace": "default"},
    "spec": {"type": "test", "steps": [{"id": "wait", "action": "debug:wait", "input": {"seconds": 300}}]},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, required=True)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / ".tools")
    options = parser.parse_args()
    # Some of it is typed in another directory.
    options.fairway = options.fairway.resolve()
    with tempfile.TemporaryDirectory(prefix="fairway-catalog-") as scratch:
        directory = pathlib.Path(scratch)
        with servers.fairway(options.fairway, directory, "--no-machines") as kubeconfig:
            ask(options, directory, kubeconfig)
    print("ok")


def ask(options, directory, kubeconfig):
    data = directory / "data"
    running = data / "running.json"
    # The API is ready a moment before everything else is.
    patience = time.monotonic() + 60
    while not running.exists() and time.monotonic() < patience:
        time.sleep(0.05)
    web = json.loads(running.read_text())["web_listen"].rsplit(":", 1)[1]
    environment = dict(
        os.environ,
        KUBECONFIG=str(kubeconfig),
        GIT_SSL_CAINFO=str(data / "pki" / "ca.crt"),
        GIT_TERMINAL_PROMPT="0",
        GIT_CONFIG_GLOBAL="/dev/null",
    )
    kubectl = [str(options.tools / "bin" / "kubectl"), f"--kubeconfig={kubeconfig}"]

    def run(command, **settings):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, **settings)
        if done.returncode != 0:
            # Without its arguments: one of them has a token in it.
            raise SystemExit(f"{command[0]} failed: {done.stderr}")
        return done.stdout.strip()

    run.kubeconfig = str(kubeconfig)
    run([*kubectl, "create", "serviceaccount", "backstage"])
    run([*kubectl, "create", "clusterrolebinding", "backstage", "--clusterrole=edit", "--serviceaccount=default:backstage"])
    token = run([*kubectl, "create", "token", "backstage"])
    url = run([str(options.fairway), "repo", "create", "root/app", "--with-token"])
    work = directory / "work"
    work.mkdir()
    for name, text in FILES.items():
        (work / name).write_text(text)
    git = [
        "git", "-c", "user.name=A", "-c", "user.email=a@example.com",
        "-c", f"http.curloptResolve=git.fairway.localhost:{web}:127.0.0.1",
    ]
    for words in [["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"], ["push", "-q", url, "main"]]:
        run([*git, *words], cwd=work)
    # The client finds its packages beside it.
    (directory / "client.mjs").write_text((HERE / "client.mjs").read_text())
    (directory / "node_modules").symlink_to(options.tools.resolve() / "catalog" / "node_modules")
    target = f"https://git.fairway.localhost:{web}/root/app/src/branch/main/late.yaml"
    asking = ["node", "client.mjs", f"https://portal.fairway.localhost:{web}", target]
    names = dict(environment, NODE_EXTRA_CA_CERTS=str(data / "pki" / "ca.crt"), CATALOG_TOKEN=token)
    if not resolves("portal.fairway.localhost"):
        # Not every resolver knows that names below localhost are this machine.
        (directory / "names.cjs").write_text(
            "const dns = require('node:dns'); const real = dns.lookup;"
            "dns.lookup = (name, options, done) => real(name.endsWith('.localhost') ? '127.0.0.1' : name, options, done);"
        )
        asking.insert(1, "--require=./names.cjs")
    subprocess.run(asking, check=True, cwd=directory, env=names)

    def push():
        for words in [["commit", "-qam", "another"], ["push", "-q", url, "main"]]:
            run([*git, *words], cwd=work)

    verbs(options, run, work, target)
    orphans(options, run, (work, push), (kubectl, target))
    # The scaffolder's client, as somebody who may also make repositories and Applications.
    run([*kubectl, "create", "clusterrolebinding", "scaffolder", "--clusterrole=cluster-admin", "--serviceaccount=default:backstage"])
    run([*kubectl, "create", "-f", "-"], input=json.dumps(SLOW))
    (directory / "scaffolder.mjs").write_text((HERE / "scaffolder.mjs").read_text())
    asking = [word if word != "client.mjs" else "scaffolder.mjs" for word in asking]
    subprocess.run(asking, check=True, cwd=directory, env=names)


def verbs(options, run, work, target):
    """What people type about the catalog, end to end."""
    fairway = [str(options.fairway), "catalog"]
    said = run([*fairway, "register", target])
    assert "entities are in the catalog" in said, said
    listed = json.loads(run([*fairway, "locations", "-o", "json"]))
    (name,) = [it["metadata"]["name"] for it in listed if it["spec"]["target"] == target]
    for what in [target, name, "component:late"]:
        assert name in run([*fairway, "refresh", what])
    good, bad = run([*fairway, "validate", "late.yaml"], cwd=work), work / "bad.yaml"
    assert "component:default/late" in good, good
    bad.write_text((work / "late.yaml").read_text().replace("owner: team", ""))
    judged = subprocess.run([*fairway, "validate", str(bad)], capture_output=True, text=True)
    assert judged.returncode == 1 and "owner" in judged.stdout, (judged.returncode, judged.stdout)
    # What a file says is no orphan.
    refused = subprocess.run([*fairway, "delete", "late"], capture_output=True, text=True,
                             env=dict(os.environ, KUBECONFIG=run.kubeconfig))
    assert refused.returncode != 0 and "is no orphan" in refused.stderr, refused
    assert name in run([*fairway, "unregister", target])
    print("  ok           the verbs of fairway catalog")


def orphans(options, run, place, location):
    """What a file no longer says stays as an orphan until somebody deletes it, or goes at once where its location says so."""
    fairway, (work, push), (kubectl, target) = [str(options.fairway), "catalog"], place, location
    run([*fairway, "register", target])
    name = next(it["metadata"]["name"] for it in json.loads(run([*fairway, "locations", "-o", "json"])) if it["spec"]["target"] == target)

    def rename(before, after, expected):
        file = work / "late.yaml"
        file.write_text(file.read_text().replace(f"name: {before}\n", f"name: {after}\n"))
        push()
        patience = time.monotonic() + 60
        while True:
            listed = run([*fairway, "list", "-k", "component", "-f", "spec.lifecycle=experimental"]).splitlines()[1:]
            found = {line.split("  ")[0] for line in listed if "component:default/moved" not in line}
            if found == expected:
                return
            assert time.monotonic() < patience, (expected, found)
            time.sleep(0.05)

    rename("late", "later", {"component:default/late (orphan)", "component:default/later"})
    assert "deleted" in run([*fairway, "delete", "late"])
    run([*kubectl, "annotate", "cataloglocation", name, "fairway.dev/orphan-strategy=delete"])
    rename("later", "latest", {"component:default/latest"})
    # One that was there before goes with the next reading, too.
    run([*kubectl, "annotate", "cataloglocation", name, "fairway.dev/orphan-strategy-"])
    rename("latest", "last", {"component:default/latest (orphan)", "component:default/last"})
    run([*kubectl, "annotate", "cataloglocation", name, "fairway.dev/orphan-strategy=delete"])
    rename("last", "late", {"component:default/late"})
    run([*fairway, "unregister", target])
    print("  ok           orphans are kept, deleted by hand, or deleted at once")


def resolves(name):
    try:
        socket.getaddrinfo(name, 443)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
