"""OpenTofu with Terraform's Kubernetes provider, in the last version that the Go registry serves (1.13.4, of 2020).

Its client is six years older than the API that it meets here; what it knows must work all the same. Its service accounts do not:
it waits for the token Secret that Kubernetes has not made since 1.24, and crashes, here as there.
"""

import shutil
import subprocess

import harness

PROGRAM = "OpenTofu 1.12.6 with terraform-provider-kubernetes 1.13.4"
LISTENS_EVERYWHERE = False
NAMESPACE = "tofu-harbour"
PROVIDER = "terraform-provider-kubernetes"
# What `plan -detailed-exitcode` says.
NO_CHANGES, CHANGES = 0, 2


def prepare():
    harness.build("tofu")
    harness.build(PROVIDER)


def run(fairway):
    work = fairway.directory / "tofu"
    work.mkdir()
    shutil.copy(harness.HERE / "files" / "harbour.tf", work)
    # Without a registry: the provider is the program that was built.
    settings = work / "tofu.rc"
    settings.write_text(
        f'provider_installation {{\n  dev_overrides {{\n    "hashicorp/kubernetes" = "{harness.TOOLS}"\n  }}\n  direct {{}}\n}}\n')
    tofu = Tofu(fairway, work, settings)

    tofu.run("apply", "-auto-approve")
    fairway.expect("apply makes eight objects", lambda: len(managed(fairway)) == 8)
    expect_plan(fairway, tofu, "a second plan finds nothing to do", NO_CHANGES)

    fairway.kubectl("patch", "configmap", "settings", "-n", NAMESPACE, "--type=merge", "-p", '{"data":{"greeting":"hello"}}')
    expect_plan(fairway, tofu, "drift is found", CHANGES)
    tofu.run("apply", "-auto-approve", "-var", "greeting=ship ahoy")
    fairway.expect("and put right, with a new value",
                   lambda: fairway.get("configmap", "settings", "-n", NAMESPACE)["data"] == {"greeting": "ship ahoy"})

    tofu.run("destroy", "-auto-approve")
    fairway.expect("destroy leaves nothing", lambda: fairway.get("namespace", NAMESPACE) is None)


def managed(fairway):
    kinds = {"configmap": "settings", "secret": "key", "role": "reader", "rolebinding": "pilot-reads",
             "resourcequota": "small", "service": "tower", "deployment": "tower"}
    found = [fairway.get(kind, name, "-n", NAMESPACE) for kind, name in kinds.items()]
    return [it for it in [fairway.get("namespace", NAMESPACE), *found] if it]


def expect_plan(fairway, tofu, what, code):
    fairway.expect(what, lambda: tofu.run("plan", "-detailed-exitcode", check=False).returncode == code, within=1)


class Tofu:
    def __init__(self, fairway, work, settings):
        self.work = work
        self.log = fairway.directory / "tofu.log"
        self.environment = fairway.environment() | {
            "TF_CLI_CONFIG_FILE": str(settings), "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1",
            "KUBE_CONFIG": str(fairway.kubeconfig), "KUBE_LOAD_CONFIG_FILE": "true",
        }

    def run(self, command, *arguments, check=True):
        line = [harness.TOOLS / "tofu", command, *(["-input=false"] if command != "import" else []), "-no-color", *arguments]
        done = subprocess.run(line, cwd=self.work, env=self.environment, capture_output=True, text=True)
        with self.log.open("a") as log:
            log.write(f"$ tofu {command} {' '.join(arguments)}\n{done.stdout}{done.stderr}")
        if check and done.returncode:
            raise harness.Failed(f"tofu {command}: {done.stdout[-1500:]}{done.stderr[-1500:]}")
        return done
