"""Kubernetes' own [Conformance] tests that need no kubelet, against Fairway.

    run.py --fairway BINARY --program PROGRAM            every test of passing.txt, and the report
    run.py --fairway BINARY --program PROGRAM --all      those of others.yaml too, to see which of them pass by now
    run.py ... NAME...                                   only tests whose names contain one of these; no report

PROGRAM is built from the Go module beside this file (scripts/peers.sh kubernetes-e2e). Where $FAIRWAY_CONFORMANCE
names a folder with kubernetes-e2e.json, the two lists must add up to its names.
"""

import argparse
import concurrent.futures
import contextlib
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "clients"))

import servers  # noqa: E402

PASSING, OTHERS = HERE / "passing.txt", HERE / "others.yaml"
REPORT = ROOT / "docs" / "conformance" / "kubernetes-e2e.md"
# The parts of kubernetes-e2e.json whose tests need neither pods nor workload controllers.
PARTS = ["apimachinery_api_only", "apimachinery_kubectl", "other_api_only"]
# Most of a test's time is waiting, so more run at once than there are cores.
AT_ONCE = 4
# An address that is nobody's (RFC 5737): the API refuses a loopback address as an endpoint of the Service `kubernetes`.
ADVERTISE = "192.0.2.1"
LIMIT = 1800
NODE = "without-kubelet"
# Seconds; a kubelet's are 10, but each of ours is a run of kubectl.
RENEW_INTERVAL = 20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, metavar="BINARY")
    parser.add_argument("--kubeconfig", type=pathlib.Path, help="a server that runs already")
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--all", action="store_true", help="also run the tests of others.yaml")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIRECTORY", help="keep the logs here")
    parser.add_argument("--commit", help="of which BINARY was built; else the one checked out")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if bool(options.fairway) == bool(options.kubeconfig):
        parser.error("one of --fairway and --kubeconfig is needed")

    passing, others = read_lists()
    check_names(passing, others)
    wanted = passing + list(others) if options.all or options.names else passing
    if options.names:
        wanted = [name for name in wanted if any(part in name for part in options.names)]
    if not wanted:
        sys.exit("no test has such a name")

    with tempfile.TemporaryDirectory(prefix="fairway-e2e-") as scratch:
        directory = options.keep or pathlib.Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        results = run(options, directory, wanted)
    failed = show(wanted, passing, results)
    if not options.names and options.fairway:
        write_report(passing, others, results, options.commit or checked_out())
    if failed:
        sys.exit(f"FAILED: {len(failed)} of {len(passing)} tests that should pass")


def read_lists():
    passing = [line.strip() for line in PASSING.read_text().splitlines() if line.strip()]
    others = {}
    for entry in yaml.safe_load(OTHERS.read_text()) or []:
        others[entry["name"]] = entry["reason"]
    return passing, others


def check_names(passing, others):
    """Every name once, and all of those that the list beside the project has."""
    names = passing + list(others)
    twice = sorted({name for name in names if names.count(name) > 1})
    wrong = [f"in both lists, or twice in one: {name}" for name in twice]
    wrong += [f"no reason in others.yaml: {name}" for name, reason in others.items() if not reason]
    folder = os.environ.get("FAIRWAY_CONFORMANCE")
    source = pathlib.Path(folder) / "kubernetes-e2e.json" if folder else None
    if source and source.exists():
        listed = json.loads(source.read_text())
        expected = {name for part in PARTS for name in listed[part]}
        wrong += [f"in neither list: {name}" for name in sorted(expected - set(names))]
        wrong += [f"not in {source.name}: {name}" for name in sorted(set(names) - expected)]
    else:
        print("SKIPPED: the names were not compared with kubernetes-e2e.json; $FAIRWAY_CONFORMANCE does not lead to it")
    if wrong:
        sys.exit("\n".join(wrong))


def run(options, directory, wanted):
    """Runs the tests, several at once; those that upstream marks serial, alone and last.

    A slow one waits for minutes (for the history to be compacted), so each has a process of its own from the start.
    """
    serial = [name for name in wanted if "[Serial]" in name]
    slow = [name for name in wanted if "[Slow]" in name and name not in serial]
    parallel = [name for name in wanted if name not in serial and name not in slow]
    groups = [[name] for name in slow]
    groups += [group for group in (parallel[i::AT_ONCE] for i in range(AT_ONCE)) if group]
    with server(options, directory) as kubeconfig, node(kubeconfig, directory):
        results = {}
        with concurrent.futures.ThreadPoolExecutor(len(groups) or 1) as pool:
            runs = [
                pool.submit(run_group, options.program, directory, kubeconfig, str(i), group)
                for i, group in enumerate(groups)
            ]
            for finished in runs:
                results.update(finished.result())
        if serial:
            results.update(run_group(options.program, directory, kubeconfig, "serial", serial))
    return results


def server(options, directory):
    if options.fairway:
        return servers.fairway(options.fairway, directory, "--advertise-address", ADVERTISE)
    return servers.running(options.kubeconfig)


