"""Wrong requests: what the real kube-apiserver answered, and whether Fairway answers the same.

    run.py --upstream COMMAND --record   ask kube-apiserver, and write answers/*.json
    run.py --upstream COMMAND            ask it again; fails when an answer is no longer the recorded one
    run.py --fairway BINARY              start Fairway and compare; fails where a difference is not in differences.yaml
    run.py --fairway BINARY --table      the same, and write docs/conformance/wrong-requests.md

    --kubeconfig FILE [--as-upstream]    a server that runs already, taken for Fairway, or for kube-apiserver

Names of files under cases/ (without their ending) after the options select some.
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "clients"))

import asking  # noqa: E402
import cases  # noqa: E402
import report  # noqa: E402
import servers  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    server = parser.add_mutually_exclusive_group(required=True)
    server.add_argument("--fairway", type=pathlib.Path, metavar="BINARY")
    server.add_argument("--upstream", metavar="COMMAND")
    server.add_argument("--kubeconfig", type=pathlib.Path)
    parser.add_argument("--as-upstream", action="store_true")
    parser.add_argument("--record", action="store_true", help="write what the real kube-apiserver answers")
    parser.add_argument("--table", action="store_true", help="write the table of docs/conformance")
    parser.add_argument("--brief", action="store_true", help="name the cases that differ, without the answers")
    parser.add_argument("themes", nargs="*")
    options = parser.parse_args()
    upstream = bool(options.upstream or options.as_upstream)
    if options.record and not upstream:
        parser.error("only the real kube-apiserver is recorded: --record needs --upstream")
    if options.table and (upstream or options.themes):
        parser.error("the table is about Fairway and all themes: --table needs --fairway, and no names")

    themes = cases.load(HERE / "cases")
    if unknown := set(options.themes) - {theme.stem for theme in themes}:
        parser.error(f"unknown theme {', '.join(sorted(unknown))}")
    themes = [theme for theme in themes if not options.themes or theme.stem in options.themes]

    started = time.monotonic()
    results = []
    with tempfile.TemporaryDirectory(prefix="fairway-wrong-") as directory:
        with servers.chosen(options, pathlib.Path(directory)) as kubeconfig:
            for theme in themes:
                answers = asking.ask_theme(asking.Server(kubeconfig), theme)
                if options.record:
                    cases.write_answers(HERE / "answers", theme, answers)
                    print(f"{theme.stem}: {len(answers)} answers recorded", flush=True)
                    continue
                results.append(report.compare(theme, answers, cases.read_answers(HERE / "answers", theme)))
    if options.record:
        return
    reasons = {} if upstream else cases.read_differences(HERE / "differences.yaml")
    problems = report.print_differences(results, reasons, options.brief)
    total = sum(len(result.theme.cases) for result in results)
    differ = sum(len(result.differences) for result in results)
    print(f"{total} wrong requests: {total - differ} answered as recorded, {differ} not; {time.monotonic() - started:.0f} s")
    if options.table:
        path = ROOT / "docs" / "conformance" / "wrong-requests.md"
        path.write_text(report.table(results, reasons, commit(), datetime.date.today().isoformat()))
    if problems:
        sys.exit(f"FAILED: {problems} unexplained")


def commit():
    ask = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
