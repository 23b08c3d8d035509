"""A service behind Route, Gateway, HTTPRoute, AuthPolicy and RateLimitPolicy, as somebody outside sees it.

    run.py --fairway BINARY --tools .tools

It runs in a network namespace of its own, because the API lets no endpoint have an address of the loopback: there the host has
one more address, at which the backend listens. The OIDC provider is that of tests/oidc (`scripts/tools.sh oidc`).
"""

import argparse
import contextlib
import http.server
import json
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "clients"))

import servers  # noqa: E402

HOST = "10.200.0.1"
BACKEND_PORT = 3000
NAME = "api.apps.fairway.localhost"
LIMIT = 30


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, required=True)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / ".tools")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        # As root, or as anybody where namespaces of users are allowed.
        namespaces = ["-n"] if os.geteuid() == 0 else ["-r", "-n"]
        os.execvp("unshare", ["unshare", *namespaces, sys.executable, *sys.argv, "--inside"])
    for command in ["link set lo up", f"addr add {HOST}/32 dev lo"]:
        subprocess.run(["ip", *command.split()], check=True)
    with tempfile.TemporaryDirectory(prefix="fairway-gateway-") as scratch:
        directory = pathlib.Path(scratch)
        with provider(options, directory) as oidc, backend():
            # The provider's authority is believed beside those of the machine.
            os.environ["SSL_CERT_FILE"] = str(directory / "trusted.pem")
            arguments = ["--no-machines", "--gateway-address", HOST, "--gateway-allowed-hosts", "loopback"]
            with servers.fairway(options.fairway, directory, *arguments) as kubeconfig:
                Flow(options, directory, kubeconfig, oidc).run()
    print("ok")


class Flow:
    def __init__(self, options, directory, kubeconfig, oidc):
        self.kubectl = [str(options.tools / "bin" / "kubectl"), f"--kubeconfig={kubeconfig}"]
        self.authority = directory / "data" / "pki" / "ca.crt"
        self.log = directory / "fairway.log"
        self.oidc = oidc

    def run(self):
        self.apply("service.yaml")
        self.wait("gateway/web", "Programmed")
        step("a Route leads through a Gateway to the Service", lambda: self.expect(200))
        answer = self.ask()
        assert answer["json"]["path"] == "/hello", answer
        assert answer["json"]["headers"]["x-forwarded-proto"] == "https", answer
        step("what is not encrypted is sent to where it is", lambda: self.expect_redirect())
        step("a host that no Route has gets no handshake", lambda: self.expect(None, host="other.apps.fairway.localhost"))

        self.apply("api-key.yaml")
        self.wait("authpolicy/api", "Enforced")
        step("without a key nobody passes", lambda: self.expect(401))
        step("a wrong key is none", lambda: self.expect(401, authorization="APIKEY wrong"))
        step("a key from a Secret passes", lambda: self.expect(200, authorization="APIKEY secret-of-alice"))

        text = (HERE / "oidc.yaml").read_text().replace("ISSUER", self.oidc["issuer"])
        self.apply_text(text)
        tokens = self.oidc["tokens"]
        self.wait("authpolicy/api", "Enforced")
        step("a token of the provider passes, and the backend is told whose it is", lambda: self.expect_user(tokens))
        step("a token that was changed does not", lambda: self.expect(401, authorization=f"Bearer {tokens['jane'][:-4]}AAAA"))
        step("one of another tenant is refused by the authorization", lambda: self.expect(403, authorization=f"Bearer {tokens['joe']}"))

        self.apply("limit.yaml")
        self.wait("ratelimitpolicy/api", "Enforced")
        self.expect_limit(tokens)

        self.kubectl_run("delete", "authpolicy/api", "ratelimitpolicy/api")
        step("without policies everybody passes again", lambda: self.expect(200))

    def expect_user(self, tokens):
        answer = self.expect(200, authorization=f"Bearer {tokens['jane']}")
        assert answer["json"]["headers"].get("x-user") == "jane", answer

    def expect_limit(self, tokens):
        statuses = [self.ask(authorization=f"Bearer {tokens['jane']}") for _ in range(7)]
        codes = [it["status"] for it in statuses]
        assert codes.count(200) == 5 and codes[-1] == 429, codes
        assert statuses[0]["headers"].get("x-ratelimit-limit", "").startswith("5"), statuses[0]
        print("  after the limit comes 429, and headers tell")

    def expect_redirect(self):
        answer = self.ask(scheme="http")
        assert answer["status"] == 302, answer
        assert answer["headers"]["location"].startswith(f"https://{NAME}"), answer

    def expect(self, status, **request):
        answer = self.ask(**request)
        assert answer["status"] == status, answer
        return answer

    def ask(self, scheme="https", host=NAME, path="/hello", authorization=None):
        """A request to the router, by the host's name."""
        port = 443 if scheme == "https" else 80
        headers = {"Host": host, **({"Authorization": authorization} if authorization else {})}
        command = ["curl", "-s", "-i", "--max-time", "5", "--cacert", str(self.authority),
                   "--resolve", f"{host}:{port}:{HOST}", f"{scheme}://{host}{path}"]
        for name, value in headers.items():
            if name != "Host":
                command += ["-H", f"{name}: {value}"]
        found = subprocess.run(command, capture_output=True, text=True)
        if found.returncode:
            return {"status": None, "error": f"curl {found.returncode}: {found.stderr}"}
        head, _, body = found.stdout.replace("\r\n", "\n").partition("\n\n")
        lines = head.split("\n")
        parsed = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        answer = {"status": int(lines[0].split()[1]), "headers": parsed, "body": body}
        if body.startswith("{"):
            answer["json"] = json.loads(body)
        return answer

    def apply(self, name):
        self.apply_text((HERE / name).read_text())

    def apply_text(self, text):
        subprocess.run([*self.kubectl, "apply", "-f", "-"], input=text, text=True, check=True, stdout=subprocess.DEVNULL)

    def kubectl_run(self, *arguments):
        subprocess.run([*self.kubectl, *arguments], check=True, stdout=subprocess.DEVNULL)

    def wait(self, what, condition):
        found = subprocess.run([*self.kubectl, "wait", what, f"--for=condition={condition}", f"--timeout={LIMIT}s"],
                               capture_output=True, text=True)
        if found.returncode:
            shown = subprocess.run([*self.kubectl, "get", what, "-o", "yaml"], capture_output=True, text=True).stdout
            raise SystemExit(f"{what} is not {condition}: {found.stderr}\n{shown}\n{self.log.read_text()[-2000:]}")


