"""The catalogue of faults: for each its name, the link that it breaks, what the evidence must contain, what is asked about, and what
injects it. Every fault is a namespace, repository or run of its own, so that all can be there at once."""

import json

import servers

# The node's own: listeners of Gateways are ports of the machine, and others may have the usual ones.
PORT = servers.free_port()
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIL6yX6T0mYb5b8S7n2F3QJxqkZgZKb7o1xkYkq1o2r3 a@b"
TINY = {"sourceRef": {"kind": "DataSource", "name": "tiny", "namespace": "fairway-images"}}
SEED = {"userData": "#cloud-config\nhostname: x\n"}


class Fault:
    def __init__(self, name, link, shows, ask, inject, guest=False):
        self.name, self.link, self.shows, self.ask, self.inject, self.guest = name, link, shows, ask, inject, guest


def config_map(name="a"):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}


def machine(name, source=None, size="300Mi", memory="128Mi", seed=None, **spec):
    template = {
        "domain": {
            "memory": {"guest": memory},
            "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "seed", "disk": {"bus": "virtio"}}],
                        "interfaces": [{"name": "default", "masquerade": {}}]},
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "dataVolume": {"name": f"{name}-root"}},
                    {"name": "seed", "cloudInitNoCloud": seed or SEED}],
        **spec,
    }
    volume = {"metadata": {"name": f"{name}-root"},
              "spec": {**(source or TINY), "storage": {"resources": {"requests": {"storage": size}}}}}
    used = any("dataVolume" in it for it in template["volumes"])
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name},
            "spec": {"runStrategy": "Always", "dataVolumeTemplates": [volume] if used else [],
                     "template": {"metadata": {"labels": {"app": name}}, "spec": template}}}


def service(name="web", selector=None, target=8080):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": selector or {"app": name}, "ports": [{"name": "http", "port": 8080, "targetPort": target}]}}


def gateway(name="web", gateway_class="istio", host=None, **listener):
    one = {"name": "http", "port": PORT, "protocol": "HTTP", **({"hostname": host} if host else {}), **listener}
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": name},
            "spec": {"gatewayClassName": gateway_class, "listeners": [one]}}


def http_route(host, backend="web", parent="web", name="web"):
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": name},
            "spec": {"parentRefs": [{"name": parent}], "hostnames": [host],
                     "rules": [{"backendRefs": [{"name": backend, "port": 8080}]}]}}


def policy(kind, target, spec, name="web", target_kind="HTTPRoute"):
    return {"apiVersion": "kuadrant.io/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"targetRef": {"group": "gateway.networking.k8s.io", "kind": target_kind, "name": target}, **spec}}


def route(host, to="web", name="web"):
    return {"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": name},
            "spec": {"host": host, "to": {"kind": "Service", "name": to}, "port": {"targetPort": 8080}}}


def endpoints(name="web"):
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": f"{name}-1", "labels": {"kubernetes.io/service-name": name}}, "addressType": "IPv4",
            "endpoints": [{"addresses": ["203.0.113.7"]}], "ports": [{"name": "http", "port": 8080}]}


def fixed_service(name="web"):
    it = service(name)
    del it["spec"]["selector"]
    return it


def voyage(template, values):
    return {"apiVersion": "fairway.dev/v1alpha1", "kind": "Voyage", "metadata": {"name": "run"},
            "spec": {"template": template, "values": values}}


def template(name, *steps):
    return {"apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template", "metadata": {"name": name},
            "spec": {"type": "x", "parameters": [{"title": "p", "properties": {"name": {"type": "string"}}}], "steps": list(steps)}}


def objects(*all):
    return lambda world, space: world.apply(space, *all)


def application(files, **settings):
    """An Application with a repository of its own."""
    def inject(world, space):
        world.application(space, world.repository(space, files), **settings)
    return inject


def manifests(*all, **settings):
    return application({f"manifests/{at}.json": json.dumps(it) for at, it in enumerate(all)}, **settings)


def run_of(values, name="template:default/virtual-machine"):
    return objects(voyage(name, values))


def own_template(*steps):
    def inject(world, space):
        world.template(template(space, *steps))
        world.apply(space, voyage(f"template:default/{space}", {"name": space}))
    return inject


def quota(hard, *then):
    limit = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": hard}}

    def inject(world, space):
        world.apply(space, limit)
        world.settle(space, "resourcequota/small")
        then[0](world, space)
    return inject


def removed_application(world, space):
    world.golden_path(space)
    world.kubectl("delete", "application", space, "-n", "openshift-gitops", "--wait=false")
    world.gone("application", space, "openshift-gitops")


def removed_repository(world, space):
    url = world.repository(space, {"manifests/a.json": json.dumps(config_map())})
    world.kubectl("delete", "repositories.fairway.dev", space)
    world.application(space, url)


