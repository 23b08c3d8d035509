"""A service behind Route, Gateway, HTTPRoute, AuthPolicy and RateLimitPolicy, as somebody outside sees it.

    run.py --fairway BINARY --tools .tools [--guest]

With `--guest` the service is a web server in a machine, as in the flow that people see; else it is a process of this host. It runs in a network namespace of its own, because the API lets no endpoint have an address of the loopback: there the host has
one more address, at which the backend listens. The OIDC provider is that of tests/oidc (`scripts/tools.sh oidc`).
"""

import argparse
import base64
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Others load this file, too, from elsewhere.
sys.path[:0] = [str(ROOT / "tests" / "clients"), str(HERE)]

import servers  # noqa: E402
from published import Published  # noqa: E402

HOST = "10.200.0.1"
BACKEND_PORT = 3000
NAME = "api.apps.fairway.localhost"
LIMIT = 30
# A guest whose processor is emulated, on a machine that does other things, too.
GUEST_LIMIT = 300
GREETING = "hello from the guest"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, required=True)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / ".tools")
    parser.add_argument("--guest", action="store_true", help="the service is in a machine")
    parser.add_argument("--images", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        if options.guest:
            # While there is a network to fetch from.
            sys.argv += ["--images", str(image(options.fairway.resolve()))]
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
            arguments = ["--gateway-address", HOST, "--gateway-allowed-hosts", "loopback"]
            if options.guest:
                (directory / "data").mkdir(mode=0o700)
                shutil.copytree(options.images, directory / "data" / "images", symlinks=True)
                # The Gateway has an address of this host, which guests do not reach unless it is named.
                arguments += ["--egress-allow", f"{HOST}:8080"]
            else:
                arguments.append("--no-machines")
            with servers.fairway(options.fairway, directory, *arguments) as kubeconfig:
                kind = GuestFlow if options.guest else Flow
                kind(options, directory, kubeconfig, oidc).run()
        if not options.guest:
            Names(options, directory / "names").run()
    print("ok")


def image(binary):
    """The image of the guest, built once for all tests."""
    sys.path.insert(0, str(ROOT / "tests" / "machines"))
    import world

    target = binary.parent.parent / "tmp" / "machines"
    target.mkdir(parents=True, exist_ok=True)
    return world.images(binary, target, ["tiny"])


class Flow:
    def __init__(self, options, directory, kubeconfig, oidc):
        self.kubectl = [str(options.tools / "bin" / "kubectl"), f"--kubeconfig={kubeconfig}"]
        self.authority = directory / "data" / "pki" / "ca.crt"
        self.log = directory / "fairway.log"
        self.oidc = oidc
        self.published = Published(self, options.fairway, directory, HOST, step)

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
        self.published.explained()

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
        self.published.limits()

        self.kubectl_run("delete", "ratelimitpolicy/api")
        self.portal()

        self.kubectl_run("delete", "authpolicy/api")
        step("without policies everybody passes again", lambda: self.expect(200))
        self.published.run()

    def portal(self):
        """A developer asks for a key, the API's owner answers."""
        self.apply("portal.yaml")
        self.wait("apiproduct/api", "AuthPolicyDiscovered")
        self.wait("planpolicy/api", "Enforced")
        consumer = ["--namespace=consumer"]
        self.wait("apikey/mine", "Pending", *consumer)
        request = self.get("apikeyrequests", "{.items[0].metadata.name}")
        answer = (HERE / "approval.yaml").read_text().replace("REQUEST", request)
        self.apply_text(answer)
        self.wait("apikey/mine", "Approved", *consumer)
        key = self.key(consumer)
        step("a key that was approved passes", lambda: self.expect(200, authorization=f"APIKEY {key}"))
        step("and its plan counts", lambda: self.expect(429, authorization=f"APIKEY {key}"))
        log = self.log.read_text()
        assert key not in log, "the key is in the log"
        self.kubectl_run("delete", "apikeyapproval/mine")
        self.wait("apikey/mine", "Pending", *consumer)
        step("one that was revoked does not", lambda: self.expect(401, authorization=f"APIKEY {key}"))
        self.apply_text(answer)
        self.wait("apikey/mine", "Approved", *consumer)
        step("who is approved again gets another one", lambda: self.expect_other(key, consumer))
        step("and the old one stays what it is", lambda: self.expect(401, authorization=f"APIKEY {key}"))
        key = self.key(consumer)
        self.kubectl_run("delete", "apikey/mine", *consumer)
        step("one that was deleted does not pass", lambda: self.expect(401, authorization=f"APIKEY {key}"))
        left = self.get("secrets", "{.items[*].metadata.name}", "--namespace=kuadrant-system")
        assert not left, left
        self.kubectl_run("delete", "planpolicy/api", "apiproduct/api")

    def key(self, consumer):
        encoded = self.get("secret/mine-api-key", "{.data.api_key}", *consumer)
        return base64.b64decode(encoded).decode()

    def expect_other(self, before, consumer):
        key = self.key(consumer)
        assert key and key != before, "the same key again"
        answer = self.ask(authorization=f"APIKEY {key}")
        # Its plan may be used up already.
        assert answer["status"] in (200, 429), answer

    def get(self, what, path, *options):
        """What is at a path of an object, once it is there."""
        command = [*self.kubectl, "get", what, "-o", f"jsonpath={path}", *options]
        deadline = time.monotonic() + LIMIT
        while True:
            found = subprocess.run(command, capture_output=True, text=True)
            if found.stdout or time.monotonic() > deadline or "items[*]" in path:
                return found.stdout
            time.sleep(0.1)

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

    def ask(self, scheme="https", host=NAME, path="/hello", authorization=None, port=None):
        """A request to the router, or another port, by the host's name."""
        port = port or (443 if scheme == "https" else 80)
        headers = {"Host": host, **({"Authorization": authorization} if authorization else {})}
        command = ["curl", "-s", "-i", "--max-time", "5", "--cacert", str(self.authority),
                   "--resolve", f"{host}:{port}:{HOST}", f"{scheme}://{host}:{port}{path}"]
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

    def wait(self, what, condition, *options):
        found = subprocess.run([*self.kubectl, "wait", what, f"--for=condition={condition}", f"--timeout={LIMIT}s", *options],
                               capture_output=True, text=True)
        if found.returncode:
            shown = subprocess.run([*self.kubectl, "get", what, "-o", "yaml", *options], capture_output=True, text=True).stdout
            raise SystemExit(f"{what} is not {condition}: {found.stderr}\n{shown}\n{self.log.read_text()[-2000:]}")


class GuestFlow(Flow):
    """The same way, to a machine: Route → Gateway → HTTPRoute → AuthPolicy → RateLimitPolicy → Service → guest:8080."""

    # The guest looks for its own published name, and for what is served there: itself, by way of the Gateway.
    ASKS = f"""- (until busybox wget -q -O /srv/www/seen.txt http://{NAME}:8080/; do busybox nslookup {NAME} >/srv/www/name.txt 2>&1; sleep 1; done) &
"""

    def run(self):
        sys.path.insert(0, str(ROOT / "tests" / "machines"))
        import manifests

        way, _, _ = (HERE / "service.yaml").read_text().partition("---\napiVersion: v1\nkind: Service")
        self.apply_text(way)
        guest = manifests.machine("web", "default", user_data=manifests.user_data("web", GREETING) + self.ASKS)
        service = manifests.service("backend", "default", {"app": "web"}, kind="ClusterIP", http=8080)
        self.apply_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [guest, service]}))
        self.wait("gateway/web", "Programmed")
        step("before the guest is there, nobody answers", lambda: self.expect(503, path="/"))
        began = time.monotonic()
        step("the guest answers through the Route", lambda: self.expect_page(), patience=GUEST_LIMIT)
        print(f"  after {time.monotonic() - began:.0f} s")
        step("it finds itself under its published name", lambda: self.expect_seen(), patience=GUEST_LIMIT)

        self.apply("api-key.yaml")
        self.wait("authpolicy/api", "Enforced")
        step("without a key nobody reaches the guest", lambda: self.expect(401, path="/"))
        step("with one it answers", lambda: self.expect_page(authorization="APIKEY secret-of-alice"))
        self.apply_text((HERE / "oidc.yaml").read_text().replace("ISSUER", self.oidc["issuer"]))
        self.wait("authpolicy/api", "Enforced")
        tokens = self.oidc["tokens"]
        step("with a token of the provider too", lambda: self.expect_page(authorization=f"Bearer {tokens['jane']}"))
        step("not with one of another tenant", lambda: self.expect(403, path="/", authorization=f"Bearer {tokens['joe']}"))
        self.apply("limit.yaml")
        self.wait("ratelimitpolicy/api", "Enforced")
        answers = [self.ask(path="/", authorization=f"Bearer {tokens['jane']}") for _ in range(7)]
        codes = [it["status"] for it in answers]
        assert codes.count(200) == 5 and codes[-1] == 429, codes
        assert answers[-1]["headers"].get("x-ratelimit-remaining") == "0", answers[-1]
        assert int(answers[-1]["headers"]["x-ratelimit-reset"]) > 0, answers[-1]
        print("  after the limit comes 429, and headers tell")

        self.kubectl_run("delete", "ratelimitpolicy/api", "authpolicy/api")
        self.kubectl_run("delete", "vm/web", f"--timeout={GUEST_LIMIT}s")
        step("when the guest is gone, nobody answers", lambda: self.expect(503, path="/"), patience=GUEST_LIMIT)

    def expect_seen(self):
        name = self.ask(path="/name.txt")
        answer = self.ask(path="/seen.txt")
        assert answer["status"] == 200 and GREETING in answer["body"], (answer, name.get("body"))

    def expect_page(self, **request):
        answer = self.expect(200, path="/", **request)
        assert GREETING in answer["body"], answer


