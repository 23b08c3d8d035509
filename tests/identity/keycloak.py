"""People of a real Keycloak: it stands in for the realm of an organisation, by the authentication configuration that the how-to describes, and
the realm lets them in itself, by the button of its sign-in page.

    keycloak.py --fairway BINARY --tools .tools

Keycloak comes with `scripts/tools.sh keycloak` and needs a JRE. It runs in its development mode, on loopback, with the realm of
keycloak-realm.json.
"""

import argparse
import base64
import contextlib
import html
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

import requests

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "clients"))

import servers  # noqa: E402

PASSWORD = "correct horse battery"
CLIENT = "fairway-cli"
ORG = "acme"
LIMIT = 30
# A JVM that shares two cores with others takes its time, above all to put itself together at its first start.
KEYCLOAK_LIMIT = 600


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, required=True)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / ".tools")
    options = parser.parse_args()
    names_below_localhost_are_here()
    with tempfile.TemporaryDirectory(prefix="fairway-keycloak-") as scratch:
        directory = pathlib.Path(scratch)
        started = time.monotonic()
        with keycloak(options.tools.resolve() / "keycloak", directory) as issuer:
            step(f"Keycloak answers after {time.monotonic() - started:.0f} s")
            config = directory / "authentication.json"
            config.write_text(json.dumps(authentication(issuer, directory / "ca.crt")))
            with servers.fairway(options.fairway, directory, "--no-machines", "--no-gateway",
                                 "--authentication-config", str(config), "--webhook-allowed-hosts", "loopback") as kubeconfig:
                Flow(options, directory, kubeconfig, issuer).run()
        print(f"ok, {time.monotonic() - started:.0f} s")


def names_below_localhost_are_here():
    """Not every resolver knows RFC 6761."""
    before = socket.getaddrinfo

    def resolve(host, *arguments, **named):
        return before("127.0.0.1" if str(host).endswith(".localhost") else host, *arguments, **named)

    socket.getaddrinfo = resolve


def authentication(issuer, ca):
    """As docs/how-to/sign-in.md has it, for two audiences."""
    return {
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": issuer, "audiences": [CLIENT, "short-lived"], "audienceMatchPolicy": "MatchAny",
                       "certificateAuthority": ca.read_text()},
            "claimMappings": {
                "username": {"claim": "preferred_username", "prefix": f"{ORG}/"},
                "groups": {"claim": "groups", "prefix": f"{ORG}/"},
                "extra": [{"key": "authentication.fairway.dev/home", "valueExpression": f"'root:{ORG}'"},
                          {"key": "example.com/mail", "valueExpression": "claims.email"}],
            },
        }],
    }


