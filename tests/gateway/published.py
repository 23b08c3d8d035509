"""What is published as the command line and others than browsers see it: names, certificates, and the people of the platform's own realms."""

import json
import os
import pathlib
import shutil
import socket
import ssl
import struct
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
DNS = ("127.0.0.1", 10053)
SECURE, OWN = "secure.apps.fairway.localhost", "www.shop.example"
PORT = 8443
NOERROR, NXDOMAIN = 0, 3
PASSWORD = "correct horse battery"
# Takes the place of the machine's stores of authorities, for one command and what it starts.
APART = """
mount -t tmpfs none /usr/local/share/ca-certificates
cp -a /etc/ssl/certs "$1" && mount --bind "$1/certs" /etc/ssl/certs
shift; exec "$@"
"""


class Published:
    def __init__(self, flow, binary, directory, host, step):
        self.flow, self.binary, self.directory, self.host, self.step = flow, str(binary.resolve()), directory, host, step

    # What the steps are made of.

    def fairway(self, *words, code=0, stdin=""):
        environment = {**os.environ, "KUBECONFIG": str(self.directory / "data" / "kubeconfig"), "FAIRWAY_DATA": str(self.directory / "data"),
                       "HOME": str(self.directory), "XDG_STATE_HOME": str(self.directory / "state")}
        found = subprocess.run([self.binary, *words], input=stdin, capture_output=True, text=True, env=environment, timeout=60)
        assert found.returncode == code, (words, found.returncode, found.stdout, found.stderr)
        return found.stdout

    def listed(self, what):
        return json.loads(self.fairway("gateway", what, "-o", "json"))["items"]

    def ask(self, **request):
        return self.flow.ask(host=SECURE, port=PORT, **request)

    def expect(self, status, **request):
        answer = self.ask(**request)
        assert answer["status"] == status, answer

    # The steps.

    def explained(self):
        """While the AuthPolicy of the flow is enforced: what would become of requests, and that they are not sent."""
        address = "http://api.apps.fairway.localhost:8080/hello"
        refused = self.fairway("gateway", "explain", "GET", address, code=1)
        assert "✗ Policy   AuthPolicy/default/api" in refused and "answer: 401" in refused, refused
        key = ["-H", "Authorization: APIKEY secret-of-alice"]
        passed = self.fairway("gateway", "explain", "GET", address, *key)
        assert "✓ Route    HTTPRoute default/api" in passed and "Backend" in passed and "✗" not in passed, passed
        # A header may come twice, as it may in a request.
        twice = self.fairway("gateway", "explain", "GET", address, "-H", "X-Forwarded-For: 192.0.2.1", "-H", "x-forwarded-for: 192.0.2.2", *key)
        assert "✗" not in twice, twice
        nobody = self.fairway("gateway", "explain", "GET", "http://nobody.example:8080/", "-o", "json", code=1)
        assert json.loads(nobody)["kind"] == "Explanation", nobody
        print("  explain tells which policy refuses, and what passes")

    def limits(self):
        """After the RateLimitPolicy of the flow was used up."""
        found = self.listed("limits")
        assert any(it["count"] >= 5 for it in found), found
        head, *rows = self.fairway("gateway", "limits").splitlines()
        assert head.split() == ["COUNTER", "COUNT", "RESET"] and len(rows) == len(found), (head, rows)
        print("  limits shows how far they are used up")

    def run(self):
        self.flow.apply("published.yaml")
        self.flow.wait("tlspolicy/secure", "Enforced")
        self.certificates()
        self.step("a name is known as soon as its route is accepted", lambda: self.expect_name(SECURE, NOERROR, [self.host]))
        self.expect_name("nobody.apps.fairway.localhost", NXDOMAIN, [])
        assert not self.resolve(OWN)[1], "a name that is not the platform's was given away without a DNSPolicy"
        self.flow.apply("dns.yaml")
        self.flow.wait("dnspolicy/secure", "Enforced")
        self.step("another one with its DNSPolicy", lambda: self.expect_name(OWN, NOERROR, [self.host]))
        self.flow.kubectl_run("delete", "dnspolicy/secure")
        self.step("and no longer than that", lambda: self.expect_no(OWN))
        self.routes()
        self.own_realm()
        self.trust()
        self.flow.kubectl_run("delete", "authpolicy/secure", "tlspolicy/secure", "httproute/secure", "gateway/secure")

    def certificates(self):
        for name in [SECURE, OWN]:
            self.step(f"the certificate of the TLSPolicy is shown for {name}", lambda name=name: self.expect_certificate(name))
        found = {it["secret"]: it for it in self.listed("certs")}
        assert SECURE in found["below-tls"]["names"] and OWN in found["own-tls"]["names"], found
        assert "default/below-tls" in self.fairway("gateway", "certs", "-o", "name").split()
        print("  certs lists them")

    def expect_certificate(self, name):
        context = ssl.create_default_context(cafile=self.flow.authority)
        try:
            with socket.create_connection((self.host, PORT), 5) as plain, context.wrap_socket(plain, server_hostname=name) as secure:
                names = secure.getpeercert()["subjectAltName"]
        except OSError as error:
            raise AssertionError(error) from None
        assert ("DNS", name) in names, names

    def routes(self):
        hosts = {(it["host"], it["port"], it["name"]) for it in self.listed("routes")}
        assert {(SECURE, PORT, "secure"), ("api.apps.fairway.localhost", 8080, "api")} <= hosts, hosts
        shown = self.fairway("gateway", "routes")
        assert f"https://{SECURE}:{PORT}" in shown, shown
        print("  routes lists what is published")

    def own_realm(self):
        """A policy names a realm of this installation; whoever is disabled or signed out there is out here."""
        self.fairway("org", "create", "acme")
        self.fairway("user", "create", "alice", "--org", "acme", "--password-stdin", stdin=PASSWORD + "\n")
        git = json.loads(self.fairway("status", "-o", "json"))["git"]
        issuer = git.replace("https://git.", "https://id.") + "/realms/acme"
        self.flow.apply_text((HERE / "realm.yaml").read_text().replace("ISSUER", issuer))
        self.flow.wait("authpolicy/secure", "Enforced")
        self.step("without a token nobody passes", lambda: self.expect(401))
        token = self.token()
        # Whoever signs in first makes the keys of the realm; his token counts at once.
        self.expect(200, authorization=f"Bearer {token}")
        print("  a token of a realm of the platform passes, and the policy needs to call nobody")
        with self.websocket(token) as socket_of_alice:
            time.sleep(2)
            self.echoed(socket_of_alice)
            self.fairway("user", "disable", "alice", "--org", "acme")
            self.expect(401, authorization=f"Bearer {token}")
            print("  not once its user is disabled, at once")
            began = time.monotonic()
            assert self.rest(socket_of_alice) == b"", "something came"
            print(f"  and a WebSocket that had been open was closed after {time.monotonic() - began:.1f} s")
        self.fairway("user", "enable", "alice", "--org", "acme")
        token = self.token()
        self.expect(200, authorization=f"Bearer {token}")
        self.fairway("logout", "--org", "acme")
        self.expect(401, authorization=f"Bearer {token}")
        print("  nor when she has signed out")

    def websocket(self, token):
        """One that is open; what is said there comes back."""
        context = ssl.create_default_context(cafile=self.flow.authority)
        secure = context.wrap_socket(socket.create_connection((self.host, PORT), 10), server_hostname=SECURE)
        secure.sendall(f"GET /socket HTTP/1.1\r\nHost: {SECURE}:{PORT}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                       f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {'A' * 22}==\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            piece = secure.recv(4096)
            assert piece, head
            head += piece
        assert head.startswith(b"HTTP/1.1 101 "), head
        self.echoed(secure)
        return secure

    def echoed(self, secure):
        secure.sendall(b"hello")
        assert secure.recv(4096) == b"hello"

    def rest(self, secure):
        """What still comes until it is closed, which is soon and not by a reset."""
        secure.settimeout(10)
        return secure.recv(4096)

    def token(self):
        self.fairway("login", "--org", "acme", "--username", "alice", "--password-stdin", "--write", str(self.directory / "alice.kubeconfig"),
                     stdin=PASSWORD + "\n")
        session = next((self.directory / "state" / "fairway" / "sessions").glob("*acme.json"))
        return json.loads(session.read_text())["access_token"]

    def trust(self):
        """In stores of its own: the machine's are left alone."""
        printed = self.fairway("trust", "--print")
        assert printed == self.flow.authority.read_text(), printed
        if not shutil.which("update-ca-certificates"):
            print("  SKIPPED: trust, because this system has no update-ca-certificates")
            return
        ask = f"curl -s -o /dev/null --noproxy '*' --max-time 5 --resolve {OWN}:{PORT}:{self.host} https://{OWN}:{PORT}/"
        script = f"""
            {ask} && exit 11
            "$0" trust || exit 12
            {ask} || exit 13
            "$0" trust --uninstall || exit 14
            {ask} && exit 15
            exit 0
        """
        hidden = ["SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE"]
        environment = {name: value for name, value in os.environ.items() if name not in hidden} | {
            "FAIRWAY_DATA": str(self.directory / "data"), "HOME": str(self.directory)}
        stores = self.directory / "stores"
        stores.mkdir()
        found = subprocess.run(["unshare", "-m", "sh", "-ec", APART, "sh", str(stores), "sh", "-c", script, self.binary],
                               capture_output=True, text=True, env=environment, timeout=120)
        assert found.returncode == 0, (found.returncode, found.stdout, found.stderr)
        print("  trust makes this computer believe what is shown, and takes it back")

    # Names, by the protocol's own words.

    def expect_name(self, name, code, addresses):
        found = self.resolve(name)
        assert found == (code, addresses), (name, found)

    def expect_no(self, name):
        assert not self.resolve(name)[1], name

    def resolve(self, name):
        """The code of the answer, and the addresses in it."""
        labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
        question = struct.pack(">HHHHHH", 77, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", 1, 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(10)
            asking.sendto(question, DNS)
            try:
                answer = asking.recv(4096)
            except OSError as error:
                raise AssertionError(error) from None
        number, flags, _, answers, _, _ = struct.unpack(">HHHHHH", answer[:12])
        assert number == 77, answer
        at, found = len(question), []
        for _ in range(answers):
            # The name: labels, or a pointer to where they were.
            while answer[at] and answer[at] < 0xC0:
                at += 1 + answer[at]
            at += 2 if answer[at] >= 0xC0 else 1
            kind, _, _, length = struct.unpack(">HHIH", answer[at:at + 10])
            at += 10
            if kind == 1:
                found.append(socket.inet_ntoa(answer[at:at + length]))
            at += length
        return flags & 15, found