@contextlib.contextmanager
def node(kubeconfig, directory):
    """A Node without a kubelet: VolumeAttachments must name one, and their test takes whichever there is.

    Its Lease is renewed as a kubelet would, so that there is always history to compact, which the slow test waits for.
    """
    environment = servers.environment(kubeconfig, directory)
    apply(environment, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    done = threading.Event()

    def renew():
        while True:
            now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": NODE, "namespace": "kube-node-lease"},
                "spec": {"holderIdentity": NODE, "leaseDurationSeconds": 40, "renewTime": now},
            }
            # One that fails is made up for by the next.
            apply(environment, lease, check=False)
            if done.wait(RENEW_INTERVAL):
                return

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        renewing = pool.submit(renew)
        try:
            yield
        finally:
            done.set()
            renewing.result()


def apply(environment, manifest, check=True):
    command = ["kubectl", "apply", "-f", "-"]
    manifest = json.dumps(manifest)
    subprocess.run(command, input=manifest, text=True, env=environment, check=check, stdout=subprocess.DEVNULL)


def run_group(program, directory, kubeconfig, label, group):
    """One process of the test program; its report says how each test ended."""
    names, report = directory / f"names-{label}.txt", directory / f"report-{label}.json"
    names.write_text("\n".join(group) + "\n")
    home = directory / f"home-{label}"
    home.mkdir(exist_ok=True)
    command = [
        str(program.resolve()),
        f"--names={names}",
        f"--kubeconfig={kubeconfig}",
        "--provider=skeleton",
        "--kubectl-path=kubectl",
        "--disable-log-dump",
        f"--ginkgo.json-report={report}",
        "--ginkgo.no-color",
        f"--ginkgo.timeout={LIMIT}s",
        "--ginkgo.v",
    ]
    log = directory / f"tests-{label}.log"
    with open(log, "wb") as output:
        code = subprocess.run(
            command, cwd=home, env=servers.environment(kubeconfig, home), stdout=output, stderr=output
        ).returncode
    if not report.exists():
        sys.exit(f"the test program ended with {code} and left no report:\n{log.read_text(errors='replace')[-3000:]}")
    results = {}
    for spec in (spec for suite in json.loads(report.read_text()) for spec in suite["SpecReports"] or []):
        name = " ".join([*(spec.get("ContainerHierarchyTexts") or []), spec["LeafNodeText"]])
        if name in group:
            message = (spec.get("Failure") or {}).get("Message", "")
            results[name] = (spec["State"], spec["RunTime"] / 1e9, message)
    return results


def show(wanted, passing, results):
    failed = []
    for name in wanted:
        state, seconds, message = results.get(name, ("unknown to the test program", 0, ""))
        print(f"{state:8} {seconds:6.1f} s  {name}")
        if state != "passed":
            print("    " + "\n    ".join(message.splitlines()[:12]))
            if name in passing:
                failed.append(name)
    passed = sum(1 for state, _, _ in results.values() if state == "passed")
    print(f"{passed} passed, {len(wanted) - passed} failed")
    return failed


def write_report(passing, others, results, commit):
    def state(name):
        return results.get(name, ("not run", 0, ""))[0]

    good = [name for name in passing if state(name) == "passed"]
    today = datetime.datetime.now(datetime.timezone.utc).date()
    lines = [
        "# Kubernetes' own conformance tests",
        "",
        f"The `[Conformance]` end-to-end tests of Kubernetes {kubernetes_version()} that need no kubelet, against Fairway's debug binary: "
        f"**{len(good)} of {len(passing) + len(others)} pass**.",
        "",
        f"{today}, commit {commit}. Again: `make conformance`. Written by `tests/kubernetes-e2e/run.py`; do not edit.",
        "",
        "The names are upstream's. `tests/kubernetes-e2e/passing.txt` lists those that must pass; a test of it that fails, fails",
        "the run.",
        "",
        "The `[Slow]` test passes in this company only: other tests change PodTemplates while it waits. Alone it fails, because a",
        "continue token stays good while no object of the kind changes ([the differences](../reference/differences.md), 45).",
        "",
    ]
    if others:
        lines += ["## Not passing", "", "| test | reason |", "|---|---|"]
        lines += [f"| {name} | {reason} |" for name, reason in others.items()]
        lines += [""]
    lines += ["## Passing", "", "| test | seconds |", "|---|---|"]
    for name in passing:
        ended, seconds, _ = results.get(name, ("not run", 0, ""))
        lines.append(f"| {name} | {seconds:.1f} |" if ended == "passed" else f"| {name} | **{ended}** |")
    REPORT.write_text("\n".join(lines) + "\n")
    print(f"wrote {REPORT.relative_to(ROOT)}")


def checked_out():
    return git("rev-parse", "--short=10", "HEAD") + (" with local changes" if git("status", "--porcelain") else "")


def kubernetes_version():
    lines = (HERE / "go.mod").read_text().splitlines()
    return next(line.split()[-1].removeprefix("v") for line in lines if "k8s.io/kubernetes v" in line)


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    started = time.monotonic()
    try:
        main()
    finally:
        print(f"{time.monotonic() - started:.0f} s")
