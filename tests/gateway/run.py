"""A service behind Route, Gateway, HTTPRoute, AuthPolicy and RateLimitPolicy, as somebody outside sees it.

    run.py --fairway BINARY --tools .tools [--guest]

With `--guest` the service is a web server in a machine, as in the flow that people see; else it is a process of this host. It runs in a network namespace of its own, because the API lets no endpoint have an address of the loopback: there the host has
one more address, at which the backend listens. The OIDC provider is that of tests/oidc (`scripts/tools.sh oidc`).
"""

import argparse
import base64
import contextlib
import functools
import hashlib
import hmac
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
import urllib.request

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Others load this file, too, from elsewhere.
sys.path[:0] = [str(ROOT / "tests" / "clients"), str(HERE)]

import servers  # noqa: E402
from published import Published  # noqa: E402

HOST = "10.200.0.1"
BACKEND_PORT, SECURE_BACKEND_PORT = 3000, 3443
# What the provider's tokens are for (tests/oidc/provider.mjs).
AUDIENCE = "urn:fairway"
# The paths that the backend was asked for.
SEEN = []
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
        with provider(options, directory) as oidc, backend(directory):
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
        self.repeated()
        self.published.explained()

        tokens = self.oidc["tokens"]
        self.wrong_audience(tokens)
        self.people_of(AUDIENCE)
        self.wait("authpolicy/api", "Enforced")
        step("a token of the provider passes, and the backend is told whose it is", lambda: self.expect_user(tokens))
        step("a token that was changed does not", lambda: self.expect(401, authorization=f"Bearer {tokens['jane'][:-4]}AAAA"))
        self.wrong_tokens(tokens)
        step("one of another tenant is refused by the authorization", lambda: self.expect(403, authorization=f"Bearer {tokens['joe']}"))

        self.apply("limit.yaml")
        self.wait("ratelimitpolicy/api", "Enforced")
        self.expect_limit(tokens)
        self.published.limits()

        self.kubectl_run("delete", "ratelimitpolicy/api")
        self.portal()

        self.without_provider(tokens)
        self.kubectl_run("delete", "authpolicy/api")
        step("without policies everybody passes again", lambda: self.expect(200))
        self.other_terminations()
        self.published.run()

    def repeated(self):
        """Who has a key, and brings another one beside it, which the backend might believe."""
        before = len(SEEN)
        for others in [["APIKEY secret-of-alice"], ["APIKEY secret-of-bob"], ["Basic cm9vdDpyb290"]]:
            for both in [["APIKEY secret-of-alice", *others], [*others, "APIKEY secret-of-alice"]]:
                self.expect(401, authorization=both)
        assert len(SEEN) == before, SEEN[before:]
        print("  but not beside another")

    def people_of(self, audience):
        """Lets people of the provider in whose tokens were made for an audience."""
        text = (HERE / "oidc.yaml").read_text()
        self.apply_text(text.replace("ISSUER", self.oidc["issuer"]).replace("AUDIENCE", audience))

    def wrong_audience(self, tokens):
        """A token that is right in all but for whom it was made."""
        self.people_of("urn:somebody-else")
        self.wait("authpolicy/api", "Enforced")
        before = len(SEEN)
        step("a token for another audience is refused", lambda: self.expect(403, authorization=f"Bearer {tokens['jane']}"))
        assert len(SEEN) == before, SEEN[before:]

    def wrong_tokens(self, tokens):
        """What people try who have seen a token: none of it passes, and the backend hears of none."""
        # Its second is over by now, or else soon.
        deadline = time.monotonic() + LIMIT
        while time.time() < unpacked(tokens["late"].split(".")[1])["exp"] + 1 and time.monotonic() < deadline:
            time.sleep(0.1)
        header, claims, _ = tokens["jane"].split(".")
        header = unpacked(header)
        wrong = {
            "unsigned": token({**header, "alg": "none"}, claims, lambda _: b""),
            "unsigned, in other words": token({**header, "alg": "None"}, claims, lambda _: b""),
            "signed by somebody else": token(header, claims, somebody().sign_rs256),
            "with a key that nobody knows": token({**header, "kid": "unknown"}, claims, somebody().sign_rs256),
            "that brings its key": token({**header, "jwk": somebody().jwk()}, claims, somebody().sign_rs256),
            "of another issuer": token(header, packed({**unpacked(claims), "iss": "https://127.0.0.1:1"}), somebody().sign_rs256),
            "that has expired": tokens["late"],
        }
        # The public key is no secret, so whoever takes it for one lets everybody in.
        for name, secret in self.public_key(header["kid"]).items():
            sign = functools.partial(hs256, secret)
            wrong[f"signed with the public key as a secret ({name})"] = token({**header, "alg": "HS256"}, claims, sign)
        before = len(SEEN)
        for name, text in wrong.items():
            answer = self.ask(authorization=f"Bearer {text}")
            assert answer["status"] == 401, (name, answer)
        assert len(SEEN) == before, SEEN[before:]
        print(f"  nor {len(wrong)} tokens that are wrong otherwise: {', '.join(wrong)}")

    def public_key(self, kid):
        """The provider's key as somebody may take it for a secret."""
        context = ssl.create_default_context(cafile=self.authority.parents[2] / "oidc-ca.crt")
        with urllib.request.urlopen(self.oidc["issuer"] + "/jwks", context=context, timeout=10) as answer:
            keys = json.load(answer)["keys"]
        key = next(key for key in keys if key["kid"] == kid)
        number = lambda field: int.from_bytes(base64.urlsafe_b64decode(key[field] + "=="))
        public = rsa.RSAPublicNumbers(number("e"), number("n")).public_key()
        form = serialization.PublicFormat
        return {"PEM": public.public_bytes(serialization.Encoding.PEM, form.SubjectPublicKeyInfo),
                "DER": public.public_bytes(serialization.Encoding.DER, form.SubjectPublicKeyInfo)}

    def without_provider(self, tokens):
        """The provider dies: whom it let in stays in, and nobody comes in by what only it could tell."""
        self.people_of(AUDIENCE)
        self.wait("authpolicy/api", "Enforced")
        step("a token of the provider passes still", lambda: self.expect_user(tokens))
        self.oidc["process"].kill()
        self.oidc["process"].wait()
        self.expect_user(tokens)
        print("  also when the provider has died")
        header, claims, _ = tokens["jane"].split(".")
        stranger = token({**unpacked(header), "kid": "new"}, claims, somebody().sign_rs256)
        before = len(SEEN)
        # Keys are read again some time after they were read last.
        deadline = time.monotonic() + 90
        while "cannot be read" not in self.conditions():
            assert time.monotonic() < deadline, self.conditions()
            self.expect(401, authorization=f"Bearer {stranger}")
            time.sleep(1)
        assert len(SEEN) == before, SEEN[before:]
        print("  a token with a key that is not known does not, and the policy tells that keys cannot be read")
        self.expect_user(tokens)

    def conditions(self):
        return self.get("authpolicy/api", "{.status.conditions}")

    def other_terminations(self):
        """Routes whose backend ends TLS itself, or speaks it too."""
        authority = (self.authority.parents[2] / "backend-ca.crt").read_text()
        other = (self.authority.parents[2] / "oidc-ca.crt").read_text()
        indented = lambda text: text.strip().replace("\n", "\n      ")
        routes = (HERE / "terminations.yaml").read_text()
        self.apply_text(routes.replace("AUTHORITY", indented(authority)).replace("STRANGER", indented(other)))
        through = {"host": "pass.apps.fairway.localhost", "authority": self.authority.parents[2] / "backend-ca.crt"}
        step("a Route with passthrough shows the backend's own certificate", lambda: self.expect(200, **through))
        answer = self.ask(**through)
        assert "x-forwarded-for" not in answer["json"]["headers"], answer
        self.expect(None, host=through["host"])
        step("one with reencrypt shows the platform's", lambda: self.expect(200, host="again.apps.fairway.localhost"))
        answer = self.ask(host="again.apps.fairway.localhost")
        assert answer["json"]["secure"] and answer["json"]["headers"]["x-forwarded-proto"] == "https", answer
        before = len(SEEN)
        step("and believes no backend that the Route's authority has not signed", lambda: self.expect(502, host="wrong.apps.fairway.localhost"))
        assert len(SEEN) == before, SEEN[before:]
        self.kubectl_run("delete", "route/pass", "route/again", "route/wrong")

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
        before = len(SEEN)
        statuses = [self.ask(authorization=f"Bearer {tokens['jane']}") for _ in range(7)]
        codes = [it["status"] for it in statuses]
        assert codes.count(200) == 5 and codes[-1] == 429, codes
        # A guest counts for itself.
        assert len(SEEN) - before <= 5, SEEN[before:]
        for answer, left in zip(statuses, ["4", "3", "2", "1", "0", "0", "0"]):
            told = {name: answer["headers"].get(f"x-ratelimit-{name}", "") for name in ["limit", "remaining", "reset"]}
            assert told["limit"].split(",")[0] == "5" and told["remaining"] == left, answer
            assert 0 < int(told["reset"]) <= 60, answer
        print("  after the limit comes 429, the backend hears of none, and headers tell")

    def expect_redirect(self):
        answer = self.ask(scheme="http")
        assert answer["status"] == 302, answer
        assert answer["headers"]["location"].startswith(f"https://{NAME}"), answer

    def expect(self, status, **request):
        answer = self.ask(**request)
        assert answer["status"] == status, answer
        return answer

    def ask(self, scheme="https", host=NAME, path="/hello", authorization=None, port=None, authority=None):
        """A request to the router, or another port, by the host's name."""
        port = port or (443 if scheme == "https" else 80)
        authorizations = [authorization] if isinstance(authorization, str) else authorization or []
        command = ["curl", "-s", "-i", "--max-time", "5", "--cacert", str(authority or self.authority),
                   "--resolve", f"{host}:{port}:{HOST}", f"{scheme}://{host}:{port}{path}"]
        for value in authorizations:
            command += ["-H", f"Authorization: {value}"]
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
        self.apply_text(json.dumps(service))
        self.wait("gateway/web", "Programmed")
        step("before the guest is there, nobody answers", lambda: self.expect(503, path="/"))
        self.apply_text(json.dumps(guest))
        began = time.monotonic()
        step("the guest answers through the Route", lambda: self.expect_page(), patience=GUEST_LIMIT)
        print(f"  after {time.monotonic() - began:.0f} s")
        step("it finds itself under its published name", lambda: self.expect_seen(), patience=GUEST_LIMIT)

        self.apply("api-key.yaml")
        self.wait("authpolicy/api", "Enforced")
        step("without a key nobody reaches the guest", lambda: self.expect(401, path="/"))
        step("with one it answers", lambda: self.expect_page(authorization="APIKEY secret-of-alice"))
        self.people_of(AUDIENCE)
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


