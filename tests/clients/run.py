"""Real clients against a server: kubectl and Helm by transcript, the Python client by its own script.

    run.py --fairway BINARY              start Fairway for each suite, and compare
    run.py --upstream COMMAND [--record] the same against the real kube-apiserver; --record writes what it prints
    run.py --kubeconfig FILE             a Fairway that runs already and is empty
    run.py --fairway BINARY --workspace  the same expectations, with the URL of a workspace as the server

Names of suites (files under kubectl/ and helm/ without their ending, or `python`) after the options select some.
"""

import argparse
import difflib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import servers
import transcript

# What is about the server itself and its root workspace: the first namespaces and roles, certificates, the tree.
NOT_IN_A_WORKSPACE = {"10-server", "90-certificates", "95-workspaces"}

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    server = parser.add_mutually_exclusive_group(required=True)
    server.add_argument("--fairway", type=pathlib.Path, metavar="BINARY")
    server.add_argument("--upstream", metavar="COMMAND")
    server.add_argument("--kubeconfig", type=pathlib.Path)
    parser.add_argument("--record", action="store_true", help="write what the real kube-apiserver prints")
    parser.add_argument("--workspace", action="store_true", help="use a workspace as if it were a cluster")
    parser.add_argument("suites", nargs="*")
    options = parser.parse_args()
    if options.record and not options.upstream:
        parser.error("only the real kube-apiserver is recorded: --record needs --upstream")

    if options.workspace and not options.fairway:
        parser.error("--workspace needs --fairway")

    paths = sorted([*HERE.glob("kubectl/*.txt"), *HERE.glob("helm/*.txt")])
    known = [path.stem for path in paths] + ["python"]
    if unknown := set(options.suites) - set(known):
        parser.error(f"unknown suite {', '.join(sorted(unknown))} (known: {', '.join(known)})")

    if options.workspace:
        paths = [path for path in paths if path.stem not in NOT_IN_A_WORKSPACE]

    failed = []
    with tempfile.TemporaryDirectory(prefix="fairway-clients-") as directory:
        with servers.chosen(options, pathlib.Path(directory)) as kubeconfig:
            if options.workspace:
                kubeconfig = servers.enter_workspace(options.fairway, kubeconfig, pathlib.Path(directory))
            for path in paths:
                if not options.suites or path.stem in options.suites:
                    if not run_transcript(path, kubeconfig, options):
                        failed.append(path.stem)
            if not options.suites or "python" in options.suites:
                if not run_python(kubeconfig, options.workspace):
                    failed.append("python")
    if failed:
        sys.exit(f"FAILED: {', '.join(failed)}")


def run_transcript(path, kubeconfig, options):
    script = transcript.Transcript.read(path)
    upstream = bool(options.upstream)
    if upstream and script.only_fairway:
        print(f"{path.stem}: about Fairway only")
        return True
    wrong, started = 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairway-clients-") as scratch:
        scratch = pathlib.Path(scratch)
        shutil.copytree(HERE / "files", scratch / "files")
        # Commands that change their configuration change a copy.
        own = scratch / "kubeconfig"
        shutil.copy(kubeconfig, own)
        environment = servers.environment(own, scratch, options.fairway)
        environment["FAIRWAY_KUBECONFIG"] = str(kubeconfig)
        for step in script.steps:
            actual = transcript.run_command(step.command, environment, scratch / "files")
            actual = [line.replace(str(scratch), "SCRATCH") for line in actual]
            if options.workspace:
                actual = transcript.without_workspace(actual)
            if options.record:
                step.expected = transcript.recorded(step, actual)
                continue
            agrees, expected, actual = transcript.agrees(step, actual, upstream)
            if not agrees:
                wrong += 1
                print(f"\n{path.relative_to(HERE)}:{step.line}: $ {step.command}")
                for line in difflib.unified_diff(expected, actual, "expected", "printed", lineterm="", n=2):
                    print(f"    {line}")
    if options.record:
        script.write()
    commands = len(script.steps)
    took = time.monotonic() - started
    print(f"{path.stem}: {commands - wrong} of {commands} commands as expected, {took:.0f} s", flush=True)
    return wrong == 0


def run_python(kubeconfig, in_workspace):
    with tempfile.TemporaryDirectory(prefix="fairway-clients-") as scratch:
        environment = servers.environment(kubeconfig, pathlib.Path(scratch))
        environment["IN_WORKSPACE"] = "yes" if in_workspace else ""
        result = subprocess.run([sys.executable, HERE / "python_client.py"], env=environment)
    return result.returncode == 0


if __name__ == "__main__":
    main()
