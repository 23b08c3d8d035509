"""The argocd command in core mode, without any Argo CD: it reads the kinds that Fairway itself serves.

In core mode the command brings its own API server and speaks to Kubernetes alone. The statuses are written by hand, so
what it prints can only come from Fairway's objects. Fairway's own commands print the same names.
"""

import json
import shutil
import subprocess

import harness

PROGRAM = "argocd 3.2.11 --core"
LISTENS_EVERYWHERE = False
NAMESPACE = "argocd"
FILES = harness.HERE / "files" / "argocd"


def prepare():
    harness.build("argocd")


def run(fairway):
    fairway.kubectl("create", "namespace", NAMESPACE)
    # In core mode the namespace of the context is Argo CD's.
    shutil.copy(fairway.kubeconfig, kubeconfig(fairway))
    fairway.kubectl("config", "set-context", "--current", f"--namespace={NAMESPACE}", kubeconfig=kubeconfig(fairway))
    fairway.apply(FILES / "core.yaml")
    lists(fairway)
    details(fairway)
    definitions(fairway)


def kubeconfig(fairway):
    return fairway.directory / "core.kubeconfig"


def argocd(fairway, *arguments, check=True):
    # The command keeps a configuration of its own below $HOME, and asks for Redis only where a cache is needed.
    environment = fairway.environment(kubeconfig(fairway)) | {"ARGOCD_GPG_ENABLED": "false", "ARGOCD_CONFIG_DIR": str(fairway.directory / "argocd")}
    done = subprocess.run([harness.TOOLS / "argocd", *arguments, "--core"], capture_output=True, text=True,
                          env=environment, timeout=120)
    if check and done.returncode:
        raise harness.Failed(f"argocd {' '.join(arguments)}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def own(fairway, *arguments):
    done = subprocess.run([fairway.binary, *arguments], capture_output=True, text=True, env=fairway.environment(kubeconfig(fairway)),
                          timeout=60)
    if done.returncode:
        raise harness.Failed(f"fairway {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def same(fairway, what, theirs, ours):
    fairway.expect(what, lambda: True if theirs == ours else harness.Unmet(f"argocd: {theirs!r}; fairway: {ours!r}"), within=1)


def lists(fairway):
    theirs = argocd(fairway, "app", "list", "-o", "name").split()
    fairway.expect("argocd app list names the Applications",
                   lambda: theirs == ["argocd/broken", "argocd/lamp"] or harness.Unmet(str(theirs)), within=1)
    same(fairway, "fairway app list prints what argocd app list prints, to the byte",
         argocd(fairway, "app", "list"), own(fairway, "app", "list"))
    same(fairway, "and so in a narrower choice",
         argocd(fairway, "app", "list", "-l", "colour=red", "-o", "wide"), own(fairway, "app", "list", "-l", "colour=red"))
    same(fairway, "fairway proj list prints what argocd proj list prints",
         argocd(fairway, "proj", "list"), own(fairway, "proj", "list"))
    names = [entry["metadata"]["name"] for entry in json.loads(argocd(fairway, "app", "list", "-o", "json"))]
    fairway.expect("argocd reads them as JSON", lambda: names == ["broken", "lamp"] or harness.Unmet(str(names)), within=1)


def without_address(text):
    return [line for line in text.splitlines() if not line.startswith("URL:")]


def details(fairway):
    theirs = argocd(fairway, "app", "get", "lamp", "--show-operation")
    fairway.expect("argocd app get shows sync, health and resources",
                   lambda: all(part in theirs for part in ("Synced to main (0123456)", "Healthy", "ConfigMap", "lamp-1"))
                   or harness.Unmet(theirs), within=1)
    same(fairway, "fairway app get prints the same but for the address",
         without_address(theirs), without_address(own(fairway, "app", "get", "lamp", "--show-operation")))
    same(fairway, "so does history", argocd(fairway, "app", "history", "lamp"), own(fairway, "app", "history", "lamp"))
    same(fairway, "so does proj get", argocd(fairway, "proj", "get", "default"), own(fairway, "proj", "get", "default"))


def definitions(fairway):
    """Argo CD's definitions, applied out of habit: accepted, without effect, and said so."""
    module = harness.module_directory("argocd", "github.com/argoproj/argo-cd/v3")
    code, out, err = fairway.kubectl("apply", "--server-side", "-k", str(module / "manifests" / "crds"), check=False)
    fairway.expect("its definitions are accepted, with a warning that they have no effect",
                   lambda: (code == 0 and err.count("Fairway serves") == 3) or harness.Unmet(f"{code} {out} {err}"), within=1)
    fairway.kubectl("wait", "--for=condition=established", "crd/applications.argoproj.io", "--timeout=10s")
    names = argocd(fairway, "app", "list", "-o", "name").split()
    fairway.expect("the Applications are still there", lambda: names == ["argocd/broken", "argocd/lamp"], within=1)
    fairway.kubectl("delete", "crd", "applications.argoproj.io", "applicationsets.argoproj.io", "appprojects.argoproj.io")
    fairway.expect("and when the definitions are deleted, too",
                   lambda: len(fairway.items("applications", "-n", NAMESPACE)) == 2, within=1)
