"""Templates that others have written, gone through on the whole program: dry run, then run, for each way through their forms.

    run.py --fairway BINARY --tools .tools DIRECTORY [--report FILE]

Below DIRECTORY each directory is a repository of somebody's. It is pushed to the Git host of a Fairway that was just started, with this host's
actions and name in the place of GitHub's, GitLab's and Azure's: nothing else is changed. Every Template in it is answered as a person would
who takes what is offered. It has to succeed, or to be refused with a reason; a run that fails is told with its reason, and has to be taken back.
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

import yaml

import answers

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "clients"))

import servers  # noqa: E402

HOSTS = r"(?:github\.com|gitlab\.com|dev\.azure\.com)"
ACTIONS = [
    (r"\bpublish:github:pull-request\b", "publish:gitea:pull-request"),
    (r"\bpublish:gitlab:merge-request\b", "publish:gitea:pull-request"),
    (r"\bpublish:(?:github|gitlab|azure)\b", "publish:gitea"),
]
# What templates may ask for an entity of.
CATALOG = """
apiVersion: backstage.io/v1alpha1
kind: Group
metadata: {name: team}
spec: {type: team, children: []}
---
apiVersion: backstage.io/v1alpha1
kind: System
metadata: {name: shop}
spec: {owner: team}
---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: app}
spec: {type: service, lifecycle: production, owner: team}
"""


class Site:
    """A Fairway, and how to ask it."""

    def __init__(self, options, directory, kubeconfig):
        self.options, self.directory, self.kubeconfig = options, directory, kubeconfig
        running = directory / "data" / "running.json"
        patience = time.monotonic() + 60
        while not running.exists() and time.monotonic() < patience:
            time.sleep(0.05)
        self.web = json.loads(running.read_text())["web_listen"].rsplit(":", 1)[1]
        self.environment = dict(
            os.environ, KUBECONFIG=str(kubeconfig), GIT_SSL_CAINFO=str(directory / "data" / "pki" / "ca.crt"),
            GIT_TERMINAL_PROMPT="0", GIT_CONFIG_GLOBAL="/dev/null",
        )

    def ask(self, *words, check=True, **settings):
        done = subprocess.run(words, capture_output=True, text=True, env=self.environment, timeout=300, **settings)
        if check and done.returncode != 0:
            raise SystemExit(f"{words[0]} {words[1]} failed: {done.stderr}")
        return done

    def fairway(self, *words, check=True):
        return self.ask(str(self.options.fairway.resolve()), *words, check=check)

    def kubectl(self, *words, check=True, **settings):
        return self.ask(str(self.options.tools.resolve() / "bin" / "kubectl"), *words, check=check, **settings)

    def push(self, name, source):
        """A hosted repository with these files."""
        url = self.fairway("repo", "create", f"root/{name}", "--with-token").stdout.strip()
        work = self.directory / "pushed" / name
        shutil.copytree(source, work, symlinks=True)
        git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com",
               "-c", f"http.curloptResolve=git.fairway.localhost:{self.web}:127.0.0.1"]
        for words in [["init", "-q", "-b", "main"], ["add", "-Af", "."], ["commit", "-qm", "As it is"], ["push", "-q", url, "main"]]:
            self.ask(*git, *words, cwd=work)
        return work

    def repositories(self):
        listed = self.kubectl("get", "repositories.fairway.dev", "-o", "name").stdout.split()
        return {one.split("/")[1] for one in listed}


def here(text):
    """A template with this installation's Git host in the place of another one."""
    for theirs, ours in ACTIONS:
        text = re.sub(theirs, ours, text)
    text = re.sub(rf"{HOSTS}(?=\?)", "fairway", text)
    return re.sub(rf"(?m)^(\s*-\s*['\"]?|.*allowedHosts:\s*\[\s*['\"]?){HOSTS}", r"\1fairway", text)


def templates(directory):
    for path in sorted(directory.rglob("*.y*ml")):
        text = path.read_text(errors="replace")
        if "scaffolder.backstage.io/v1beta3" not in text:
            continue
        try:
            found = [one for one in yaml.safe_load_all(here(text)) if isinstance(one, dict)]
        except yaml.YAMLError:
            # A skeleton's, with expressions in it.
            continue
        for one in found:
            if one.get("kind") == "Template" and str(one.get("apiVersion", "")).startswith("scaffolder.backstage.io/"):
                yield path, one


def go(site, template, chosen):
    """Dry run and run of one way through a template: what came of it, and why."""
    name = template["metadata"]["name"]
    values = site.directory / "answers.json"
    values.write_text(json.dumps(chosen))
    before = site.repositories()
    common = ["new", name, "-y", "--values", str(values)]
    for question, title in secrets(template):
        file = site.directory / "secret"
        file.write_text("s3cret-for-a-test")
        common += ["--secret-file", f"{question}={file}"]
    foreseen = site.fairway(*common, "--dry-run", check=False)
    if site.repositories() != before:
        raise SystemExit(f"{name}: its dry run has made a repository")
    done = site.fairway(*common, check=False)
    said = (done.stderr.strip() or done.stdout.strip() or "nothing was said").splitlines()
    why = next((line for line in reversed(said) if line.strip()), "").strip()
    agrees = (foreseen.returncode == 0) == (done.returncode == 0)
    if done.returncode == 0:
        return "ran", "" if agrees else "its dry run said that it would fail: " + last(foreseen), agrees
    left = site.repositories() - before
    if left:
        raise SystemExit(f"{name} failed ({why}) and left {sorted(left)} behind")
    # What is known to be missing is told before anything is done.
    is_refused = "Voyage" not in why or "which is not known here" in why
    return "refused" if is_refused else "failed, taken back", why, agrees


