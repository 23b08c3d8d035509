#!/usr/bin/env python3
"""Asks a real kube-apiserver 1.36 what it makes of the manifests here, and records its answers.

usage: record.py https://127.0.0.1:6443 TOKEN < manifests.jsonl > answers.jsonl

The server needs the namespace `ns` and no admission plugins that change or refuse objects by what else exists (ServiceAccount,
DefaultIngressClass, StorageObjectInUseProtection, TaintNodesByCondition, DefaultTolerationSeconds, Priority, RuntimeClass).
A line of input is {"apiVersion", "resource", "namespace", "object"} or, for an update, {..., "change": {pointer: value}};
a line of output adds {"old", "new", "answer"} or {"causes"}. Nothing but the bases of updates is stored.
"""
import copy, json, ssl, sys, urllib.error, urllib.request

server, token = sys.argv[1:3]
tls = ssl._create_unverified_context()


def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(server + path, method=method, data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, context=tls) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def settle(value, uid):
    """What differs from run to run gets a fixed value."""
    if isinstance(value, dict):
        value.get("metadata", {}).pop("resourceVersion", None)
        return {k: "2026-01-02T03:04:05Z" if k in TIMES else settle(v, uid) for k, v in value.items() if k not in DROPPED and v is not None}
    if isinstance(value, list):
        return [settle(v, uid) for v in value]
    return "uid-1" if value == uid else value


TIMES = {"creationTimestamp", "lastTransitionTime", "lastPhaseTransitionTime"}
DROPPED = {"managedFields"}


def change(target, pointer, value):
    *path, last = pointer.strip("/").split("/")
    for step in path:
        target = target[int(step)] if isinstance(target, list) else target.setdefault(step, {})
    if value is None:
        target.pop(last, None)
    else:
        target[int(last) if isinstance(target, list) else last] = value


for line in sys.stdin:
    case = json.loads(line)
    version, namespace = case["apiVersion"], case.get("namespace")
    path = ("/apis/" if "/" in version else "/api/") + version
    path += (f"/namespaces/{namespace}" if namespace else "") + "/" + case["resource"]
    old = None
    if "change" in case:
        name = case["object"]["metadata"]["name"]
        call("DELETE", f"{path}/{name}?gracePeriodSeconds=0&propagationPolicy=Background")
        code, old = call("POST", path, case["object"])
        assert code == 201, (code, old)
        new = copy.deepcopy(old)
        for pointer, value in case["change"].items():
            change(new, pointer, value)
        code, reply = call("PUT", f"{path}/{name}?dryRun=All", new)
        call("DELETE", f"{path}/{name}?gracePeriodSeconds=0&propagationPolicy=Background")
        uid = old["metadata"]["uid"]
        case |= {"old": settle(old, uid), "new": settle(new, uid)}
    else:
        code, reply = call("POST", path + "?dryRun=All&fieldValidation=Ignore", case["object"])
    if code in (200, 201):
        case["answer"] = settle(reply, reply["metadata"]["uid"])
    else:
        assert code == 422, (code, reply, case)
        causes = {(c.get("field", ""), c["message"]) for c in reply["details"]["causes"]}
        case["causes"] = [f"{field}: {message}" for field, message in sorted(causes)]
    print(json.dumps(case, separators=(",", ":")))