def occupied(world, space):
    """Somebody else has the host name."""
    # Of two that came within a second, the first by name has it.
    other = f"a-{space}"
    world.namespace(other)
    world.apply(other, fixed_service(), endpoints(), route(f"{space}.apps.fairway.localhost"))
    world.settle(other, "route/web")
    world.apply(space, fixed_service(), endpoints(), route(f"{space}.apps.fairway.localhost"))


def published(*more, host=None, **changes):
    def inject(world, space):
        name = host or f"{space}.apps.fairway.localhost"
        all = {"service": fixed_service(), "endpoints": endpoints(), "gateway": gateway(host=f"{space}.apps.fairway.localhost"),
               "route": http_route(name), **changes}
        world.apply(space, *[it for it in all.values() if it], *more)
    return inject


def taken_repository(world, space):
    """The name that the run would give its repository is somebody's already."""
    world.repository(space, {"README.md": "mine\n"})
    world.apply(space, voyage("template:default/virtual-machine", {**GOOD, "name": space, "namespace": space}))


def empty_repository(world, space):
    world.application(space, world.repository(space, {}))


def unwelcome(world, space):
    """A project that lets nothing into the namespace."""
    project = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": f"p-{space}"},
               "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "elsewhere"}]}}
    world.apply("openshift-gitops", project)
    world.application(space, world.repository(space, {"manifests/a.json": json.dumps(config_map())}), project=f"p-{space}")


def forbidden_by_policy(world, space):
    """A rule of the cluster that the objects of this namespace break."""
    rule = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": f"owners-{space}"},
            "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                                                             "resources": ["configmaps"]}]},
                     "validations": [{"expression": "has(object.metadata.labels) && 'owner' in object.metadata.labels",
                                      "message": "everything here has an owner"}]}}
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space}}}
    binding = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
               "metadata": {"name": f"owners-{space}"},
               "spec": {"policyName": f"owners-{space}", "validationActions": ["Deny"], "matchResources": where}}
    world.apply(space, rule, binding)
    manifests(config_map())(world, space)


def affinity(key):
    need = {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "Exists"}]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": need}}


def stopped(name):
    it = machine(name)
    it["spec"]["runStrategy"] = "Halted"
    return it


def of_class(name, storage_class):
    it = machine(name)
    it["spec"]["dataVolumeTemplates"][0]["spec"]["storage"]["storageClassName"] = storage_class
    return it


def https(secret):
    return {"port": servers.free_port(), "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": secret}]}}


def api_key(product, **spec):
    """A key to an API, which may be there or not."""
    def inject(world, space):
        portal = "devportal.kuadrant.io/v1alpha1"
        target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "web"}
        offered = {"apiVersion": portal, "kind": "APIProduct", "metadata": {"name": "shop"},
                   "spec": {"displayName": "Shop", "approvalMode": "manual", "publishStatus": "Published", "targetRef": target}}
        key = {"apiVersion": portal, "kind": "APIKey", "metadata": {"name": "web"},
               "spec": {"apiProductRef": {"name": product, "namespace": space}, "planTier": "gold", "useCase": "to see it",
                        "requestedBy": {"userId": "alice"}, **spec}}
        world.apply(space, offered, key)
    return inject


GOOD = {"name": "web", "sshKey": KEY}
AUTO = {"prune": True, "selfHeal": True}
VM = "vm/web"