def last(done):
    """What a dry run complains of."""
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()]
    complaints = [line for line in lines if "✗" in line or "refused" in line or "fail" in line.lower()]
    return (complaints or lines or ["nothing was said"])[-1]


def secrets(template):
    pages = template["spec"].get("parameters") or []
    for page in pages if isinstance(pages, list) else [pages]:
        for key, question in (page.get("properties") or {}).items():
            if (question or {}).get("ui:field") == "Secret":
                yield key, question.get("title", key)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--fairway", type=pathlib.Path, required=True)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / ".tools")
    parser.add_argument("--report", type=pathlib.Path, help="where the table is written, too")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="fairway-templates-") as scratch:
        directory = pathlib.Path(scratch)
        with servers.fairway(options.fairway, directory, "--no-machines") as kubeconfig:
            site = Site(options, directory, kubeconfig)
            everything(site, options.directory, rows)
    table = report(rows)
    print(table)
    if options.report:
        options.report.write_text(table)
    if not rows:
        raise SystemExit(f"there is no template below {options.directory}")
    if not any(outcome == "ran" for _, _, outcome, _, _ in rows):
        raise SystemExit("no template ran")


def everything(site, directory, rows):
    site.kubectl("create", "namespace", "openshift-gitops", check=False)
    described = site.directory / "described"
    described.mkdir()
    (described / "catalog-info.yaml").write_text(CATALOG)
    site.push("described", described)
    number = 0
    for repository in sorted(path for path in directory.iterdir() if path.is_dir()):
        name = re.sub(r"[^a-z0-9-]+", "-", repository.name.lower()).strip("-")[:50]
        site.push(name, repository)
        base = f"https://git.fairway.localhost:{site.web}/root/{name}/src/branch/main"
        for path, template in templates(repository):
            at = path.relative_to(repository)
            within = f"{at.parent.as_posix()}/" if at.parent.as_posix() != "." else ""
            template["metadata"].setdefault("annotations", {})["backstage.io/source-location"] = f"url:{base}/{within}"
            template["metadata"]["namespace"] = "default"
            made = site.kubectl("apply", "--validate=false", "-f", "-", check=False, input=json.dumps(template))
            if made.returncode != 0:
                rows.append((repository.name, str(at), "refused", made.stderr.strip().splitlines()[-1], True))
                continue
            # Whoever is to own repositories has to be somebody here.
            owners = re.findall(r"owner=\$\{\{\s*parameters\.(\w+)", json.dumps(template["spec"]))
            asked = template["spec"].get("parameters") or []
            ways = answers.choices(asked, f"made-{number:03}", {owner: "root" for owner in owners})
            for way, chosen in enumerate(ways):
                number += 1
                chosen = {key: again(value, f"made-{number:03}") for key, value in chosen.items()}
                if any("pull-request" in step.get("action", "") for step in template["spec"]["steps"]):
                    existing(site, chosen, template)
                outcome, why, agrees = go(site, template, chosen)
                label = str(at) if len(ways) == 1 else f"{at} ({way + 1} of {len(ways)})"
                print(f"  {outcome:<20} {repository.name} {label}  {why}", flush=True)
                rows.append((repository.name, label, outcome, why, agrees))


def again(value, name):
    """The same answer with the name of this way."""
    return re.sub(r"made-\d{3}", name, value) if isinstance(value, str) else value


def existing(site, chosen, template):
    """A pull request is made to a repository that is there."""
    wanted = chosen.get("repoUrl") or ""
    found = re.search(r"repo=([a-z0-9-]+)", wanted)
    pull_only = not any(step.get("action") == "publish:gitea" for step in template["spec"]["steps"])
    picked = any("pull request" in str(value).lower() for value in chosen.values())
    name = found.group(1) if found else chosen.get("repoName")
    if name and (pull_only or picked) and name not in site.repositories():
        source = site.directory / "existing" / name
        source.mkdir(parents=True)
        (source / "README.md").write_text("There already.\n")
        site.push(name, source)
        for key, value in list(chosen.items()):
            if "targetBranch" in key:
                chosen[key] = "main"


def report(rows):
    lines = ["| repository | template | what became of it | why | its dry run said so |", "|---|---|---|---|---|"]
    for repository, label, outcome, why, agrees in rows:
        text = re.sub(r"[|`]", "'", why)[:200]
        lines.append(f"| {repository} | {label} | {outcome} | {text} | {'yes' if agrees else 'no'} |")
    counted = {}
    for _, _, outcome, _, _ in rows:
        counted[outcome] = counted.get(outcome, 0) + 1
    lines.append("")
    lines.append(", ".join(f"{count} {outcome}" for outcome, count in sorted(counted.items())) or "nothing")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
