"""What the pages of the portal show in the tests: a shop out of Git, machines, a gateway with policies; and texts of a stranger."""

import json

HOSTILE = "<img src=x onerror=alert('text')>"

FILES = {
    "manifests/settings.yaml": """apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  replicas: "1"
""",
    "manifests/service.yaml": """apiVersion: v1
kind: Service
metadata:
  name: shop
spec:
  selector: {app: shop}
  ports:
  - port: 8080
""",
    "catalog-info.yaml": f"""apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: shop
  description: "{HOSTILE}"
spec: {{type: service, lifecycle: production, owner: platform}}
---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: tools
  tags: [go, toolkit]
spec: {{type: library, lifecycle: production, owner: crew}}
---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: hostile
  title: "{HOSTILE}"
spec: {{type: library, lifecycle: experimental, owner: platform}}
---
apiVersion: backstage.io/v1alpha1
kind: API
metadata: {{name: shop-api}}
spec:
  type: openapi
  lifecycle: production
  owner: platform
  definition: |
    openapi: 3.1.0
    info: {{title: "{HOSTILE}", version: "1"}}
    paths: {{}}
""",
    "precious/settings.yaml": """apiVersion: v1
kind: ConfigMap
metadata:
  name: beside
""",
    "<img src=x onerror=alert(1)>.txt": "<script>alert(3)</script>\n",
    "README.md": "# Shop\n\n<script>alert('readme')</script>\n",
}


# What the guard asks about before it goes.
PRECIOUS = "precious/machine.yaml"

def herd():
    """Machines without disks, which stop as soon as they are told to: nothing in them listens."""
    made = [machine(f"herd-{number}", "herd") for number in (1, 2)]
    for one in made:
        one["metadata"]["namespace"] = "herd"
        one["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    return made


def machines():
    return [machine(f"stopped-{number}", "web" if number < 3 else "db") for number in range(1, 5)]


def machine(name, folder):
    return {
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": "team", "labels": {"vm.openshift.io/folder": folder}, "annotations": {"note": HOSTILE}},
        "spec": {"runStrategy": "Halted", "template": {"spec": {
            "domain": {"cpu": {"cores": 1}, "memory": {"guest": "128Mi"}, "devices": {"interfaces": [{"name": "default", "masquerade": {}}]}},
            "networks": [{"name": "default", "pod": {}}],
        }}},
    }


def application(name, url, *, path="manifests", automated=False, namespace="shop"):
    policy = {"syncOptions": ["CreateNamespace=true"]} | ({"automated": {"prune": True, "selfHeal": True}} if automated else {})
    return {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "openshift-gitops", "labels": {"team": "shop"}},
        "spec": {
            "project": "default", "source": {"repoURL": url, "path": path, "targetRevision": "main"},
            "destination": {"name": "in-cluster", "namespace": namespace}, "syncPolicy": policy,
        },
    }


def applications(git):
    url = f"{git}/root/shop.git"
    return [
        application("shop", url, automated=True),
        application("waiting", url, namespace="waiting"),
        application("guarded", url, path="precious", namespace="guarded"),
        application("broken", url, path="nowhere"),
    ]


def template():
    """A golden path that can be stopped half-way, and fails if the namespace goes that its last object is to be in."""
    def entry(name, namespace):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}

    return {
        "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template",
        "metadata": {"name": "two-notes", "namespace": "default", "annotations": {"fairway.dev/title": "Two notes", "fairway.dev/description": "One here and one there, with a pause between if you like."}},
        "spec": {
            "type": "notes", "owner": "platform",
            "parameters": [{"title": "Where", "required": ["name", "namespace"], "properties": {
                "name": {"title": "Name", "type": "string"},
                "namespace": {"title": "Namespace of the second", "type": "string"},
                "pause": {"title": "Seconds between them", "type": "integer", "default": 0},
            }}],
            "steps": [
                {"id": "first", "name": "Write the first", "action": "kubernetes:apply", "input": {"manifestObject": entry("${{ parameters.name }}", "team")}},
                {"id": "pause", "name": "Wait", "if": "${{ parameters.pause > 0 }}", "action": "debug:wait", "input": {"seconds": "${{ parameters.pause }}"}},
                {"id": "second", "name": "Write the second", "action": "kubernetes:apply", "input": {"manifestObject": entry("${{ parameters.name }}", "${{ parameters.namespace }}")}},
            ],
        },
    }


def questions():
    """A golden path that asks with each of Backstage's fields, and a group that answers some of them."""
    def text(title, field, **options):
        return {"title": title, "type": "string", "ui:field": field, **({"ui:options": options} if options else {})}

    def several(title, field, **options):
        return text(title, field, **options) | {"type": "array", "items": {"type": "string"}}

    return [
        {"apiVersion": "fairway.dev/v1alpha1", "kind": "Group", "metadata": {"name": "crew"}, "spec": {"displayName": "Crew", "members": ["admin"]}},
        {
            "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template",
            "metadata": {"name": "questions", "namespace": "default", "annotations": {"fairway.dev/title": "All questions", "fairway.dev/description": "Every field that a form can have."}},
            "spec": {
                "type": "notes", "owner": "platform",
                "parameters": [
                    {"title": "Entities", "required": ["name", "entity", "owned", "group"], "properties": {
                        "name": text("Name", "EntityNamePicker"),
                        "entity": text("Component", "EntityPicker", allowArbitraryValues=False, catalogFilter={"kind": "Component"}),
                        "owned": text("Mine", "OwnedEntityPicker", defaultKind="Component", catalogFilter={"kind": "Component", "metadata.tags": {"exists": True}}),
                        "several": several("Several", "MultiEntityPicker", defaultKind="Component", catalogFilter={"kind": "Component"}),
                        "tags": several("Tags", "EntityTagsPicker"),
                        "group": text("My group", "MyGroupsPicker"),
                    }},
                    {"title": "Repository", "required": ["repoUrl", "branch"], "properties": {
                        "repoUrl": text("Repository", "RepoUrlPicker", allowedOwners=["root", "acme"]),
                        "branch": text("Branch", "RepoBranchPicker"),
                    }},
                    {"title": "Secrets", "required": ["token"], "properties": {"token": text("Token", "Secret"), "note": {"title": "Note", "type": "string"}}},
                ],
                "steps": [{"id": "say", "name": "Say", "action": "debug:log", "input": {"message": "${{ parameters.entity }}"}}],
            },
        },
    ]


