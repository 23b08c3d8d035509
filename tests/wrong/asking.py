"""Sends the requests of a theme to a server, and writes the answers so that two servers' can be compared.

What differs from run to run (uids, times, versions) is replaced by a word. Where several causes are given, their order
is left out: upstream's own differs from run to run where it walks a map. A cause that is told several times counts
once: upstream judges metadata in several places, and how often it repeats itself differs by kind.
"""

import base64
import copy
import http.client
import json
import pathlib
import re
import socket
import ssl
import tempfile
import time
import urllib.parse

import cases
import yaml

PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
HEADERS = ["Content-Type", "Retry-After", "Allow"]


class Server:
    """One connection as the administrator, opened again when the server closes it."""

    def __init__(self, kubeconfig):
        config = yaml.safe_load(pathlib.Path(kubeconfig).read_text())
        address = config["clusters"][0]["cluster"]["server"]
        user = config["users"][0]["user"]
        self.host, self.port = urllib.parse.urlsplit(address).hostname, urllib.parse.urlsplit(address).port
        self.tls = ssl._create_unverified_context()
        with tempfile.NamedTemporaryFile() as pem:
            for part in ["client-certificate-data", "client-key-data"]:
                pem.write(base64.b64decode(user[part]) + b"\n")
            pem.flush()
            self.tls.load_cert_chain(pem.name)
        self.connection = None
        self.discovered = {}

    def ask(self, method, path, headers=None, body=None):
        """Code, headers and body."""
        for attempt in range(3):
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(self.host, self.port, timeout=10, context=self.tls)
            try:
                self.connection.putrequest(method, path, skip_accept_encoding=True)
                for key, value in (headers or {}).items():
                    self.connection.putheader(key, value)
                if body is not None:
                    self.connection.putheader("Content-Length", str(len(body)))
                self.connection.endheaders()
                if body is not None:
                    try:
                        self.connection.send(body)
                    except (BrokenPipeError, ConnectionResetError):
                        pass  # refused before it was read; the answer may be there
                answer = self.connection.getresponse()
                content = answer.read()
                return answer.status, answer.headers, content
            except (http.client.HTTPException, OSError) as error:
                self.connection.close()
                self.connection = None
                if attempt == 2 or isinstance(error, TimeoutError):
                    raise

    def json(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        code, _, content = self.ask(method, path, {"Content-Type": "application/json"}, data)
        return code, json.loads(content)

    def collection(self, api_version, kind, namespace):
        """Where objects of a kind live, by the server's own discovery."""
        base = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
        if api_version not in self.discovered or kind not in self.discovered[api_version]:
            _, found = self.json("GET", base)
            self.discovered[api_version] = {
                r["kind"]: r for r in found.get("resources", []) if "/" not in r["name"]
            }
        resource = self.discovered[api_version][kind]
        inside = f"/namespaces/{namespace}" if resource["namespaced"] else ""
        return f"{base}{inside}/{resource['name']}"


class Asker:
    def __init__(self, server, theme):
        self.server, self.theme = server, theme
        self.namespace = f"wrong-{theme.stem}"
        self.saved = {}
        self.generated = None

    def object(self, name_or_object, case):
        value = self.theme.objects[name_or_object] if isinstance(name_or_object, str) else name_or_object
        value = cases.expand(copy.deepcopy(value))
        for pointer, new in case.get("set", {}).items():
            cases.change(value, cases.expand(pointer), cases.expand(copy.deepcopy(new)))
        return value

    def where(self, obj, case):
        if "path" in case:
            return case["path"]
        namespace = obj.get("metadata", {}).get("namespace") or self.namespace
        return self.server.collection(obj["apiVersion"], obj["kind"], namespace)

    def fill(self, value):
        """`${x.metadata.uid}` is what the setup saved as x; `${ns}` is the theme's namespace."""
        if isinstance(value, str):
            value = value.replace("${ns}", self.namespace)
            return re.sub(r"\$\{(\w+)\.([\w.]+)\}", lambda m: self.look_up(m[1], m[2]), value)
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, dict):
            return {self.fill(key): self.fill(item) for key, item in value.items()}
        return value

    def look_up(self, name, path):
        value = self.saved[name]
        for step in path.split("."):
            value = value[int(step)] if isinstance(value, list) else value[step]
        return str(value)

    def set_up(self):
        self.must("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}}, [201, 409])
        for step in self.theme.setup:
            if isinstance(step, str):
                step = {"create": step}
            if "wait" in step:
                self.wait(step["wait"])
                continue
            if "create" in step:
                obj = self.fill(self.object(step["create"], step))
                answer = self.must("POST", self.where(obj, step), obj, [201, 409])
                if answer.get("kind") == "Status":
                    answer = self.must("GET", f"{self.where(obj, step)}/{obj['metadata']['name']}", None, [200])
                self.saved[step.get("as") or step["create"]] = answer
            else:
                answer = self.must(step["method"], self.fill(step["path"]), self.fill(step.get("body")), [200, 201])
                if "as" in step:
                    self.saved[step["as"]] = answer

    def wait(self, path):
        for _ in range(200):
            if self.server.ask("GET", self.fill(path))[0] == 200:
                return
            time.sleep(0.05)
        raise SystemExit(f"{self.theme.stem}: {path} did not come to be")

    def must(self, method, path, body, codes):
        for _ in range(100):
            code, answer = self.server.json(method, path, body)
            if code in codes:
                return answer
            # Controllers make default accounts, and upstream's caches of a new kind fill, in their own time.
            if code not in (403, 404, 429):
                break
            time.sleep(0.1)
        raise SystemExit(f"{self.theme.stem}: the setup failed: {method} {path}: {code} {json.dumps(answer)[:2000]}")

    def request(self, case):
        """Method, path, headers and body of a case."""
        headers, body = {}, None
        patch = next((p for p in PATCHES if p in case), None)
        if "create" in case:
            obj = self.object(case["create"], case)
            method, path, body = "POST", self.where(obj, case), obj
            if "subresource" in case:
                path += f"/{obj['metadata']['name']}/{case['subresource']}"
        elif "update" in case:
            stored = self.saved[case["update"]]
            path = self.place(stored, case)
            _, obj = self.server.json("GET", self.place(stored, {}))
            obj.get("metadata", {}).pop("managedFields", None)
            for pointer, new in case.get("set", {}).items():
                cases.change(obj, cases.expand(pointer), cases.expand(copy.deepcopy(new)))
            method, body = "PUT", obj
        elif patch:
            method, body = "PATCH", case[patch]
            headers["Content-Type"] = PATCHES[patch]
            path = case.get("path") or self.place(self.saved[case["of"]], case)
        elif "delete" in case:
            method, path, body = "DELETE", self.place(self.saved[case["delete"]], case), case.get("body")
        else:
            method, path, body = case["method"], case["path"], case.get("body")
        if "path" in case:
            path = case["path"]
        if "query" in case:
            path += ("&" if "?" in path else "?") + case["query"]
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
            body = json.dumps(self.fill(cases.expand(body))).encode()
        elif "text" in case:
            headers.setdefault("Content-Type", "application/json")
            body = self.fill(cases.expand(case["text"])).encode()
        elif "base64" in case:
            body = base64.b64decode(case["base64"])
        if "type" in case:
            headers["Content-Type"] = case["type"]
        if "accept" in case:
            headers["Accept"] = case["accept"]
        if "as" in case:
            headers["Impersonate-User"] = case["as"]
        headers.update(case.get("headers", {}))
        if "Content-Type" in headers and headers["Content-Type"] is None:
            del headers["Content-Type"]
        return case.get("method", method), self.fill(cases.expand(path)), self.fill(cases.expand(headers)), body

    def place(self, stored, case):
        path = self.where(stored, {}) + "/" + stored["metadata"]["name"]
        return path + (f"/{case['subresource']}" if "subresource" in case else "")

    def answer(self, case):
        code, headers, content = self.server.ask(*self.request(case))
        # A generated name ends with five characters of chance.
        generated = case.get("set", {}).get("/metadata/generateName")
        self.generated = cases.expand(generated)[:58] if generated else None
        return self.settle(code, headers, content)

    def settle(self, code, headers, content):
        answer = {"code": code}
        for name in HEADERS:
            if headers.get(name):
                answer[name] = self.words(headers[name])
        # Only Fairway says that nothing here runs pods.
        warnings = sorted(w for w in headers.get_all("Warning", []) if "no node here runs pods" not in w)
        if warnings:
            answer["Warning"] = [self.words(w) for w in warnings]
        text = content.decode("utf-8", "replace")
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            if code >= 300 or "json" not in headers.get("Content-Type", ""):
                answer["text"] = self.words(text) if code >= 300 else ""
            else:
                answer["events"] = [self.event(line) for line in text.splitlines()[:5]]
            return answer
        if body.get("type") == "ERROR" and "object" in body:
            answer["events"] = [self.event(text)]
            return answer
        if body.get("kind") == "Status" and code >= 300:
            answer.update(self.status(body))
        return answer

    def event(self, line):
        event = json.loads(line)
        if event["type"] != "ERROR":
            return event["type"]
        return {"ERROR": self.status(event["object"])}

    def status(self, body):
        details = dict(body.get("details") or {})
        causes = details.pop("causes", [])
        message = body.get("message", "")
        unique = {(c.get("field", ""), c.get("reason", ""), c.get("message", "")) for c in causes}
        if len(causes) > 1:
            message = message.split(" is invalid: ")[0]
            if len(unique) == 1:
                field, _, text = next(iter(unique))
                message += f" is invalid: {field}: {text}"
        return {
            "reason": body.get("reason"),
            "status": body.get("status"),
            "message": self.words(message),
            "details": {key: self.words(value) if isinstance(value, str) else value for key, value in details.items()},
            "causes": sorted([field, reason, self.words(text)] for field, reason, text in unique),
        }

    def words(self, text):
        if self.generated:
            text = re.sub(rf'{re.escape(self.generated)}[a-z0-9]{{5}}(?=")', f"{self.generated}CHANCE", text)
            text = re.sub(rf"^{re.escape(self.generated)}[a-z0-9]{{5}}$", f"{self.generated}CHANCE", text)
        for name, saved in self.saved.items():
            version = saved.get("metadata", {}).get("resourceVersion")
            if version:
                text = re.sub(rf'"{version}"', '"VERSION"', text)
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
        text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000 UTC( m=[+\d.]+)?)", "TIME", text)
        text = re.sub(r"(Too large resource version: \d+, current: )\d+", r"\1N", text)
        text = re.sub(r"10\.96\.0\.0/\d+", "10.96.0.0/SIZE", text)
        for saved in self.saved.values():
            address = (saved.get("spec") or {}).get("clusterIP") if isinstance(saved.get("spec"), dict) else None
            if address and address != "None":
                text = text.replace(f'"{address}"', '"ADDRESS"')
        text = re.sub(r'(resourceVersion\\*":\\*")\d+', r"\1N", text)
        text = re.sub(r"0x[0-9a-f]{8,}", "POINTER", text)
        text = re.sub(r"kube-api-access-[a-z0-9]{5}\b", "kube-api-access-CHANCE", text)
        text = re.sub(r"(ResourceVersion in (?:record \(|object meta: ))\d+", r"\1N", text)
        if len(text) > 4000:
            text = f"{text[:3000]} … {len(text)} characters"
        return text


def ask_theme(server, theme):
    asker = Asker(server, theme)
    asker.set_up()
    answers = {}
    for case in theme.cases:
        try:
            answers[case["name"]] = asker.answer(case)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise SystemExit(f"{theme.stem}: {case['name']}: the case cannot be sent: {error!r}")
        except (http.client.HTTPException, OSError, socket.timeout) as error:
            answers[case["name"]] = {"code": 0, "text": type(error).__name__}
    return answers
