#!/usr/bin/env python3
"""Renders real charts with helm and with Fairway's renderer and compares the outputs, byte for byte.

    tests/helm/run.py --helm .tools/bin/helm --program target/release/examples/template [--only TEXT] [--show N]
    tests/helm/run.py --paths NAME,...

The charts come from Go modules, which `go mod download` fetches. Each is rendered with its default values and with
each of its ci/*.yaml. What differs between two runs of helm (keys, passwords, dates) is not compared: the lines that
differ are masked in both outputs. Where helm refuses a chart, Fairway must refuse it, too.

Modules do not contain the charts that theirs depend on. A chart that lacks some is rendered as it is, which both must
refuse, and a second time from a copy in which they are taken from the module if they are there, else no longer
mentioned.
"""

import argparse
import concurrent.futures
import difflib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import yaml

MODULES = [
    "github.com/argoproj/argo-helm@v0.0.0-20260904222229-3bbb4305eea9",
    "github.com/prometheus-community/helm-charts@v0.0.0-20260828105119-ed5d7d9b5933",
    "github.com/cert-manager/cert-manager@v1.21.2",
    "github.com/external-secrets/external-secrets@v1.3.2",
    "github.com/kyverno/kyverno@v1.19.1",
    "github.com/crossplane/crossplane/v2@v2.0.0",
]


def module_folder(module, scratch):
    """The folder of a module in the module cache."""
    environment = dict(os.environ, GOFLAGS="-mod=mod")
    (scratch / "go.mod").write_text("module charts\n\ngo 1.23\n")
    answer = subprocess.run(
        ["go", "mod", "download", "-json", module], cwd=scratch, env=environment, capture_output=True, text=True
    )
    try:
        return pathlib.Path(json.loads(answer.stdout)["Dir"])
    except (KeyError, ValueError):
        sys.exit(f"cannot download {module}: {answer.stdout}{answer.stderr}")


def charts(folder):
    """Folders with a chart that is not within another chart."""
    found = []
    for file in sorted(folder.rglob("Chart.yaml")):
        chart = file.parent
        parts = chart.relative_to(folder).parts
        if "testdata" in parts or "test" in parts or any(chart.is_relative_to(known) for known in found):
            continue
        found.append(chart)
    return found


def completed(chart, siblings, scratch):
    """A copy of a chart whose dependencies are all there, or None if they are there already."""
    metadata = yaml.safe_load((chart / "Chart.yaml").read_text())
    wanted = metadata.get("dependencies") or []
    present = {file.parent.name for file in chart.glob("charts/*/Chart.yaml")}
    if all(dependency["name"] in present for dependency in wanted):
        return None
    copy = scratch / "completed" / chart.name
    if copy.exists():
        return copy
    shutil.copytree(chart, copy, copy_function=shutil.copyfile)
    for folder in [copy, *copy.rglob("*")]:
        if folder.is_dir():
            folder.chmod(0o755)
    kept = []
    for dependency in wanted:
        source = siblings.get(dependency["name"])
        target = copy / "charts" / dependency["name"]
        if source is not None and source != chart and not target.exists():
            shutil.copytree(source, target, copy_function=shutil.copyfile)
            for folder in [target, *target.rglob("*")]:
                if folder.is_dir():
                    folder.chmod(0o755)
            trimmed = yaml.safe_load((target / "Chart.yaml").read_text())
            trimmed.pop("dependencies", None)
            (target / "Chart.yaml").write_text(yaml.safe_dump(trimmed))
        if target.exists():
            kept.append({**dependency, "version": "*-0"})
    metadata["dependencies"] = kept
    (copy / "Chart.yaml").write_text(yaml.safe_dump(metadata))
    return copy


def run(command):
    """Output, or None and the error."""
    answer = subprocess.run(command, capture_output=True, timeout=300, env=dict(os.environ, TZ="UTC"))
    if answer.returncode != 0:
        return None, answer.stderr.decode(errors="replace")
    return answer.stdout, ""


def masked(text, lines):
    """A text in which changing lines are blank."""
    return b"\n".join(b"*" if number in lines else line for number, line in enumerate(text.split(b"\n")))