def packed(value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def unpacked(text):
    return json.loads(base64.urlsafe_b64decode(text + "=="))


def token(header, claims, sign):
    message = f"{packed(header)}.{claims}"
    return f"{message}.{packed(sign(message.encode()))}"


def hs256(secret, message):
    return hmac.new(secret, message, hashlib.sha256).digest()


class Somebody:
    """Who has a key, though not the provider's."""

    def __init__(self):
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def sign_rs256(self, message):
        return self.key.sign(message, padding.PKCS1v15(), hashes.SHA256())

    def jwk(self):
        numbers = self.key.public_key().public_numbers()
        return {"kty": "RSA", "alg": "RS256", "n": packed(numbers.n.to_bytes(256)), "e": packed(numbers.e.to_bytes(3))}


@functools.cache
def somebody():
    return Somebody()


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
def backend(directory):
    """Tells what it was asked; in the clear, and with a certificate of an authority of its own."""
    class Echo(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            SEEN.append(self.path)
            if "Upgrade" in self.headers:
                return self.echo()
            told = {"path": self.path, "secure": isinstance(self.connection, ssl.SSLSocket), "headers": {name.lower(): value for name, value in self.headers.items()}}
            body = json.dumps(told).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def echo(self):
            self.send_response(101)
            self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", self.headers["Upgrade"])
            self.end_headers()
            while data := self.rfile.read1(4096):
                self.wfile.write(data)
            self.close_connection = True

        def log_message(self, *_):
            pass

    # As OpenShift's Services have it, and as the Route says.
    names = "DNS:secure-backend.default.svc,DNS:pass.apps.fairway.localhost"
    key, certificate, _ = certified(directory, "backend", names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    servers_of_it = [http.server.ThreadingHTTPServer((HOST, port), Echo) for port in [BACKEND_PORT, SECURE_BACKEND_PORT]]
    # The handshake is for the thread of the connection.
    servers_of_it[1].socket = context.wrap_socket(servers_of_it[1].socket, server_side=True, do_handshake_on_connect=False)
    for server in servers_of_it:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        for server in servers_of_it:
            server.shutdown()


def certified(directory, name, names):
    """A key, and a certificate of an authority made for it."""
    key, certificate, authority = (directory / f"{name}{what}" for what in [".key", ".crt", "-ca.crt"])
    new = ["-newkey", "rsa:2048", "-nodes"]
    extensions = directory / f"{name}.ext"
    extensions.write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n")
    for command in [
        ["req", "-x509", *new, "-days", "1", "-subj", f"/CN={name}-ca", "-keyout", directory / f"{name}-ca.key", "-out", authority],
        ["req", *new, "-subj", f"/CN={name}", "-keyout", key, "-out", directory / f"{name}.csr"],
        ["x509", "-req", "-days", "1", "-in", directory / f"{name}.csr", "-CA", authority, "-CAkey", directory / f"{name}-ca.key",
         "-CAcreateserial", "-extfile", extensions, "-out", certificate],
    ]:
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    return key, certificate, authority


@contextlib.contextmanager
def provider(options, directory):
    """The OIDC provider, with a certificate of an authority of its own."""
    key, certificate, authority = certified(directory, "oidc", "IP:127.0.0.1")
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
        yield {**next(json.loads(line) for line in running.stdout if line.startswith("{")), "process": running}
    finally:
        running.terminate()
        running.wait()


if __name__ == "__main__":
    main()
