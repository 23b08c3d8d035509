"""client-go and controller-runtime: a Go test module of our own, in client-go/."""

import os
import re
import subprocess

import harness

PROGRAM = "client-go 0.36.3 and controller-runtime 0.24.1"
LISTENS_EVERYWHERE = False
MODULE = harness.HERE / "client-go"
BINARY = harness.ROOT / ".tools" / "client-go.test"
LIMIT = 300


def prepare():
    command = ["go", "test", "-c", "-o", str(BINARY), "."]
    subprocess.run(command, cwd=MODULE, check=True, env={**os.environ, "CGO_ENABLED": "0"})


def run(fairway):
    done = subprocess.run(
        [BINARY, "-test.v", f"-test.timeout={LIMIT}s"],
        env=fairway.environment(), cwd=MODULE, capture_output=True, text=True,
    )
    (fairway.directory / "client-go.log").write_text(done.stdout + done.stderr)
    for outcome, test, seconds in re.findall(r"^ *--- (\w+): (\S+) \(([\d.]+)s\)$", done.stdout, re.MULTILINE):
        if outcome == "PASS":
            fairway.note(test, float(seconds))
    if done.returncode:
        complaints = [line for line in done.stdout.splitlines() if re.search(r"--- FAIL|_test\.go:|^panic", line)]
        raise harness.Failed("\n    ".join(["tests failed:", *complaints[-30:]]) if complaints else done.stderr[-2000:])