class Oracle:
    """Helm's answers, remembered between runs of this script."""

    def __init__(self, helm, scratch):
        self.helm = helm
        self.scratch = scratch / "answers"
        self.scratch.mkdir(exist_ok=True)

    def answer(self, chart, values):
        arguments = ["template", "release-name", str(chart), "--include-crds"]
        for file in values:
            arguments += ["--values", str(file)]
        key = hashlib.sha256("\0".join(arguments).encode()).hexdigest()[:24]
        remembered = self.scratch / f"{key}.json"
        if remembered.exists():
            answer = json.loads(remembered.read_text())
        else:
            first, error = run([self.helm, *arguments])
            second, _ = run([self.helm, *arguments])
            answer = {"output": None if first is None else first.decode(errors="surrogateescape"), "error": error, "changing": []}
            if first is not None and second is not None:
                pairs = zip(first.split(b"\n"), second.split(b"\n"), strict=False)
                answer["changing"] = [number for number, (one, two) in enumerate(pairs) if one != two]
            remembered.write_text(json.dumps(answer))
        return answer


def compare(oracle, program, chart, values):
    """What came of one rendering: a word and a text."""
    expected = oracle.answer(chart, values)
    arguments = ["--name", "release-name", str(chart), "--include-crds"]
    for file in values:
        arguments += ["--values", str(file)]
    found, error = run([program, *arguments])
    if expected["output"] is None:
        if found is None:
            return "refused", f"helm: {expected['error'].strip()}\nours: {error.strip()}"
        return "accepted", expected["error"]
    if found is None:
        return "failed", error
    wanted = expected["output"].encode(errors="surrogateescape")
    changing = set(expected["changing"])
    if changing:
        wanted, found = masked(wanted, changing), masked(found, changing)
    if wanted == found:
        return "equal", ""
    lines = difflib.unified_diff(
        wanted.decode(errors="replace").splitlines(), found.decode(errors="replace").splitlines(), "helm", "fairway", n=2, lineterm=""
    )
    return "different", "\n".join(list(lines)[:60])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helm", default="helm")
    parser.add_argument("--program", help="the example `template` of fairway-gitops-helm")
    parser.add_argument("--paths", metavar="NAME,...", help="print where these charts are, completed, and render nothing")
    parser.add_argument("--scratch", default="/tmp/fairway-charts")
    parser.add_argument("--only", default="", help="only charts whose path contains this")
    parser.add_argument("--show", type=int, default=5, help="how many differences to show")
    options = parser.parse_args()
    scratch = pathlib.Path(options.scratch)
    scratch.mkdir(parents=True, exist_ok=True)
    if options.paths:
        for module in MODULES:
            found = charts(module_folder(module, scratch))
            siblings = {chart.name: chart for chart in found}
            for chart in found:
                if chart.name in options.paths.split(","):
                    print(f"{chart.name}={completed(chart, siblings, scratch) or chart}")
        return 0
    if not options.program:
        parser.error("--program is needed to render")
    oracle = Oracle(options.helm, scratch)

    cases = []
    total = 0
    for module in MODULES:
        found = charts(module_folder(module, scratch))
        siblings = {chart.name: chart for chart in found}
        for chart in found:
            if options.only not in str(chart):
                continue
            total += 1
            whole = completed(chart, siblings, scratch)
            for folder in [chart] if whole is None else [chart, whole]:
                cases.append((folder, []))
                cases += [(folder, [file]) for file in sorted(chart.glob("ci/*.yaml"))]
    counts = {}
    shown = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        outcomes = pool.map(lambda case: compare(oracle, options.program, *case), cases)
        for (chart, values), (outcome, text) in zip(cases, outcomes):
            counts[outcome] = counts.get(outcome, 0) + 1
            if outcome in ("different", "failed", "accepted"):
                names = " ".join(file.name for file in values)
                print(f"{outcome.upper()} {chart.name} {names}")
                if shown < options.show:
                    print("\n".join("    " + line for line in text.splitlines()))
                shown += 1
    bad = sum(counts.get(outcome, 0) for outcome in ("different", "failed", "accepted"))
    print(
        f"{total} charts, {len(cases)} renderings: {counts.get('equal', 0)} byte-equal, {counts.get('refused', 0)} refused by both, "
        f"{counts.get('different', 0)} different, {counts.get('failed', 0)} failed, {counts.get('accepted', 0)} refused by helm only"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
