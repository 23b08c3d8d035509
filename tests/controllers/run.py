"""Real controllers, built from their own projects' source, against Fairway instead of kube-apiserver.

    run.py --fairway BINARY [--report FILE] [SCENARIO...]

Each scenario gets a Fairway of its own with an empty data directory. Programs that listen on every interface run, with
that Fairway, in a network namespace that has nothing but loopback; where none can be made, they are skipped and said so.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))

import harness
import namespace
import report
from scenarios import argocd, argocd_core, client_go, crossplane, kube_controller_manager, opentofu

SCENARIOS = {
    "client-go": client_go,
    "kube-controller-manager": kube_controller_manager,
    "crossplane": crossplane,
    "argocd": argocd,
    "argocd-core": argocd_core,
    "opentofu": opentofu,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, metavar="BINARY", required=True)
    parser.add_argument("--report", type=pathlib.Path, metavar="FILE", help="write what was seen as Markdown")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="leave logs and data in this directory")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)} (default: all)")
    options = parser.parse_args()
    if unknown := set(options.scenarios) - set(SCENARIOS):
        parser.error(f"unknown scenario {', '.join(sorted(unknown))} (known: {', '.join(SCENARIOS)})")
    selected = options.scenarios or list(SCENARIOS)

    if not namespace.inside():
        # What needs the network (modules, programs) is fetched before the namespace takes it away.
        for name in selected:
            SCENARIOS[name].prepare()
        if (why := namespace.unavailable()) is None:
            sys.exit(namespace.enter())
        outside = [name for name in selected if not SCENARIOS[name].LISTENS_EVERYWHERE]
        for name in set(selected) - set(outside):
            print(f"{name}: SKIPPED: no network namespace can be made ({why})")
        selected = outside

    results = []
    for name in selected:
        with harness.scratch(options.keep, name) as directory:
            results.append(harness.run(name, SCENARIOS[name], options.fairway, directory))
    if options.report:
        report.write(options.report, results)
    failed = [result.name for result in results if not result.passed]
    if failed:
        sys.exit(f"FAILED: {', '.join(failed)}")


if __name__ == "__main__":
    main()