def step(what, check):
    """Tries until it holds: what was applied takes a moment."""
    deadline = time.monotonic() + LIMIT
    while True:
        try:
            check()
            print(f"  {what}")
            return
        except AssertionError as error:
            if time.monotonic() > deadline:
                raise SystemExit(f"FAILED: {what}: {error}") from None
            time.sleep(0.1)


@contextlib.contextmanager
def backend():
    class Echo(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            told = {"path": self.path, "headers": {name.lower(): value for name, value in self.headers.items()}}
            body = json.dumps(told).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer((HOST, BACKEND_PORT), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()


@contextlib.contextmanager
def provider(options, directory):
    """The OIDC provider, with a certificate of an authority of its own."""
    key, certificate, authority = (directory / name for name in ["oidc.key", "oidc.crt", "oidc-ca.crt"])
    new = ["-newkey", "rsa:2048", "-nodes"]
    extensions = directory / "oidc.ext"
    extensions.write_text("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    for command in [
        ["req", "-x509", *new, "-days", "1", "-subj", "/CN=oidc-ca", "-keyout", directory / "oidc-ca.key", "-out", authority],
        ["req", *new, "-subj", "/CN=oidc", "-keyout", key, "-out", directory / "oidc.csr"],
        ["x509", "-req", "-days", "1", "-in", directory / "oidc.csr", "-CA", authority, "-CAkey", directory / "oidc-ca.key",
         "-CAcreateserial", "-extfile", extensions, "-out", certificate],
    ]:
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    system = pathlib.Path(ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt")
    trusted = system.read_text() if system.exists() else ""
    (directory / "trusted.pem").write_text(trusted + authority.read_text())
    modules = options.tools / "oidc" / "node_modules"
    running = subprocess.Popen(
        ["node", ROOT / "tests" / "oidc" / "provider.mjs", modules, certificate, key, authority],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    try:
        # It also has remarks on the runtime.
        yield next(json.loads(line) for line in running.stdout if line.startswith("{"))
    finally:
        running.terminate()
        running.wait()


if __name__ == "__main__":
    main()
