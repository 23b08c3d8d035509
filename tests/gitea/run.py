"""The Git host through Gitea's own client library for Go.

    run.py --fairway BINARY

The program beside this file is built from the Go proxy and run against a server of its own.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent

RIGHTS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: sdk-tester, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sdk-tester}
rules:
- apiGroups: [fairway.dev]
  resources: [repositories]
  verbs: [create, delete, get, list, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: sdk-tester}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: sdk-tester}
subjects:
- {kind: ServiceAccount, name: sdk-tester, namespace: default}
"""


def build(into):
    program = into / "gitea-sdk"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
    subprocess.run(["go", "build", "-p", "1", "-o", str(program), "."], cwd=HERE, check=True, env=environment)
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fairway", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        program = build(place)
        data = place / "data"
        log = open(place / "log", "w")
        server = subprocess.Popen(
            [options.fairway, "up", "--data", str(data), "--listen", "127.0.0.1:0", "--web-listen", "127.0.0.1:0",
             "--webhook-allowed-hosts", "loopback"],
            stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            running = wait_for(data / "running.json", server, place / "log")
            kubectl = ["kubectl", "--kubeconfig", str(data / "kubeconfig")]
            subprocess.run([*kubectl, "apply", "-f", "-"], input=RIGHTS, text=True, check=True, stdout=subprocess.DEVNULL)
            token = subprocess.run([*kubectl, "create", "token", "sdk-tester"], check=True, capture_output=True, text=True)
            port = running["web_listen"].rsplit(":", 1)[1]
            url = f"https://git.fairway.localhost:{port}"
            done = subprocess.run([str(program), url, str(data / "pki" / "ca.crt"), token.stdout.strip()])
            if done.returncode == 0:
                wait_until_gone([*kubectl, "get", "secret", "-n", "default", "-o", "name"], "fairway-git-hooks-sdk")
            sys.exit(done.returncode)
        finally:
            server.terminate()
            server.wait()


def wait_until_gone(command, name):
    """What belongs to a repository goes with it."""
    for _ in range(300):
        if name not in subprocess.run(command, check=True, capture_output=True, text=True).stdout:
            return
        time.sleep(0.1)
    raise SystemExit(f"{name} is still there")


def wait_for(path, server, log):
    for _ in range(600):
        if path.exists():
            try:
                return json.loads(path.read_text())
            except json.JSONDecodeError:
                pass
        if server.poll() is not None:
            raise SystemExit(log.read_text())
        time.sleep(0.1)
    raise SystemExit("the server did not start in time")


if __name__ == "__main__":
    main()