class Names:
    """Two workspaces want one name: who has it keeps it, also over a restart, although the other's Gateway is older."""

    PORT = 9000

    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.kubectl = str(options.tools / "bin" / "kubectl")
        directory.mkdir()

    def run(self):
        arguments = ["--no-machines", "--gateway-address", HOST]
        with servers.fairway(self.options.fairway, self.directory, *arguments) as kubeconfig:
            thief, shop = (self.workspace(kubeconfig, name) for name in ["thief", "shop"])
            self.gateway(thief, "hello.example")
            self.route(thief, "thief.example")
            # Ages are whole seconds.
            time.sleep(1.1)
            self.gateway(shop, "www.shop.example")
            self.route(shop, "shop.example")
            step("a workspace has a host name", lambda: self.expect("shop.example"))
            self.gateway(thief, "www.shop.example")
            step("another one with an older Gateway is told so", lambda: self.expect_conflict(thief))
            self.expect("shop.example")
        with servers.fairway(self.options.fairway, self.directory, *arguments):
            step("after a restart it is served", lambda: self.expect())
            self.expect("shop.example")
            print("  by who had it before")

    def workspace(self, kubeconfig, name):
        own = self.directory / f"{name}.kubeconfig"
        shutil.copy(kubeconfig, own)
        subprocess.run([self.options.fairway, "workspace", "create", name, "--enter", "--kubeconfig", own], check=True, stdout=subprocess.DEVNULL)
        return own

    def gateway(self, kubeconfig, host):
        listener = {"name": "http", "port": self.PORT, "protocol": "HTTP", "hostname": host}
        self.apply(kubeconfig, "Gateway", {"gatewayClassName": "fairway", "listeners": [listener]})

    def route(self, kubeconfig, to):
        redirect = {"type": "RequestRedirect", "requestRedirect": {"statusCode": 302, "hostname": to}}
        self.apply(kubeconfig, "HTTPRoute", {"parentRefs": [{"name": "web"}], "rules": [{"filters": [redirect]}]})

    def apply(self, kubeconfig, kind, spec):
        manifest = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": {"name": "web", "namespace": "default"}, "spec": spec}
        subprocess.run([self.kubectl, f"--kubeconfig={kubeconfig}", "apply", "-f", "-"], input=json.dumps(manifest), text=True, check=True,
                       stdout=subprocess.DEVNULL)

    def expect(self, where=""):
        command = ["curl", "-s", "-i", "--max-time", "5", "-H", "Host: www.shop.example", f"http://{HOST}:{self.PORT}/"]
        answer = subprocess.run(command, capture_output=True, text=True).stdout
        assert f"location: http://{where}" in answer.lower(), answer

    def expect_conflict(self, kubeconfig):
        path = '{.status.listeners[0].conditions[?(@.type=="Conflicted")].status}'
        command = [self.kubectl, f"--kubeconfig={kubeconfig}", "get", "gateway", "web", "-o", f"jsonpath={path}"]
        found = subprocess.run(command, capture_output=True, text=True).stdout
        assert found == "True", found


def step(what, check, patience=LIMIT):
    """Tries until it holds: what was applied takes a moment."""
    deadline = time.monotonic() + patience
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
