"""The conformance suite of Gateway API, as upstream wrote it, against Fairway.

    run.py --fairway BINARY --programs DIRECTORY                  the whole suite, and the report
    run.py --fairway BINARY --programs DIRECTORY --test NAME      one test; no report

DIRECTORY holds conformance.test, echo-basic and backends, which are built from the Go module beside this file
(scripts/gateway-conformance.sh DIRECTORY). Everything runs in a network namespace of its own: Gateways of the suite all want
ports 80 and 443, its backends listen on every address, and endpoints must not have addresses of the loopback.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REPORT = ROOT / "docs" / "conformance" / "gateway-report.yaml"
LIST = ROOT / "docs" / "conformance" / "gateway.md"
MODULE = "sigs.k8s.io/gateway-api"
VERSION = "v1.4.0"
BACKENDS = "10.200.0.1"
POOL = "10.200.1.0/24"
# An address of this host that is in no pool, and one that is nobody's (RFC 5737).
USABLE, UNUSABLE = "10.200.2.1", "192.0.2.99"
PROFILES = ["GATEWAY-HTTP", "GATEWAY-TLS", "GATEWAY-GRPC"]
# Tests that cannot run, each with its reason.
SKIPPED = {
    "HTTPRouteRequestMirror": "reads the logs of pods to see the copies of requests; Fairway runs none",
    "HTTPRouteRequestMultipleMirrors": "reads the logs of pods to see the copies of requests; Fairway runs none",
    "HTTPRouteRequestPercentageMirror": "reads the logs of pods to see the copies of requests; Fairway runs none",
}
# Families of tests whose features are not Fairway's, by how their names begin, each with its reason.
EXEMPT = {
    "Mesh": "there are no pods between which a mesh would be",
}
LIMIT = 3000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--test", help="only this one")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIRECTORY", help="keep logs and results here")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        # As root, or as anybody where namespaces of users are allowed.
        namespaces = ["-n"] if os.geteuid() == 0 else ["-r", "-n"]
        os.execvp("unshare", ["unshare", *namespaces, sys.executable, *sys.argv, "--inside"])
    network()
    with tempfile.TemporaryDirectory(prefix="fairway-gateway-") as scratch:
        directory = options.keep or pathlib.Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        sys.exit(run(options, directory))


def network():
    addresses = [f"{BACKENDS}/32", POOL.replace(".0/", ".1/"), f"{USABLE}/32"]
    for command in ["link set lo up", *(f"addr add {address} dev lo" for address in addresses)]:
        subprocess.run(["ip", *command.split()], check=True)


def run(options, directory):
    data = directory / "data"
    fairway = str(options.fairway.resolve())
    up = [fairway, "up", "--data", str(data), "--no-machines", "--detach", "--gateway-pool", POOL]
    subprocess.run([*up, "--gateway-address", BACKENDS], check=True)
    kubeconfig = data / "kubeconfig"
    programs = options.programs.resolve()
    crds = pathlib.Path(module()) / "config" / "crd" / "experimental"
    backends = subprocess.Popen(
        [programs / "backends", f"-kubeconfig={kubeconfig}", f"-echo={programs / 'echo-basic'}", f"-address={BACKENDS}",
         f"-crds={crds}"],
        stdout=subprocess.PIPE, stderr=(directory / "backends.log").open("w"), text=True,
    )
    try:
        if backends.stdout.readline().strip() != "ready":
            raise SystemExit("the backends did not start: " + (directory / "backends.log").read_text())
        return suite(options, directory, programs, kubeconfig)
    finally:
        backends.terminate()
        backends.wait()
        subprocess.run([fairway, "down", "--data", str(data)], check=False)


def module():
    found = subprocess.run(["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"], cwd=HERE, check=True,
                           capture_output=True, text=True)
    return json.loads(found.stdout)["Dir"]


def suite(options, directory, programs, kubeconfig):
    version = subprocess.run([options.fairway, "version"], capture_output=True, text=True).stdout.split()
    arguments = [
        "-test.v", f"-test.timeout={LIMIT}s", "-gateway-class=fairway", "-cleanup-base-resources=false",
        f"-skip-tests={','.join(SKIPPED)}", f"-usable-address={USABLE}", f"-unusable-address={UNUSABLE}",
    ]
    if options.test:
        arguments += ["-run-test=" + options.test, "-all-features"]
    else:
        arguments += [
            f"-conformance-profiles={','.join(PROFILES)}", f"-report-output={directory / 'report.yaml'}",
            "-organization=fairway", "-project=fairway", "-url=https://fairway.dev", "-contact=https://fairway.dev",
            f"-version={version[1] if len(version) > 1 else 'unknown'}",
        ]
    log = directory / "suite.log"
    with log.open("w") as out:
        code = subprocess.run(
            [programs / "conformance.test", *arguments], cwd=HERE, env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            stdout=out, stderr=subprocess.STDOUT, timeout=LIMIT + 60,
        ).returncode
    results = outcomes(log.read_text())
    for name, outcome in sorted(results.items()):
        print(f"{outcome}  {name}")
    counts = {kind: list(results.values()).count(kind) for kind in ["PASS", "FAIL", "SKIP"]}
    print(", ".join(f"{number} {kind}" for kind, number in counts.items()))
    report = directory / "report.yaml"
    if not options.test and report.exists():
        REPORT.write_text(report.read_text())
        write_list(results)
    return code


def outcomes(text):
    """The tests of the suite, by name."""
    found = re.findall(r"^\s{4}--- (PASS|FAIL|SKIP): TestConformance/(\w+) ", text, re.M)
    return {name: outcome for outcome, name in found}


def reason(name):
    """Why a test does not run."""
    family = next((why for begins, why in EXEMPT.items() if name.startswith(begins)), None)
    return SKIPPED.get(name) or family or "of a feature that is not among `supportedFeatures`"


def write_list(results):
    lines = [
        "# Gateway API: what passes", "",
        f"Written by `tests/gateway-conformance/run.py` on {time.strftime('%Y-%m-%d')}, with the suite of {MODULE} {VERSION} and the",
        "profiles " + ", ".join(f"`{name}`" for name in PROFILES) + ". The report that upstream asks for is",
        "[`gateway-report.yaml`](gateway-report.yaml).", "",
        "Which features are tested follows from `status.supportedFeatures` of the GatewayClass. Backends are processes of the",
        "suite's own echo server, since Fairway runs no pods.", "",
    ]
    for kind, title in [("PASS", "Passes"), ("FAIL", "Fails")]:
        names = sorted(name for name, outcome in results.items() if outcome == kind)
        lines += [f"## {title} ({len(names)})", ""] + [f"- {name}" for name in names] + [""]
    skipped = sorted(name for name, outcome in results.items() if outcome == "SKIP")
    lines += [f"## Does not run ({len(skipped)})", ""]
    for name in skipped:
        lines.append(f"- {name}: {reason(name)}")
    LIST.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