FAULTS = [
    # form
    Fault("an answer of the wrong form", "form", "name: it does not have the wanted form", "voyage/run",
          run_of({**GOOD, "name": "Not_A_Name"})),
    Fault("an answer that is missing", "form", "sshKey", "voyage/run", run_of({"name": "web"})),
    Fault("a template that does not exist", "form", "nowhere", "voyage/run", run_of(GOOD, "template:default/nowhere")),
    # run
    Fault("a step whose source is not there", "run", "nothing-here", "voyage/run",
          own_template({"id": "files", "name": "f", "action": "fetch:plain", "input": {"url": "./nothing-here"}})),
    Fault("a step that asks for a missing file", "run", "missing.txt", "voyage/run",
          own_template({"id": "move", "name": "m", "action": "fs:rename", "input": {"files": [{"from": "missing.txt", "to": "b"}]}})),
    # commit
    Fault("a branch that does not exist", "commit", "unable to resolve \"nowhere\"", "application/SPACE",
          manifests(config_map(), revision="nowhere")),
    Fault("a repository that was deleted", "commit", "SPACE", "application/SPACE", removed_repository),
    # render
    Fault("YAML that is none", "render", "a.yaml: yaml: line 2", "application/SPACE",
          application({"manifests/a.yaml": "a: [b\n c: d"})),
    Fault("a kustomization with a missing file", "render", "missing.yaml", "application/SPACE",
          application({"manifests/kustomization.yaml": "resources: [missing.yaml]\n"})),
    Fault("a path that is not in the commit", "render", "no such file or directory", "application/SPACE",
          manifests(config_map(), path="elsewhere")),
    # admission
    Fault("an object that is invalid", "admission", "must be between 1 and 65535", "service/s",
          manifests({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 99999}]}})),
    Fault("a machine that the webhook refuses", "admission", "denied the request", VM,
          manifests({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"},
                     "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {"disks": [{"name": "no", "disk": {}}]}}}}}})),
    Fault("a quota that is used up", "admission", "exceeded quota: small", "application/SPACE",
          quota({"count/configmaps": "1"}, manifests(config_map()))),
    # sync
    Fault("a namespace that is not there", "sync", "not found", "application/SPACE",
          manifests(config_map(), namespace="not-here-SPACE")),
    Fault("nobody syncs", "sync", "no automated policy", "application/SPACE", manifests(config_map(), automated=None)),
    Fault("a cluster that nobody knows", "sync", "https://nowhere.example", "application/SPACE",
          manifests(config_map(), server="https://nowhere.example")),
    Fault("an Application that was deleted", "sync", "openshift-gitops/SPACE", "voyage/run", removed_application),
    # scheduling
    Fault("more memory than any node has", "scheduling", "Insufficient memory", VM, objects(machine("web", memory="900Gi"))),
    Fault("labels that no node has", "scheduling", "nodeSelector", VM,
          objects(machine("web", nodeSelector={"disk": "ssd"}))),
    # disk
    Fault("an image that is not there", "disk", "nowhere", VM,
          objects(machine("web", {"sourceRef": {"kind": "DataSource", "name": "nowhere", "namespace": "fairway-images"}}))),
    Fault("an import that the server answers with 404", "disk", "404", VM,
          lambda world, space: world.apply(space, machine("web", {"source": {"http": {"url": world.web("missing.img")}}}))),
    Fault("a disk that is too small", "disk", "too small", VM, objects(machine("web", size="100Mi"))),
    Fault("a claim that is not there", "disk", "elsewhere", VM,
          objects(machine("web", volumes=[{"name": "root", "persistentVolumeClaim": {"claimName": "elsewhere"}},
                                          {"name": "seed", "cloudInitNoCloud": SEED}]))),
    # boot
    Fault("a disk with nothing on it", "boot", "blank", VM, objects(machine("web", {"source": {"blank": {}}})), guest=True),
    Fault("a ConfigMap that a disk needs", "boot", "elsewhere", VM,
          objects(machine("web", volumes=[{"name": "root", "dataVolume": {"name": "web-root"}},
                                          {"name": "seed", "configMap": {"name": "elsewhere"}}]))),
    # cloud-init
    Fault("user data that is no YAML", "cloud-init", "user data: line", VM,
          objects(machine("web", seed={"userData": "#cloud-config\n  a: [b\n c"})), guest=True),
    Fault("a command that fails", "cloud-init", "it ended with 3", VM,
          objects(machine("web", seed={"userData": "#cloud-config\nruncmd: [[sh, -c, exit 3]]\n"})), guest=True),
    Fault("a Secret with user data that is not there", "cloud-init", "Secret \"elsewhere\"", VM,
          objects(machine("web", seed={"secretRef": {"name": "elsewhere"}}))),
    # Service
    Fault("a selector that picks nobody", "Service", "app=shop", "service/web", objects(service(selector={"app": "shop"}))),
    Fault("a Service without selector and endpoints", "Service", "no endpoint", "service/web", objects(fixed_service())),
    Fault("a port at which nobody listens", "Service", "port 8081", VM,
          objects(machine("web"), service(target=8081)), guest=True),
    # gateway
    Fault("a class that does not exist", "gateway", "nowhere", "gateway/web",
          published(gateway=gateway(gateway_class="nowhere"))),
    Fault("a backend that does not exist", "gateway", "elsewhere", "httproute/web",
          published(route=http_route("x.apps.fairway.localhost", backend="elsewhere"), gateway=gateway())),
    Fault("a host name that the listener does not have", "gateway", "NoMatchingListenerHostname", "httproute/web",
          published(host="other.example.com")),
    Fault("a Gateway that does not exist", "gateway", "/elsewhere", "httproute/web",
          published(route=http_route("x.apps.fairway.localhost", parent="elsewhere"))),
    Fault("a policy whose target does not exist", "gateway", "elsewhere", "authpolicy/web",
          published(policy("AuthPolicy", "elsewhere", {"rules": {"authentication": {"a": {"anonymous": {}}}}}))),
    Fault("a host name that somebody else has", "gateway", "HostAlreadyClaimed", "route/web", occupied),
    Fault("a host name that nobody has", "gateway", "nobody.apps.fairway.localhost", "https://nobody.apps.fairway.localhost/x",
          lambda world, space: None),
    # More of each, such as people run into.
    Fault("a size that is not offered", "form", "size", "voyage/run", run_of({**GOOD, "size": "gigantic"})),
    Fault("a repository that somebody has already", "run", "SPACE", "voyage/run", taken_repository),
    Fault("a repository with no commit", "commit", "SPACE", "application/SPACE", empty_repository),
    Fault("a chart that breaks off", "render", "broken.yaml", "application/SPACE",
          application({"manifests/Chart.yaml": "apiVersion: v2\nname: c\nversion: 0.1.0\n",
                       "manifests/templates/broken.yaml": "a: {{ if .Values.x }}\n"})),
    Fault("a rule of the cluster that is broken", "admission", "everything here has an owner", "application/SPACE", forbidden_by_policy),
    Fault("a kind that nobody has defined", "sync", "Boat", "application/SPACE",
          manifests({"apiVersion": "harbour.example.com/v1", "kind": "Boat", "metadata": {"name": "gull"}})),
    Fault("a project that does not let it in", "sync", "p-SPACE", "application/SPACE", unwelcome),
    Fault("an affinity to no node", "scheduling", "affinity", VM, objects(machine("web", affinity=affinity("gpu")))),
    Fault("a storage class that does not exist", "disk", "golden", VM, objects(of_class("web", "golden"))),
    Fault("a Secret that a disk needs", "boot", "elsewhere", VM,
          objects(machine("web", volumes=[{"name": "root", "dataVolume": {"name": "web-root"}},
                                          {"name": "seed", "secret": {"secretName": "elsewhere"}}]))),
    Fault("an SSH key in a Secret that is not there", "cloud-init", "Secret \"nokeys\"", VM,
          objects(machine("web", accessCredentials=[{"sshPublicKey": {
              "source": {"secret": {"secretName": "nokeys"}}, "propagationMethod": {"noCloud": {}}}}]))),
    Fault("packages that the image cannot install", "cloud-init", "packages: this guest cannot do that", VM,
          objects(machine("web", seed={"userData": "#cloud-config\npackages: [nginx]\n"})), guest=True),
    Fault("a port by a name that nobody gave", "Service", "web-port", VM,
          objects(machine("web"), service(target="web-port")), guest=True),
    Fault("a port that the Service does not have", "gateway", "9999", "httproute/web",
          lambda world, space: published(route={**http_route(f"{space}.apps.fairway.localhost"), "spec": {
              **http_route(f"{space}.apps.fairway.localhost")["spec"],
              "rules": [{"backendRefs": [{"name": "web", "port": 9999}]}]}})(world, space)),
    # Disks, APIs and keys by themselves.
    Fault("a DataVolume by itself whose server answers with 404", "filling", "404", "dv/web",
          lambda world, space: world.apply(space, {
              "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "web"},
              "spec": {"source": {"http": {"url": world.web("missing.img")}}, "storage": {"resources": {"requests": {"storage": "300Mi"}}}}})),
    Fault("a key to an API that is not there", "product", "/elsewhere not found", "apikey/web", api_key("elsewhere")),
    Fault("a key whose Secret is not there", "secret", "/mine not found", "apikey/web", api_key("shop", secretRef={"name": "mine"})),
    Fault("a certificate that is not there", "gateway", "no-cert", "gateway/web", objects(gateway(**https("no-cert")))),
    Fault("a listener that lets no route of here in", "gateway", "NotAllowedByListeners", "httproute/web",
          published(gateway=gateway(allowedRoutes={"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "a"}}}}),
                    host="x.apps.fairway.localhost")),
]


class Sound:
    """Something that nothing is wrong with: the program ends with 0, and the verdict says why it is as it is."""

    def __init__(self, name, says, ask, make, guest=False):
        self.name, self.says, self.ask, self.make, self.guest = name, says, ask, make, guest


SOUND = [
    Sound("an Application that is in sync", "every link holds", "application/SPACE", manifests(config_map())),
    Sound("an object of that Application", "every link holds", "configmap/a", manifests(config_map())),
    Sound("a machine that runs", "every link holds", VM, objects(machine("web")), guest=True),
    Sound("a machine that is switched off", "its runStrategy is Halted", VM, objects(stopped("web"))),
    Sound("a Service of a machine that is switched off", "its runStrategy is Halted", "service/web", objects(stopped("web"), service())),
]

# What cannot be answered: the words, and what is said about it. The program ends with 1.
ERRORS = [
    (["why", "vm/nobody"], "nobody"),
    (["vm", "why", "nobody"], "nobody"),
    (["why", "configmap/nobody", "-o", "json"], "nobody"),
    (["why", "application/nobody"], "nobody"),
    (["why", "boat/gull"], "boat"),
    (["why", "vm/nobody", "-n", "no-such-namespace"], "nobody"),
]
