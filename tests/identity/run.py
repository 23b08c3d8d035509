"""Sign-in as people and programs meet it: real OIDC clients, kubectl with its plugin, git, and those who try to get in.

    run.py --fairway BINARY --tools .tools

npm's openid-client and Python's authlib are the clients; they come with `scripts/tools.sh oidc python`.
"""

import argparse
import base64
import hashlib
import hmac
import html
import json
import os
import pathlib
import re
import secrets
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse

import requests
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebKey, jwt

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "clients"))

import servers  # noqa: E402

PASSWORD = "correct horse battery"
LIMIT = 30


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, required=True)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / ".tools")
    options = parser.parse_args()
    names_below_localhost_are_here()
    with tempfile.TemporaryDirectory(prefix="fairway-identity-") as scratch:
        directory = pathlib.Path(scratch)
        started = time.monotonic()
        with servers.fairway(options.fairway, directory, "--no-machines", "--no-gateway") as kubeconfig:
            Flow(options, directory, kubeconfig).run()
        print(f"ok, {time.monotonic() - started:.0f} s")


def names_below_localhost_are_here():
    """Not every resolver knows RFC 6761."""
    before = socket.getaddrinfo

    def resolve(host, *arguments, **named):
        return before("127.0.0.1" if str(host).endswith(".localhost") else host, *arguments, **named)

    socket.getaddrinfo = resolve