def others():
    """Kinds that the shop does not need, so that their pages have something to show."""
    def of(group, version, kind, name, spec):
        return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": name, "namespace": "team"}, "spec": spec}

    routes, web = "gateway.networking.k8s.io", {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "web"}
    backend = [{"name": "nobody", "port": 9}]
    return [
        of(routes, "v1", "HTTPRoute", "second", {"parentRefs": [{"name": "web"}], "hostnames": ["second.example.com"], "rules": [
            {"filters": [{"type": "RequestRedirect", "requestRedirect": {"statusCode": 302, "hostname": "other.example.com"}}]}]}),
        of(routes, "v1", "GRPCRoute", "calls", {"parentRefs": [{"name": "web"}], "hostnames": ["grpc.example.com"], "rules": [{"backendRefs": backend}]}),
        of(routes, "v1alpha3", "TLSRoute", "sealed", {"parentRefs": [{"name": "web"}], "hostnames": ["sealed.example.com"], "rules": [{"backendRefs": backend}]}),
        of(routes, "v1alpha2", "TCPRoute", "bytes", {"parentRefs": [{"name": "web"}], "rules": [{"backendRefs": backend}]}),
        of("kuadrant.io", "v1", "RateLimitPolicy", "second", {"targetRef": {"group": routes, "kind": "HTTPRoute", "name": "second"}, "limits": {
            "each": {"rates": [{"limit": 7, "window": "30s"}], "counters": [{"expression": "auth.identity.userid"}], "when": [{"predicate": "request.path.startsWith('/a')"}]}}}),
        of("kuadrant.io", "v1", "TLSPolicy", "web", {"targetRef": web, "issuerRef": {"kind": "ClusterIssuer", "name": "nobody"}}),
        of("kuadrant.io", "v1", "DNSPolicy", "web", {"targetRef": web}),
    ]


def gateway(port):
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "api"}
    return [
        {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "web", "namespace": "team"},
         "spec": {"gatewayClassName": "fairway", "listeners": [{"name": "http", "port": port, "protocol": "HTTP"}]}},
        {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "api", "namespace": "team"},
         "spec": {"parentRefs": [{"name": "web"}], "hostnames": ["api.example.com"],
                  "rules": [{"filters": [{"type": "RequestRedirect", "requestRedirect": {"statusCode": 302, "hostname": "other.example.com"}}]}]}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "alice", "namespace": "team", "labels": {"authorino.kuadrant.io/managed-by": "authorino", "app": "api"}},
         "stringData": {"api_key": "key-of-alice"}},
        {"apiVersion": "kuadrant.io/v1", "kind": "AuthPolicy", "metadata": {"name": "api", "namespace": "team"},
         "spec": {"targetRef": target, "rules": {"authentication": {"keys": {
             "apiKey": {"selector": {"matchLabels": {"app": "api"}}}, "credentials": {"authorizationHeader": {"prefix": "APIKEY"}}}}}}},
        {"apiVersion": "extensions.kuadrant.io/v1alpha1", "kind": "PlanPolicy", "metadata": {"name": "api", "namespace": "team"},
         "spec": {"targetRef": target, "plans": [{"tier": "gold", "predicate": "true", "limits": {"custom": [{"limit": 100, "window": "60s"}]}}]}},
        *others(),
        {"apiVersion": "devportal.kuadrant.io/v1alpha1", "kind": "APIProduct", "metadata": {"name": "api", "namespace": "team"},
         "spec": {"displayName": f"The API {HOSTILE}", "approvalMode": "manual", "publishStatus": "Published", "targetRef": target}},
        {"apiVersion": "devportal.kuadrant.io/v1alpha1", "kind": "APIKey", "metadata": {"name": "mine", "namespace": "team"},
         "spec": {"apiProductRef": {"name": "api", "namespace": "team"}, "planTier": "gold", "useCase": "to see it", "requestedBy": {"userId": "alice"}}},
    ]


FILES[PRECIOUS] = json.dumps({**machine("precious", "db"), "metadata": {"name": "precious"}}, indent=1)

# Logs as large as somebody may commit: of many lines, of a single one, and larger than the Git host hands out in one piece.
LINE = "2026-11-18T10:15:50Z INFO a request was answered with 200 after 3 ms\n"
LOGS = {"lines.log": LINE * (30_000_000 // len(LINE)), "line.log": "x" * 30_000_000, "server.log": LINE * (50_000_000 // len(LINE))}