def certificates(directory):
    """An authority, and what Keycloak shows."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=an authority",
            "-addext", "basicConstraints=critical,CA:TRUE")
    openssl("req", *key, "-keyout", "tls.key", "-out", "tls.csr", "-subj", "/CN=localhost")
    (directory / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", "tls.crt",
            "-days", "2", "-extfile", "names")


@contextlib.contextmanager
def keycloak(program, directory):
    """Yields the issuer."""
    certificates(directory)
    # It writes into its own directory.
    home = directory / "keycloak"
    shutil.copytree(program, home)
    (home / "data" / "import").mkdir(parents=True)
    shutil.copy(HERE / "keycloak-realm.json", home / "data" / "import" / f"{ORG}-realm.json")
    port = servers.free_port()
    base = f"https://localhost:{port}"
    # Its development mode listens without TLS, too, whatever it is told.
    command = [str(home / "bin" / "kc.sh"), "start-dev", "--import-realm", "--http-host=127.0.0.1",
               f"--http-port={servers.free_port()}", f"--https-port={port}", f"--hostname={base}", f"--https-certificate-file={directory / 'tls.crt'}",
               f"--https-certificate-key-file={directory / 'tls.key'}", "--cache=local"]
    log = directory / "keycloak.log"
    environment = {**os.environ, "JAVA_OPTS_APPEND": "-Djava.net.preferIPv4Stack=true"}
    with open(log, "wb") as output:
        # A group of its own: the script starts a JVM, and both are to end.
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, cwd=directory,
                                   start_new_session=True)
    issuer = f"{base}/realms/{ORG}"
    try:
        wait(lambda: running.poll() is not None or answers(issuer, directory), KEYCLOAK_LIMIT, log)
        assert running.poll() is None, log.read_text()[-3000:]
        yield issuer
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGTERM)
        try:
            running.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def answers(issuer, directory):
    try:
        return client(directory).get(f"{issuer}/.well-known/openid-configuration", timeout=5).status_code == 200
    except requests.exceptions.RequestException:
        return False


def client(directory):
    session = requests.Session()
    # Certificates and proxies that the machine is told to use are not for this.
    session.trust_env = False
    session.verify = str(directory / "ca.crt")
    return session


class Flow:
    def __init__(self, options, directory, kubeconfig, issuer):
        self.fairway = str(options.fairway.resolve())
        self.kubectl_program = str(options.tools.resolve() / "bin" / "kubectl")
        self.directory, self.admin, self.issuer = directory, kubeconfig, issuer
        self.log = directory / "fairway.log"
        wait(lambda: "Fairway is ready" in self.log.read_text(), LIMIT, self.log)
        self.run_fairway("org", "create", ORG)
        view = json.loads(self.kubectl(self.admin, "config", "view", "-o", "json", "--raw").stdout)
        self.workspace = ["--server", f"{view['clusters'][0]['cluster']['server']}/clusters/root:{ORG}"]

    def environment(self, home="home"):
        own = self.directory / home
        own.mkdir(exist_ok=True)
        return {**os.environ, "HOME": str(own), "XDG_STATE_HOME": str(own / "state"), "KUBECONFIG": str(self.admin),
                "FAIRWAY_DATA": str(self.directory / "data")}

    def run_fairway(self, *words, ok=True, home="home"):
        found = subprocess.run([self.fairway, *words], capture_output=True, text=True, env=self.environment(home), timeout=60)
        assert (found.returncode == 0) == ok, (words, found.returncode, found.stdout, found.stderr, self.log.read_text()[-2000:])
        return found

    def kubectl(self, kubeconfig, *words, ok=True):
        command = [self.kubectl_program, f"--kubeconfig={kubeconfig}", *words]
        found = subprocess.run(command, capture_output=True, text=True, env=self.environment(), timeout=60)
        assert (found.returncode == 0) == ok, (words, found.returncode, found.stdout, found.stderr, self.log.read_text()[-2000:])
        return found

    def whoami(self, kubeconfig):
        return json.loads(self.kubectl(kubeconfig, "auth", "whoami", "-o", "json").stdout)["status"]["userInfo"]

    def login(self, home, *words):
        """`fairway login` at Keycloak; the process, the address that it prints, and the kubeconfig that it will write."""
        kubeconfig = self.directory / f"{home}.kubeconfig"
        command = [self.fairway, "login", "--org", ORG, "--issuer", self.issuer, "--client-id", CLIENT, "--issuer-ca",
                   str(self.directory / "ca.crt"), "--write", str(kubeconfig), *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment(home))
        for line in process.stdout:
            if line.strip().startswith("https://"):
                return process, line.strip(), kubeconfig
        raise AssertionError(process.stderr.read())

    def form(self, browser, page, button=None, **fields):
        """Sends the form of one of Keycloak's pages, as a browser does: with what it has in it, and one button."""
        found = re.search(r'<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>', page.text, re.DOTALL)
        assert found, page.text
        action, inside = html.unescape(found.group(1)), found.group(2)
        form = {}
        for element in re.findall(r"<input[^>]*>", inside):
            kind, name, value = (attribute(element, it) for it in ["type", "name", "value"])
            if name and (kind == "hidden" or name == button):
                form[name] = value or ""
        return browser.post(urllib.parse.urljoin(page.url, action), data=form | fields, allow_redirects=False)

    def sign_in(self, browser, page, user):
        return self.form(browser, page, username=user, password=PASSWORD)

    def token(self, user, client_id):
        """An ID token without a browser, as a test of the API needs one."""
        form = {"grant_type": "password", "client_id": client_id, "username": user, "password": PASSWORD, "scope": "openid"}
        answer = client(self.directory).post(f"{self.issuer}/protocol/openid-connect/token", data=form)
        assert answer.status_code == 200, answer.text
        return answer.json()["id_token"]

    def api(self, token):
        """What the API answers to a token."""
        server = self.workspace[1]
        session = requests.Session()
        session.trust_env = False
        session.verify = str(self.directory / "data" / "pki" / "ca.crt")
        return session.get(f"{server}/api/v1/namespaces/default/configmaps", headers={"authorization": f"Bearer {token}"}).status_code

    def run(self):
        self.browser()
        self.rights()
        self.renewal()
        self.devices()
        self.refusals()
        self.logout()
        self.button()

    def browser(self):
        process, url, self.alice = self.login("alice", "--no-browser")
        try:
            browser = client(self.directory)
            page = browser.get(url)
            assert page.status_code == 200 and "password" in page.text, page.text
            sent = self.sign_in(browser, page, "alice")
            assert sent.status_code == 302, sent.text
            back = sent.headers["location"]
            assert back.startswith("http://127.0.0.1:"), back
            told = requests.get(back)
            assert told.status_code == 200 and "You are signed in" in told.text, told.text
            assert process.wait(LIMIT) == 0, process.stderr.read()
        finally:
            process.kill()
        said = process.stdout.read()
        assert "Signed in as acme/alice." in said and "fairway-acme-oidc" in said, said
        user = self.whoami(self.alice)
        assert user["username"] == "acme/alice" and "acme/developers" in user["groups"], user
        assert user["extra"]["example.com/mail"] == ["alice@example.com"], user
        step("fairway login at Keycloak by a browser with PKCE: kubectl auth whoami shows the mapped name, groups and mail")

    def rights(self):
        read = ["get", "configmaps", "-n", "default"]
        refused = self.kubectl(self.alice, *read, ok=False)
        assert "forbidden" in refused.stderr.lower() and 'User "acme/alice"' in refused.stderr, refused
        self.kubectl(self.admin, *self.workspace, "create", "clusterrolebinding", "devs", "--clusterrole=view",
                     "--group=acme/developers")
        self.kubectl(self.alice, *read)
        assert self.api(self.token("alice", CLIENT)) == 200
        assert self.api(self.token("bob", CLIENT)) == 403, "bob is in another group"
        elsewhere = self.workspace[1].rsplit(":", 1)[0]
        refused = self.kubectl(self.alice, "--server", elsewhere, *read, ok=False)
        assert "logged in" in refused.stderr, refused
        step("rights follow the groups that Keycloak says, in the workspace of the organisation and nowhere else")

    def renewal(self):
        session = next((self.directory / "alice" / "state" / "fairway" / "sessions").glob("*.json"))
        before = json.loads(session.read_text())
        assert session.stat().st_mode & 0o77 == 0 and before["client_id"] == CLIENT, before
        # As if the time were up: the plugin has to bring another one.
        session.write_text(json.dumps(before | {"expires": 0}))
        assert self.whoami(self.alice)["username"] == "acme/alice"
        after = json.loads(session.read_text())
        assert after["id_token"] != before["id_token"] and after["expires"] == claims(after["id_token"])["exp"], after
        step("the plugin of kubectl renews the ID token")

    def devices(self):
        process, url, kubeconfig = self.login("bob", "--device")
        try:
            browser = client(self.directory)
            page = browser.get(url)
            sent = self.sign_in(browser, page, "bob")
            assert sent.status_code == 302, sent.text
            page = browser.get(sent.headers["location"])
            allowed = self.form(browser, page, button="accept")
            assert allowed.status_code in (200, 302), allowed.text
            if allowed.status_code == 302:
                browser.get(allowed.headers["location"])
            assert process.wait(LIMIT) == 0, process.stderr.read()
        finally:
            process.kill()
        user = self.whoami(kubeconfig)
        assert user["username"] == "acme/bob" and "acme/visitors" in user["groups"], user
        step("fairway login at Keycloak by a code that is allowed on another device")

    def refusals(self):
        assert self.api(self.token("alice", "elsewhere")) == 401
        step("a token for another audience is refused")
        token = self.token("alice", "short-lived")
        assert self.api(token) == 200
        left = claims(token)["exp"] - time.time()
        wait(lambda: self.api(token) == 401, left + LIMIT, self.log)
        assert time.time() > claims(token)["exp"], "it was refused too soon"
        step("a token that has ended is refused")
        head, payload, signature = self.token("bob", CLIENT).split(".")
        forged = encoded(claims(f"{head}.{payload}.{signature}") | {"groups": ["developers"]})
        assert self.api(f"{head}.{forged}.{signature}") == 401
        step("a token that somebody has changed is refused")
        words = ["login", "--org", ORG, "--issuer", self.issuer, "--client-id", CLIENT, "--no-browser"]
        unknown = self.run_fairway(*words, ok=False)
        assert "could not be asked" in unknown.stderr, unknown
        wrong = self.run_fairway(*words[:4], self.issuer + "x", *words[5:], "--issuer-ca", str(self.directory / "ca.crt"), ok=False)
        assert "is not there" in wrong.stderr, wrong
        step("an issuer that nobody vouches for, and one that is not there, are told")

    def logout(self):
        words = ["logout", "--org", ORG, "--issuer", self.issuer, "--client-id", CLIENT]
        session = next((self.directory / "alice" / "state" / "fairway" / "sessions").glob("*.json"))
        refresh = json.loads(session.read_text())["refresh_token"]
        assert "Signed out of" in self.run_fairway(*words, home="alice").stdout
        gone = self.kubectl(self.alice, "auth", "whoami", ok=False)
        assert "fairway login" in gone.stderr, gone
        form = {"grant_type": "refresh_token", "client_id": CLIENT, "refresh_token": refresh}
        again = client(self.directory).post(f"{self.issuer}/protocol/openid-connect/token", data=form)
        assert again.status_code == 400, again.text
        step("fairway logout ends the session at Keycloak, too")


    def button(self):
        provider = {"name": "keycloak", "displayName": "Keycloak", "issuer": self.issuer, "clientID": "fairway-realm",
                    "certificateAuthority": (self.directory / "ca.crt").read_text()}
        for kind, name, spec in [("Realm", "realm", {"identityProviders": [provider]}),
                                 ("Credential", "provider.keycloak", {"clientSecret": "a secret: 100%"}),
                                 ("Group", "developers", {"externalGroups": ["keycloak:/developers"]}),
                                 ("Group", "visitors", {"externalGroups": ["keycloak:/visitors"]})]:
            file = self.directory / f"{kind}-{name}.json"
            file.write_text(json.dumps({"apiVersion": "fairway.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}))
            self.kubectl(self.admin, *self.workspace, "create", "-f", str(file))
        trusted = self.directory / "trusted.crt"
        trusted.write_text((self.directory / "ca.crt").read_text() + (self.directory / "data" / "pki" / "ca.crt").read_text())
        portal = json.loads(self.run_fairway("status", "-o", "json").stdout)["git"].replace("https://git.", "https://portal.")
        # The second time as the first.
        for _ in range(2):
            browser = client(self.directory)
            browser.verify = str(trusted)
            page = browser.get(f"{portal}/auth/login?org={ORG}")
            found = re.search(r'href="(external/[^"]*)">Sign in with Keycloak</a>', page.text)
            assert found, page.text
            page = browser.get(urllib.parse.urljoin(page.url, html.unescape(found.group(1))))
            sent = self.sign_in(browser, page, "alice")
            assert sent.status_code == 302 and "/external/keycloak/callback?" in sent.headers["location"], sent.text
            browser.get(sent.headers["location"])
            session = browser.get(f"{portal}/auth/session")
            assert session.status_code == 200 and session.json()["user"]["name"] == "acme/alice", session.text
            members = {}
            for group in ["developers", "visitors"]:
                read = self.kubectl(self.admin, *self.workspace, "get", "groups.fairway.dev", group, "-o", "json")
                members[group] = json.loads(read.stdout)["spec"].get("members", [])
            assert members == {"developers": ["alice"], "visitors": []}, members
        step("the button of a realm leads to Keycloak and back to the portal, as a user of the realm in the groups that follow")


def attribute(element, name):
    found = re.search(rf'\b{name}="([^"]*)"', element)
    return html.unescape(found.group(1)) if found else None


def claims(token):
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def encoded(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def wait(condition, limit, log):
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"it takes too long: {log.read_text()[-3000:]}"
        time.sleep(0.2)


def step(text):
    print(f"  {text}", flush=True)


if __name__ == "__main__":
    main()