class Flow:
    def __init__(self, options, directory, kubeconfig):
        self.fairway = str(options.fairway.resolve())
        self.tools = options.tools.resolve()
        self.directory = directory
        self.admin = kubeconfig
        self.log = directory / "fairway.log"
        # The API answers a moment before the server says that it is ready.
        wait(lambda: "Fairway is ready" in self.log.read_text())
        self.git = json.loads(self.run_fairway("status", "-o", "json").stdout)["git"]
        self.base = self.git.replace("https://git.", "https://id.")

    # What the steps are made of.

    def environment(self, home="home"):
        own = self.directory / home
        own.mkdir(exist_ok=True)
        return {**os.environ, "HOME": str(own), "XDG_STATE_HOME": str(own / "state"), "NODE_EXTRA_CA_CERTS": str(self.ca_path()),
                "KUBECONFIG": "", "GIT_TERMINAL_PROMPT": "0", "GIT_SSL_CAINFO": str(self.ca_path()), "GIT_CONFIG_NOSYSTEM": "1"}

    def ca_path(self):
        return self.directory / "data" / "pki" / "ca.crt"

    def run_fairway(self, *words, stdin="", ok=True, home="home", kubeconfig=None):
        command = [self.fairway, *words]
        environment = self.environment(home) | {"FAIRWAY_DATA": str(self.directory / "data"), "KUBECONFIG": str(kubeconfig or self.admin)}
        found = subprocess.run(command, input=stdin, capture_output=True, text=True, env=environment, timeout=60)
        assert (found.returncode == 0) == ok, (words, found.returncode, found.stdout, found.stderr)
        return found

    def kubectl(self, kubeconfig, *words, ok=True, stdin=""):
        command = [str(self.tools / "bin" / "kubectl"), f"--kubeconfig={kubeconfig}", *words]
        found = subprocess.run(command, input=stdin, capture_output=True, text=True, env=self.environment(), timeout=60)
        if ok is not None:
            assert (found.returncode == 0) == ok, (words, found.returncode, found.stdout, found.stderr)
        return found

    def issuer(self, realm):
        return f"{self.base}/realms/{realm}"

    def browser(self):
        session = requests.Session()
        # Certificates and proxies that the machine is told to use are not for this.
        session.trust_env = False
        session.verify = str(self.ca_path())
        return session

    def login(self, realm, user, password, home):
        """A kubeconfig of a user, by the command line."""
        kubeconfig = self.directory / f"{home}.kubeconfig"
        self.run_fairway("login", "--org", realm, "--username", user, "--password-stdin", "--write", str(kubeconfig),
                         stdin=password + "\n", home=home)
        return kubeconfig

    # The steps.

    def run(self):
        self.first_administrator()
        self.organisations()
        self.rights_follow_groups()
        self.node_client()
        self.python_client()
        self.codes_and_tokens()
        self.sign_in_page()
        self.devices()
        # Before those that guess wrong, too: they all come from one address, which waits after so many.
        self.guessing()
        self.browsers()
        self.sessions_are_objects()
        self.one_time_codes()
        self.own_account()
        self.codes_are_wanted()
        self.verbs()
        self.names_are_free()
        self.git_over_https()
        self.renewed()
        self.disabled()
        self.at_rest()

    def first_administrator(self):
        text = self.log.read_text()
        found = re.findall(r"password\s+(\S+)   \(shown this once", text)
        assert len(found) == 1, text
        self.admin_password = found[0]
        self.root = self.login("root", "admin", self.admin_password, "admin")
        user = json.loads(self.kubectl(self.root, "auth", "whoami", "-o", "json").stdout)["status"]["userInfo"]
        assert user["username"] == "root/admin", user
        assert "root/everyone" in user["groups"] and not any(it.startswith("system:masters") for it in user["groups"]), user
        self.kubectl(self.root, "get", "secrets", "-A")
        said = self.run_fairway("whoami", home="admin", kubeconfig=self.root).stdout
        assert "root/admin" in said, said
        step("the first start makes one administrator, whose password works")

    def organisations(self):
        for name in ["acme", "beta"]:
            self.run_fairway("org", "create", name, home="admin", kubeconfig=self.root)
        assert "acme" in self.run_fairway("org", "list").stdout
        for name in ["alice", "bob"]:
            self.run_fairway("user", "create", name, "--org", "acme", "--email", f"{name}@example.com", "--password-stdin",
                             stdin=PASSWORD + "\n")
        weak = self.run_fairway("user", "create", "eve", "--org", "acme", "--password-stdin", stdin="short\n", ok=False)
        assert "at least 12 characters" in weak.stderr, weak
        self.run_fairway("group", "create", "developers", "--org", "acme")
        self.run_fairway("user", "create", "alice", "--org", "beta", "--password-stdin", stdin=PASSWORD + "\n")
        shown = json.loads(self.run_fairway("org", "show", "acme", "-o", "json").stdout)
        assert shown["issuer"] == self.issuer("acme") and shown["users"] == 2, shown
        made = self.run_fairway("oidc-client", "create", "web", "--org", "acme", "--redirect-uri", "https://app.example/cb",
                                "--post-logout-redirect-uri", "https://app.example/").stdout
        self.secret = re.search(r"Secret: (\S+)", made).group(1)
        self.run_fairway("oidc-client", "create", "spa", "--org", "acme", "--public", "--redirect-uri", "http://127.0.0.1/cb",
                         "--device-flow")
        self.alice = self.login("acme", "alice", PASSWORD, "alice")
        user = json.loads(self.kubectl(self.alice, "auth", "whoami", "-o", "json").stdout)["status"]["userInfo"]
        assert user["username"] == "acme/alice", user
        step("organisations have people, groups and programs of their own")

    def workspace(self, path):
        return ["--server", f"{self.server()}/clusters/{path}"]

    def server(self):
        config = json.loads(self.kubectl(self.admin, "config", "view", "-o", "json", "--raw").stdout)
        return config["clusters"][0]["cluster"]["server"]

    def rights_follow_groups(self):
        self.run_fairway("workspace", "use", ":root:acme")
        self.run_fairway("workspace", "create", "team", "--type", "root:universal")
        self.run_fairway("workspace", "use", ":root")
        read = ["get", "configmaps", "-n", "default"]
        for path in ["root:acme", "root:acme:team"]:
            self.kubectl(self.admin, *self.workspace(path), "create", "clusterrolebinding", "devs", "--clusterrole=view",
                         "--group=acme/developers")
            refused = self.kubectl(self.alice, *self.workspace(path), *read, ok=False)
            assert "forbidden" in refused.stderr.lower(), refused
        self.kubectl(self.admin, *self.workspace("root:beta"), "create", "clusterrolebinding", "others", "--clusterrole=cluster-admin",
                     "--group=acme/developers", "--user=acme/alice")
        self.run_fairway("group", "add", "developers", "alice", "--org", "acme")
        for path in ["root:acme", "root:acme:team"]:
            self.kubectl(self.alice, *self.workspace(path), *read)
        step("who joins a group has its rights at once, in every workspace of the organisation")
        for path in ["root:beta", "root"]:
            refused = self.kubectl(self.alice, *self.workspace(path), *read, ok=False)
            assert "logged in" in refused.stderr or "nauthorized" in refused.stderr, refused
        step("in another organisation nobody is known, whatever its roles say")
        self.run_fairway("user", "create", "rita", "--org", "root", "--password-stdin", stdin=PASSWORD + "\n")
        rita = self.login("root", "rita", PASSWORD, "rita")
        self.kubectl(self.admin, *self.workspace("root:acme"), "create", "clusterrolebinding", "everybody", "--clusterrole=view",
                     "--group=system:authenticated")
        refused = self.kubectl(rita, *self.workspace("root:acme"), *read, ok=False)
        assert "cannot access workspace" in refused.stderr, refused
        self.kubectl(self.admin, "create", "clusterrole", "visit-acme", "--verb=access", "--resource=workspaces.tenancy.kcp.io",
                     "--resource-name=acme")
        self.kubectl(self.admin, "create", "clusterrolebinding", "visit-acme", "--clusterrole=visit-acme", "--user=root/rita")
        self.kubectl(rita, *self.workspace("root:acme"), *read)
        refused = self.kubectl(rita, *self.workspace("root:acme:team"), *read, ok=False)
        assert "cannot access workspace" in refused.stderr, refused
        self.kubectl(self.admin, *self.workspace("root:acme"), "delete", "clusterrolebinding", "everybody")
        step("users of root's realm are let into a workspace by access in its parent, and not otherwise")
        self.kubectl(self.admin, *self.workspace("root:acme"), "create", "configmap", "hello", "-n", "default")
        command = [str(self.tools / "bin" / "kubectl"), f"--kubeconfig={self.alice}", *self.workspace("root:acme"), "get", "--raw",
                   "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=600"]
        watch = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.environment())
        try:
            assert watch.stdout.readline(), "the watch says nothing"
            self.run_fairway("group", "remove", "developers", "alice", "--org", "acme")
            refused = self.kubectl(self.alice, *self.workspace("root:acme"), *read, ok=False)
            assert "forbidden" in refused.stderr.lower(), refused
            watch.wait(LIMIT)
        finally:
            watch.kill()
        step("who leaves it has them no longer, and open watches end")

    def node_client(self):
        script = HERE / "client.mjs"
        work = self.directory / "node"
        work.mkdir()
        (work / "node_modules").symlink_to(self.tools / "oidc" / "node_modules")
        (work / "client.mjs").write_text(script.read_text())
        settings = {"issuer": self.issuer("acme"), "user": "alice", "password": PASSWORD, "secret": self.secret}
        found = subprocess.run(["node", "client.mjs", json.dumps(settings)], cwd=work, capture_output=True, text=True,
                               env=self.environment(), timeout=120)
        assert found.returncode == 0, (found.stdout, found.stderr, self.log.read_text()[-2000:])
        for line in found.stdout.splitlines():
            step(f"openid-client: {line}")

    def authorize(self, client, redirect, browser=None, user="alice", password=PASSWORD, realm="acme", **more):
        """A sign-in by the form; the address that the browser is sent to, and the page otherwise."""
        browser = browser or self.browser()
        query = {"response_type": "code", "client_id": client, "redirect_uri": redirect, "scope": "openid profile email groups",
                 "state": "st", **more}
        url = f"{self.issuer(realm)}/authorize?" + urllib.parse.urlencode(query)
        page = browser.get(url, allow_redirects=False)
        if page.status_code != 200 or user is None:
            return page
        return self.send_form(browser, url, page, username=user, password=password)

    def send_form(self, browser, url, page, **fields):
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
        form = {name: html.unescape(value) for name, value in hidden.items()} | fields
        return browser.post(url, data=form, allow_redirects=False)

    def token(self, realm="acme", auth=None, **form):
        return self.browser().post(f"{self.issuer(realm)}/token", data=form, auth=auth)

    def code(self, browser=None, **more):
        """A code for the client spa, and its verifier."""
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        answer = self.authorize("spa", "http://127.0.0.1:4711/cb", browser, code_challenge=challenge,
                                code_challenge_method="S256", **more)
        assert answer.status_code == 303, (answer.status_code, answer.text)
        query = urllib.parse.parse_qs(urllib.parse.urlparse(answer.headers["location"]).query)
        return query["code"][0], verifier

    def redeem(self, code, verifier, **more):
        form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier, "client_id": "spa",
                "redirect_uri": "http://127.0.0.1:4711/cb", **more}
        return self.token(**form)

    def python_client(self):
        metadata = self.browser().get(self.issuer("acme") + "/.well-known/openid-configuration").json()
        client = OAuth2Session("web", self.secret, scope="openid profile email groups", redirect_uri="https://app.example/cb",
                               code_challenge_method="S256", token_endpoint_auth_method="client_secret_basic")
        client.verify, client.trust_env = str(self.ca_path()), False
        verifier = secrets.token_urlsafe(48)
        url, state = client.create_authorization_url(metadata["authorization_endpoint"], code_verifier=verifier, nonce="abc")
        browser = self.browser()
        answer = self.send_form(browser, url, browser.get(url), username="bob", password=PASSWORD)
        assert answer.status_code == 303, answer.text
        tokens = client.fetch_token(metadata["token_endpoint"], authorization_response=answer.headers["location"], state=state,
                                    code_verifier=verifier)
        keys = JsonWebKey.import_key_set(self.browser().get(metadata["jwks_uri"]).json())
        claims = jwt.decode(tokens["id_token"], keys)
        claims.validate()
        assert claims["iss"] == self.issuer("acme") and claims["aud"] == "web" and claims["nonce"] == "abc", claims
        assert claims["preferred_username"] == "bob" and claims["email"] == "bob@example.com" and claims["groups"] == [], claims
        self.run_fairway("group", "add", "developers", "bob", "--org", "acme")
        assert client.get(metadata["userinfo_endpoint"]).json()["groups"] == ["developers"]
        about = self.browser().post(metadata["introspection_endpoint"], data={"token": tokens["access_token"]}, auth=("web", self.secret))
        assert about.json()["active"] and about.json()["username"] == "bob", about.text
        # A program that was not given access to the API has none, even with its user's token.
        refused = self.api(tokens["access_token"])
        assert refused == 401, refused
        assert self.api(tokens["id_token"]) == 401
        out = browser.get(metadata["end_session_endpoint"], allow_redirects=False, params={
            "id_token_hint": tokens["id_token"], "post_logout_redirect_uri": "https://app.example/", "state": "x"})
        assert out.status_code == 303 and out.headers["location"] == "https://app.example/?state=x", (out.status_code, out.text)
        assert client.get(metadata["userinfo_endpoint"]).status_code == 401
        step("authlib: code and PKCE with a secret, claims, introspection, logout")

    def api(self, token, path="root:acme"):
        answer = self.browser().get(f"{self.server()}/clusters/{path}/api/v1/namespaces/default/configmaps",
                                    headers={"Authorization": f"Bearer {token}"})
        return answer.status_code

    def codes_and_tokens(self):
        code, verifier = self.code()
        for wrong in [{"code_verifier": "x" * 50}, {"redirect_uri": "http://127.0.0.1:4712/cb"}]:
            stolen, own = self.code()
            assert self.redeem(stolen, own, **wrong).json()["error"] == "invalid_grant"
            assert self.redeem(stolen, own).json()["error"] == "invalid_grant", "a code that was misused is void"
        other, own = self.code()
        by_other = self.token(auth=("web", self.secret), grant_type="authorization_code", code=other, code_verifier=own,
                              redirect_uri="http://127.0.0.1:4711/cb")
        assert by_other.json()["error"] == "invalid_grant", by_other.text
        first = self.redeem(code, verifier)
        assert first.status_code == 200, first.text
        access = first.json()["access_token"]
        info = lambda token: self.browser().get(self.issuer("acme") + "/userinfo", headers={"Authorization": f"Bearer {token}"}).status_code
        assert info(access) == 200
        again = self.redeem(code, verifier)
        assert again.status_code == 400 and again.json()["error"] == "invalid_grant", again.text
        assert info(access) == 401, "the tokens of a code that came twice are void"
        step("a code counts once, for its program and its place; a second time ends the session")

        tokens = self.redeem(*self.code()).json()
        refresh = lambda token: self.token(grant_type="refresh_token", refresh_token=token, client_id="spa")
        second = refresh(tokens["refresh_token"])
        assert second.status_code == 200, second.text
        assert refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
        assert refresh(second.json()["refresh_token"]).json()["error"] == "invalid_grant"
        assert info(second.json()["access_token"]) == 401
        step("a refresh token counts once; a second time ends the session")

        header, claims, signature = self.redeem(*self.code()).json()["access_token"].split(".")
        changed = lambda part, **more: base64.urlsafe_b64encode(json.dumps(json.loads(base64.urlsafe_b64decode(part + "==")) | more).encode()).rstrip(b"=").decode()
        for what, token in {
            "another user": f"{header}.{changed(claims, preferred_username='bob')}.{signature}",
            "another realm": f"{header}.{changed(claims, iss=self.issuer('beta'))}.{signature}",
            "no signature": f"{changed(header, alg='none')}.{claims}.",
            "a shared secret": f"{changed(header, alg='HS256')}.{claims}.{signature}",
        }.items():
            assert info(token) == 401 and self.api(token) == 401, what
        step("tokens that were changed are refused")

    def sign_in_page(self):
        challenge = {"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256"}
        for redirect in ["https://evil.example/cb", "http://127.0.0.1:1/other", "http://127.0.0.1:1@evil.example/cb", "//evil.example",
                         "http://localhost:1/cb", ""]:
            answer = self.authorize("spa", redirect, user=None, **challenge)
            assert answer.status_code == 400 and "location" not in answer.headers, (redirect, answer.status_code)
        answer = self.authorize("nobody", "https://evil.example/cb", user=None)
        assert answer.status_code == 400 and "location" not in answer.headers
        answer = self.authorize("spa", "http://127.0.0.1:1/cb", user=None)
        assert answer.status_code == 303 and "error=invalid_request" in answer.headers["location"], "PKCE is not optional"
        out = self.browser().get(self.issuer("acme") + "/logout?client_id=web&post_logout_redirect_uri=https://evil.example/",
                                 allow_redirects=False)
        assert "location" not in out.headers, out.headers
        step("no browser is sent to an address that is not registered")

        browser = self.browser()
        page = self.authorize("spa", "http://127.0.0.1:1/cb", browser, user=None, **challenge)
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "script" not in policy, policy
        assert page.headers["x-frame-options"] == "DENY" and page.headers["cache-control"] == "no-store"
        assert "<script" not in page.text and '<html lang="en">' in page.text
        for field in ["username", "password", "otp"]:
            assert f'<label for="{field}">' in page.text
        # XSS through what a program sends, and a form that did not come from the page.
        hostile = self.authorize("spa", "http://127.0.0.1:1/cb", user=None, login_hint='"><script>alert(1)</script>', **challenge)
        assert "<script" not in hostile.text, hostile.text
        without = self.browser().post(page.url, data={"username": "alice", "password": PASSWORD}, allow_redirects=False)
        assert without.status_code == 403, without.status_code
        foreign = browser.post(page.url, data={"username": "alice", "password": PASSWORD}, headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403, foreign.status_code
        answer = self.send_form(browser, page.url, page, username="alice", password=PASSWORD)
        assert answer.status_code == 303, answer.text
        cookie = answer.headers["set-cookie"]
        assert all(it in cookie for it in ["HttpOnly", "Secure", "SameSite=Lax", "; Path=/;", "__Host-fairway-session-acme="]), cookie
        # Who is signed in is not asked again, unless the program wants it.
        assert self.authorize("spa", "http://127.0.0.1:2/cb", browser, user=None, **challenge).status_code == 303
        assert self.authorize("spa", "http://127.0.0.1:2/cb", browser, user=None, prompt="login", **challenge).status_code == 200
        silent = self.authorize("spa", "http://127.0.0.1:2/cb", user=None, prompt="none", **challenge)
        assert "error=login_required" in silent.headers["location"]
        assert self.browser().get(self.issuer("nowhere") + "/.well-known/openid-configuration").status_code == 404
        step("the sign-in page needs no script, is in no frame, and takes its own forms alone")

    def devices(self):
        kubeconfig = self.directory / "device.kubeconfig"
        environment = self.environment("device") | {"FAIRWAY_DATA": str(self.directory / "data"), "KUBECONFIG": str(self.admin)}
        waiting = subprocess.Popen([self.fairway, "login", "--org", "acme", "--device", "--write", str(kubeconfig)], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        try:
            url = None
            while not url:
                line = waiting.stdout.readline()
                assert line, waiting.stderr.read()
                url = next((word for word in line.split() if word.startswith("https://")), None)
            browser = self.browser()
            device = self.issuer("acme") + "/device"
            wrong = browser.get(device + "?user_code=BBBB-BBBB")
            signed = self.send_form(browser, device, wrong, username="bob", password=PASSWORD)
            assert signed.status_code == 404 and "No device shows this code" in signed.text, signed.text
            page = browser.get(url)
            assert "wants to act as <strong>bob</strong>" in page.text, page.text
            # Nobody can allow a device for somebody else by a link or a form of another site.
            forged = browser.post(device, data={"user_code": url.rsplit("=")[-1], "decision": "allow"})
            assert forged.status_code == 403, forged.status_code
            allowed = self.send_form(browser, device, page, decision="allow")
            assert "The device is signed in" in allowed.text, allowed.text
            assert waiting.wait(LIMIT) == 0, waiting.stderr.read()
        finally:
            waiting.kill()
        user = json.loads(self.kubectl(kubeconfig, "auth", "whoami", "-o", "json").stdout)["status"]["userInfo"]
        assert user["username"] == "acme/bob" and "acme/developers" in user["groups"], user
        self.run_fairway("logout", "--org", "acme", home="device")
        gone = self.kubectl(kubeconfig, "auth", "whoami", ok=False)
        assert "fairway login" in gone.stderr, gone
        step("a device is signed in by a code that a person allows, and signed out")

    def browsers(self):
        """A page of a public client redeems its own code; and a request may come as a form."""
        origin = "https://spa.example:8443"
        self.run_fairway("oidc-client", "create", "page", "--org", "acme", "--public", "--redirect-uri", f"{origin}/cb")
        browser = self.browser()
        for path in ["token", "userinfo", "revoke"]:
            for asked, allowed in [(origin, origin), ("https://app.example", None), ("https://evil.example", None)]:
                answer = browser.options(f"{self.issuer('acme')}/{path}", headers={
                    "Origin": asked, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"})
                assert answer.status_code == 204, (path, answer.status_code)
                assert answer.headers.get("access-control-allow-origin") == allowed, (path, asked, answer.headers)
                assert "access-control-allow-credentials" not in answer.headers, path
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        request = {"response_type": "code", "client_id": "page", "redirect_uri": f"{origin}/cb", "scope": "openid groups", "state": "a&b",
                   "code_challenge": challenge, "code_challenge_method": "S256"}
        page = browser.post(self.issuer("acme") + "/authorize", data=request, headers={"Origin": origin})
        assert page.status_code == 200 and 'name="password"' in page.text, (page.status_code, page.text)
        answer = self.send_form(browser, page.url, page, username="bob", password=PASSWORD)
        assert answer.status_code == 303 and answer.headers["location"].startswith(f"{origin}/cb?"), answer.headers
        query = urllib.parse.parse_qs(urllib.parse.urlparse(answer.headers["location"]).query)
        assert query["state"] == ["a&b"], query
        form = {"grant_type": "authorization_code", "code": query["code"][0], "code_verifier": verifier, "client_id": "page",
                "redirect_uri": f"{origin}/cb"}
        tokens = self.browser().post(self.issuer("acme") + "/token", data=form, headers={"Origin": origin})
        assert tokens.status_code == 200 and tokens.headers["access-control-allow-origin"] == origin, (tokens.text, tokens.headers)
        claims = tokens.json()["access_token"].split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(claims + "=="))
        assert claims["groups"] == ["developers"], claims
        step("a page redeems its code from its own origin and no other, a request may be a form, and access tokens have groups")

    def sessions_are_objects(self):
        """Whoever administers the realm ends a sign-in with kubectl: its tokens and its browser are out at once."""
        at = self.workspace("root:acme")
        browser = self.browser()
        tokens = self.redeem(*self.code(browser)).json()
        info = lambda: self.browser().get(self.issuer("acme") + "/userinfo", headers={"Authorization": f"Bearer {tokens['access_token']}"})
        assert info().status_code == 200
        cookie = browser.cookies["__Host-fairway-session-acme"]
        claims = json.loads(base64.urlsafe_b64decode(tokens["access_token"].split(".")[1] + "=="))
        self.kubectl(self.admin, *at, "delete", "sessions.fairway.dev", claims["sid"])
        assert info().status_code == 401
        refused = self.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"], client_id="spa")
        assert refused.status_code == 400, refused.text
        challenge = {"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256"}
        again = lambda: self.authorize("spa", "http://127.0.0.1:4711/cb", browser, user=None, **challenge).status_code
        assert again() == 303, "the browser is still signed in"
        self.kubectl(self.admin, *at, "delete", "sessions.fairway.dev", cookie.split("~")[0].split(".")[0])
        assert again() == 200, "it is asked who it is"
        step("deleting a Session ends its tokens, or its browser, at once")

    def otp(self, seed, at=None):
        tag = hmac.new(base64.b32decode(seed), struct.pack(">Q", int(at or time.time()) // 30), hashlib.sha1).digest()
        begin = tag[-1] & 15
        return f"{(struct.unpack('>I', tag[begin:begin + 4])[0] & 0x7fffffff) % 1000000:06}"

    def own_account(self):
        """Somebody changes his password and sets up one-time codes, without an administrator."""
        self.run_fairway("user", "create", "erin", "--org", "acme", "--password-stdin", stdin=PASSWORD + "\n")
        url, other = self.issuer("acme") + "/account", "staple wrench lantern"
        challenge = {"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256"}

        def attempt(password, otp=""):
            browser = self.browser()
            page = self.authorize("spa", "http://127.0.0.1:1/cb", browser, user=None, **challenge)
            return self.send_form(browser, page.url, page, username="erin", password=password, otp=otp).status_code

        elsewhere, browser = self.login("acme", "erin", PASSWORD, "erin"), self.browser()
        page = browser.get(url)
        assert self.send_form(browser, url, page, username="erin", password=PASSWORD).status_code == 303
        page = browser.get(url)
        assert "<strong>erin</strong>" in page.text and "<script" not in page.text, page.text
        fields = {"do": "password", "new_password": other, "repeated": other}
        wrong = self.send_form(browser, url, page, **fields, password="wrong wrong wrong")
        assert wrong.status_code == 400 and attempt(PASSWORD) == 303, wrong.text
        done = self.send_form(browser, url, page, **fields, password=PASSWORD)
        assert done.status_code == 200 and "Your password is changed" in done.text, done.text
        assert attempt(PASSWORD) == 400 and attempt(other) == 303
        assert browser.get(url).text.count("<strong>erin</strong>") == 1, "this browser is still signed in"
        self.kubectl(elsewhere, "auth", "whoami", ok=False)
        shown = self.send_form(browser, url, page, do="enrol")
        seed = re.search(r'name="enrol_seed" value="([A-Z2-7]{32})"', shown.text).group(1)
        fields = {"do": "confirm", "enrol_seed": seed, "password": other}
        assert self.send_form(browser, url, shown, **fields, new_otp=self.otp(seed, 1)).status_code == 400
        assert attempt(other) == 303, "nothing was set up"
        code = self.otp(seed)
        done = self.send_form(browser, url, shown, **fields, new_otp=code)
        assert done.status_code == 200 and "One-time codes are set up" in done.text, done.text
        assert attempt(other) == 400 and attempt(other, code) == 400, "the code was used to set them up"
        assert attempt(other, self.otp(seed, time.time() + 30)) == 303
        self.run_fairway("user", "disable-totp", "erin", "--org", "acme")
        assert attempt(other) == 303
        step("whoever is signed in changes his password and sets up one-time codes, which disable-totp takes away")

    def codes_are_wanted(self):
        """A realm wants one-time codes: who has none sets them up at sign-in, and nobody gets in without."""
        self.run_fairway("org", "create", "strict")
        self.run_fairway("user", "create", "fay", "--org", "strict", "--password-stdin", stdin=PASSWORD + "\n")
        self.run_fairway("oidc-client", "create", "spa", "--org", "strict", "--public", "--redirect-uri", "http://127.0.0.1/cb")
        realm = {"apiVersion": "fairway.dev/v1alpha1", "kind": "Realm", "metadata": {"name": "realm"}, "spec": {"requireTOTP": True}}
        self.kubectl(self.admin, *self.workspace("root:strict"), "apply", "-f", "-", stdin=json.dumps(realm))
        challenge = {"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256"}
        browser = self.browser()
        page = self.authorize("spa", "http://127.0.0.1:1/cb", browser, user=None, realm="strict", **challenge)
        send = lambda shown, **more: self.send_form(browser, page.url, shown, username="fay", **more)
        wrong = send(page, password="wrong wrong wrong")
        assert wrong.status_code == 400 and "enrol_seed" not in wrong.text, wrong.text
        shown = send(page, password=PASSWORD)
        assert shown.status_code == 403 and "location" not in shown.headers, shown.status_code
        seed = re.search(r'name="enrol_seed" value="([A-Z2-7]{32})"', shown.text).group(1)
        assert send(shown, password=PASSWORD, new_otp=self.otp(seed, 1)).status_code == 400
        assert send(shown, password="wrong wrong wrong", new_otp=self.otp(seed)).status_code == 400
        entered = send(shown, password=PASSWORD, new_otp=self.otp(seed))
        assert entered.status_code == 303 and "code=" in entered.headers["location"], entered.text
        browser = self.browser()
        page = self.authorize("spa", "http://127.0.0.1:1/cb", browser, user=None, realm="strict", **challenge)
        assert send(page, password=PASSWORD).status_code == 400, "from now on the code is asked for"
        assert send(page, password=PASSWORD, otp=self.otp(seed, time.time() + 30)).status_code == 303
        step("where a realm wants one-time codes, who has none sets them up at sign-in")

    def verbs(self):
        """What administrators type, end to end."""
        listed = json.loads(self.run_fairway("user", "list", "--org", "acme", "-o", "json").stdout)
        erin = next(it for it in listed if it["name"] == "erin")
        assert erin["username"] == "acme/erin" and not erin["disabled"] and erin["lastSignIn"], erin
        self.run_fairway("group", "create", "shortlived", "--org", "acme")
        assert "shortlived" in self.run_fairway("group", "list", "--org", "acme").stdout
        self.run_fairway("group", "delete", "shortlived", "--org", "acme")
        assert "shortlived" not in self.run_fairway("group", "list", "--org", "acme").stdout
        made = self.run_fairway("oidc-client", "create", "backend", "--org", "acme", "--redirect-uri", "https://backend.example/cb").stdout
        first = re.search(r"Secret: (\S+)", made).group(1)
        listed = self.run_fairway("oidc-client", "list", "--org", "acme").stdout
        assert re.search(r"backend\s+with a secret\s+https://backend.example/cb", listed) and re.search(r"spa\s+public", listed), listed
        second = re.search(r"Secret: (\S+)", self.run_fairway("oidc-client", "new-secret", "backend", "--org", "acme").stdout).group(1)
        ask = lambda secret: self.token(auth=("backend", secret), grant_type="authorization_code", code="x~y").json()["error"]
        assert ask(first) == "invalid_client" and ask(second) == "invalid_grant", (ask(first), ask(second))
        self.run_fairway("oidc-client", "delete", "backend", "--org", "acme")
        assert ask(second) == "invalid_client"
        self.run_fairway("org", "delete", "strict", ok=False)
        self.run_fairway("org", "delete", "strict", "--yes")
        wait(lambda: "strict" not in self.run_fairway("org", "list").stdout)
        wait(lambda: self.browser().get(self.issuer("strict") + "/.well-known/openid-configuration").status_code == 404)
        step("users, groups, programs and organisations are listed, renewed and deleted by the command line")

    def one_time_codes(self):
        self.run_fairway("user", "create", "carol", "--org", "acme", "--password-stdin", stdin=PASSWORD + "\n")
        uri = self.run_fairway("user", "enable-totp", "carol", "--org", "acme").stdout
        seed = re.search(r"secret=([A-Z2-7]+)", uri).group(1)

        def otp(step):
            tag = hmac.new(base64.b32decode(seed), struct.pack(">Q", step), hashlib.sha1).digest()
            at = tag[-1] & 15
            return f"{(struct.unpack('>I', tag[at:at + 4])[0] & 0x7fffffff) % 1000000:06}"

        challenge = {"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256"}

        def attempt(code):
            browser = self.browser()
            page = self.authorize("spa", "http://127.0.0.1:1/cb", browser, user=None, **challenge)
            return self.send_form(browser, page.url, page, username="carol", password=PASSWORD, otp=code).status_code

        code = otp(int(time.time()) // 30)
        assert attempt("") == 400
        assert attempt(otp(1)) == 400
        assert attempt(code) == 303
        assert attempt(code) == 400, "a code counts once"
        step("one-time codes are needed once set up, and count once")

    def names_are_free(self):
        """Whoever gets a name gets nothing of him who had it, however he was deleted."""
        at = self.workspace("root:acme")
        for how in ["kubectl", "fairway"]:
            self.run_fairway("user", "create", "gone", "--org", "acme", "--group", "developers", "--password-stdin", stdin=PASSWORD + "\n")
            self.run_fairway("user", "enable-totp", "gone", "--org", "acme")
            held = lambda: "fairway.dev/identity" in self.kubectl(self.admin, *at, "get", "users.fairway.dev", "gone", "-o", "json").stdout
            wait(held)
            if how == "kubectl":
                self.kubectl(self.admin, *at, "delete", "users.fairway.dev", "gone", "--timeout=30s")
            else:
                self.run_fairway("user", "delete", "gone", "--org", "acme")
            left = self.kubectl(self.admin, *at, "get", "credentials.fairway.dev", "user.gone", ok=False)
            assert "not found" in left.stderr, left
            group = json.loads(self.kubectl(self.admin, *at, "get", "groups.fairway.dev", "developers", "-o", "json").stdout)
            assert "gone" not in group["spec"]["members"], group
            # The name is free: another one has neither the groups nor the password nor the one-time codes.
            self.kubectl(self.admin, *at, "create", "-f", "-",
                         stdin=json.dumps({"apiVersion": "fairway.dev/v1alpha1", "kind": "User", "metadata": {"name": "gone"}}))
            page = self.authorize("spa", "http://127.0.0.1:1/cb", user="gone", code_challenge="E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
                                  code_challenge_method="S256")
            assert page.status_code == 400, page.status_code
            self.run_fairway("user", "set-password", "gone", "--org", "acme", "--password-stdin", stdin=PASSWORD + "\n")
            user = json.loads(self.kubectl(self.login("acme", "gone", PASSWORD, f"gone-{how}"), "auth", "whoami", "-o", "json").stdout)
            assert "acme/developers" not in user["status"]["userInfo"]["groups"], user
            self.run_fairway("user", "delete", "gone", "--org", "acme")
        step("a name that was somebody's is free of what was his, whether kubectl or fairway deleted him")

    def git_over_https(self):
        self.run_fairway("repo", "create", "acme/site")
        self.kubectl(self.admin, *self.workspace("root:acme"), "create", "clusterrole", "repos", "--verb=get,list,update",
                     "--resource=repositories.fairway.dev")
        self.kubectl(self.admin, *self.workspace("root:acme"), "create", "clusterrolebinding", "repos", "--clusterrole=repos",
                     "--group=acme/developers")
        self.run_fairway("group", "add", "developers", "alice", "--org", "acme")
        session = next((self.directory / "alice" / "state" / "fairway" / "sessions").glob("*acme.json"))
        host = urllib.parse.urlparse(self.git)
        helper = f"!'{self.fairway}' credential git --session '{session}'"

        def git(*words):
            command = ["git", "-c", f"credential.helper={helper}", "-c",
                       f"http.curloptResolve={host.hostname}:{host.port}:127.0.0.1", *words]
            return subprocess.run(command, cwd=self.directory, capture_output=True, text=True, env=self.environment("alice"), timeout=60)

        self.git_run = git
        cloned = git("clone", f"{self.git}/acme/site.git", "clone")
        assert cloned.returncode == 0, cloned.stderr
        (self.directory / "clone" / "index.html").write_text("hello\n")
        author = ["-c", "user.name=Alice", "-c", "user.email=alice@example.com"]
        for words in [("-C", "clone", "add", "."), ("-C", "clone", *author, "commit", "-m", "Say hello"),
                      ("-C", "clone", "push", "origin", "HEAD")]:
            done = git(*words)
            assert done.returncode == 0, (words, done.stderr)
        step("the same identity clones and pushes over HTTPS")

    def renewed(self):
        """A token that `fairway login` brought has ended: kubectl's plugin gets another one, and what it was got for counts once."""
        session = next((self.directory / "alice" / "state" / "fairway" / "sessions").glob("*acme.json"))
        before = json.loads(session.read_text())
        self.kubectl(self.alice, "auth", "whoami")
        assert json.loads(session.read_text()) == before, "a token that is good is kept"
        session.write_text(json.dumps(before | {"expires": int(time.time()) - 60}))
        user = json.loads(self.kubectl(self.alice, "auth", "whoami", "-o", "json").stdout)["status"]["userInfo"]
        assert user["username"] == "acme/alice", user
        after = json.loads(session.read_text())
        for name in ["access_token", "refresh_token"]:
            assert after[name] != before[name], f"{name} is the old one"
        assert after["expires"] > time.time() and self.api(after["access_token"]) == 200, after["expires"]
        step("kubectl's plugin renews a token that has ended")
        again = self.token(grant_type="refresh_token", refresh_token=before["refresh_token"], client_id="fairway")
        assert again.status_code == 400 and again.json()["error"] == "invalid_grant", again.text
        assert self.api(after["access_token"]) == 401, "who used the old refresh token has ended the session"
        gone = self.kubectl(self.alice, "auth", "whoami", ok=False)
        assert "Unauthorized" in gone.stderr or "logged in" in gone.stderr or "fairway login" in gone.stderr, gone
        self.alice = self.login("acme", "alice", PASSWORD, "alice")
        step("the refresh token that it used is good for nothing but ending the session")

    def disabled(self):
        self.kubectl(self.alice, *self.workspace("root:acme"), "get", "configmaps", "-n", "default")
        session = next((self.directory / "alice" / "state" / "fairway" / "sessions").glob("*acme.json"))
        token = json.loads(session.read_text())
        assert self.api(token["access_token"]) == 200
        # What she made for programs, which has an account of its own: a token for one repository, one by kubectl, and one that she got by that.
        at = self.workspace("root:acme")
        self.kubectl(self.admin, *at, "create", "clusterrolebinding", "alice", "--clusterrole=cluster-admin", "--user=acme/alice")
        self.kubectl(self.admin, *at, "create", "clusterrolebinding", "robot", "--clusterrole=cluster-admin", "--serviceaccount=default:robot")
        address = self.run_fairway("repo", "create", "acme/tokened", "--with-token", kubeconfig=self.alice, home="alice").stdout.strip()
        self.kubectl(self.alice, *at, "create", "serviceaccount", "robot", "-n", "default")
        own = self.kubectl(self.alice, *at, "create", "token", "robot", "-n", "default", "--duration=8760h").stdout.strip()
        request = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        further = self.browser().post(f"{self.server()}/clusters/root:acme/api/v1/namespaces/default/serviceaccounts/robot/token",
                                      data=request, headers={"Authorization": f"Bearer {own}", "Content-Type": "application/json"})
        further = further.json()["status"]["token"]
        lasting = self.kubectl(self.admin, *at, "create", "token", "robot", "-n", "default").stdout.strip()
        made = self.browser().post(f"{self.git}/api/v1/users/robot/tokens", json={"name": "ci", "scopes": ["read:user"]},
                                   headers={"Authorization": f"Bearer {own}"})
        assert made.status_code == 201, made.text
        gitea = lambda: self.browser().get(f"{self.git}/api/v1/user", headers={"Authorization": f"token {made.json()['sha1']}"}).status_code
        reached = lambda: (self.git_run("-c", "credential.helper=", "ls-remote", address).returncode == 0,
                           self.api(own), self.api(further), gitea(), self.api(lasting))
        assert reached() == (True, 200, 200, 200, 200), reached()
        self.run_fairway("user", "disable", "alice", "--org", "acme")
        assert reached() == (False, 401, 401, 401, 200), reached()
        self.run_fairway("user", "enable", "alice", "--org", "acme")
        assert reached() == (True, 200, 200, 200, 200), reached()
        self.run_fairway("user", "disable", "alice", "--org", "acme")
        assert reached() == (False, 401, 401, 401, 200), reached()
        assert self.api(token["access_token"]) == 401
        refused = self.git_run("-C", "clone", "fetch")
        assert refused.returncode != 0, refused
        again = self.token(grant_type="refresh_token", refresh_token=token["refresh_token"], client_id="fairway")
        assert again.status_code == 400, again.text
        page = self.authorize("spa", "http://127.0.0.1:1/cb", code_challenge="E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
                              code_challenge_method="S256")
        assert page.status_code == 400, page.status_code
        step("a disabled user is out of the API, of Git and of sign-in, at once, and so are the tokens that she made for programs")
        # Whoever gets her name gets none of it.
        self.run_fairway("user", "delete", "alice", "--org", "acme")
        self.run_fairway("user", "create", "alice", "--org", "acme", "--password-stdin", stdin=PASSWORD + "\n")
        assert reached() == (False, 401, 401, 401, 200), reached()
        step("tokens of one who is deleted stay void, whoever has the name")

    def guessing(self):
        challenge = {"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256"}
        wrong = lambda user: self.authorize("spa", "http://127.0.0.1:1/cb", user=user, password="wrong wrong wrong", realm="beta2", **challenge)
        self.run_fairway("org", "create", "beta2")
        self.run_fairway("user", "create", "dave", "--org", "beta2", "--password-stdin", stdin=PASSWORD + "\n")
        self.run_fairway("oidc-client", "create", "spa", "--org", "beta2", "--public", "--redirect-uri", "http://127.0.0.1/cb")
        realm = {"apiVersion": "fairway.dev/v1alpha1", "kind": "Realm", "metadata": {"name": "realm"},
                 "spec": {"lockoutAttempts": 3, "lockoutSeconds": 600, "displayName": "Beta <Two>"}}
        self.kubectl(self.admin, *self.workspace("root:beta2"), "apply", "-f", "-", stdin=json.dumps(realm))
        blank = lambda answer, user: re.sub(r'name="form_token" value="[^"]*"', "", answer.text).replace(user, "USER")
        known, unknown = wrong("dave"), wrong("mallory")
        assert known.status_code == unknown.status_code == 400
        assert blank(known, "dave") == blank(unknown, "mallory"), "the answers differ"
        assert "Beta &lt;Two&gt;" in known.text
        for user in ["dave", "mallory"]:
            answers = [wrong(user).status_code for _ in range(3)]
            assert answers[-1] == 429, (user, answers)
        right = self.authorize("spa", "http://127.0.0.1:1/cb", user="dave", realm="beta2", **challenge)
        assert right.status_code == 429 and int(right.headers["retry-after"]) > 0, right.status_code
        step("whether there is a user is not told, and after some wrong guesses one waits")

    def at_rest(self):
        listed = json.loads(self.kubectl(self.admin, *self.workspace("root:acme"), "get", "credentials.fairway.dev", "-o", "json").stdout)
        hashes = [it["spec"]["passwordHash"] for it in listed["items"] if "passwordHash" in it["spec"]]
        keys = [key["privateKey"] for it in listed["items"] for key in it["spec"].get("keys", [])]
        assert hashes and keys and all(it.startswith("$argon2id$") for it in hashes), listed
        needles = [it.encode() for it in [*hashes, *keys, PASSWORD, self.secret, self.admin_password]]
        for path in (self.directory / "data").rglob("*"):
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
                assert not any(it in content for it in needles), f"a secret lies in {path} in the clear"
        log = self.log.read_text()
        assert PASSWORD not in log and self.secret not in log
        step("no secret lies on disk or in the log in the clear")


def wait(condition):
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)


def step(text):
    print(f"  {text}", flush=True)


if __name__ == "__main__":
    main()
