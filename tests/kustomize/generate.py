"""Random kustomizations: directories of files, made from a seed.

What is made is mostly meaningful, so that builds get somewhere, and wrong now and then, so that errors are compared, too.
"""

import json
import random

KINDS = ["Deployment", "StatefulSet", "DaemonSet", "CronJob", "Service", "ConfigMap", "Secret", "ServiceAccount", "Role",
         "ClusterRole", "RoleBinding", "ClusterRoleBinding", "Ingress", "Namespace", "HorizontalPodAutoscaler",
         "NetworkPolicy", "PodDisruptionBudget", "PersistentVolumeClaim", "Widget", "CustomResourceDefinition"]
API = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "CronJob": "batch/v1",
       "Role": "rbac.authorization.k8s.io/v1", "ClusterRole": "rbac.authorization.k8s.io/v1",
       "RoleBinding": "rbac.authorization.k8s.io/v1", "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
       "Ingress": "networking.k8s.io/v1", "NetworkPolicy": "networking.k8s.io/v1",
       "HorizontalPodAutoscaler": "autoscaling/v2", "PodDisruptionBudget": "policy/v1", "Widget": "example.com/v1",
       "CustomResourceDefinition": "apiextensions.k8s.io/v1"}
NAMES = ["web", "api", "db", "cache", "job"]
IMAGES = ["nginx", "nginx:1.2", "registry.local:5000/app/web:v1", "redis@sha256:abc", "busybox:1.36@sha256:def"]
WORKLOADS = ["Deployment", "StatefulSet", "DaemonSet"]


def plain(text):
    """Whether a text may stand without quotes and still be text, to be on the safe side."""
    return text.replace("-", "").replace("/", "").isalpha() and text.isascii() and text.lower() not in (
        "true", "false", "yes", "no", "on", "off", "null", "y", "n")


def dump(value, rng, indent=0):
    """YAML, now in block, now in flow style."""
    pad = "  " * indent
    if isinstance(value, dict) and value and rng.random() > 0.07:
        lines = []
        for key, item in value.items():
            name = key if plain(key) else json.dumps(key)
            if isinstance(item, (dict, list)) and item:
                text = dump(item, rng, indent + (0 if isinstance(item, list) and rng.random() < 0.5 else 1))
                lines.append(f"{pad}{name}: {text}" if text[0] in "{[" else f"{pad}{name}:\n{text}")
            elif isinstance(item, str) and "\n" in item and item.strip() and not item[0].isspace():
                body = "".join(f"{pad}  {line}\n" if line else "\n" for line in item.rstrip("\n").split("\n"))
                mark = "|" if item.endswith("\n") and not item.endswith("\n\n") else "|-" if not item.endswith("\n") else "|+"
                if mark == "|+":
                    lines.append(f"{pad}{name}: {json.dumps(item)}")
                else:
                    lines.append(f"{pad}{name}: {mark}\n{body.rstrip(chr(10))}")
            else:
                lines.append(f"{pad}{name}: {scalar(item, rng)}")
        return "\n".join(lines)
    if isinstance(value, list) and value and rng.random() > 0.07:
        lines = []
        for item in value:
            if isinstance(item, (dict, list)) and item:
                text = dump(item, rng, indent + 1)
                lines.append(f"{pad}- {text.lstrip()}" if text.lstrip()[0] not in "{[" else f"{pad}- {text}")
            else:
                lines.append(f"{pad}- {scalar(item, rng)}")
        return "\n".join(lines)
    return json.dumps(value)


def scalar(value, rng):
    if isinstance(value, str) and plain(value) and rng.random() < 0.8:
        return value
    if value is None:
        return rng.choice(["null", "", "~"])
    if isinstance(value, str) and value.isprintable() and "'" not in value and value.isascii() and rng.random() < 0.3:
        return f"'{value}'"
    return json.dumps(value)


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.files = {}
        # Names that generators have made, by kind.
        self.generated = {}

    def chance(self, probability):
        return self.rng.random() < probability

    def pick(self, options):
        return self.rng.choice(options)

    def write(self, path, *documents):
        texts = [dump(document, self.rng) if not isinstance(document, str) else document for document in documents]
        self.files[path] = "\n---\n".join(texts) + ("\n" if self.chance(0.9) else "")

    # resources

    def meta(self, name, namespace=True):
        meta = {"name": name}
        if namespace and self.chance(0.1):
            meta["namespace"] = self.pick(["default", "prod", "dev"])
        if self.chance(0.5):
            meta["labels"] = {"app": name, **({"tier": self.pick(["front", "1", "true"])} if self.chance(0.4) else {})}
        if self.chance(0.3):
            meta["annotations"] = self.pick([{"note": "a: b # c"}, {"port": 8080}, {"on": True, "v": 1.5}, {}, {"x": None},
                                             {"long": "word " * 30}, {"multi": "a\nb\n"}])
        return meta

    def container(self, name):
        made = {"name": name, "image": self.pick(IMAGES)}
        if self.chance(0.4):
            made["ports"] = [{"containerPort": port, **({"protocol": self.pick(["TCP", "UDP"])} if self.chance(0.3) else {}),
                              **({"name": f"p{port}"} if self.chance(0.3) else {})}
                             for port in self.rng.sample([80, 443, 8080], self.pick([1, 2]))]
        if self.chance(0.5):
            made["env"] = [{"name": f"E{at}", **self.pick([
                {"value": self.pick(["x", "1", "$(VAR)", "true", ""])},
                {"valueFrom": {"configMapKeyRef": {"name": self.pick(NAMES + ["settings"]), "key": "k"}}},
                {"valueFrom": {"secretKeyRef": {"name": self.pick(NAMES + ["keys"]), "key": "k"}}}])}
                for at in range(self.pick([1, 2, 3]))]
        if self.chance(0.2):
            made["envFrom"] = [{"configMapRef": {"name": self.pick(["settings", "web"])}}]
        if self.chance(0.2):
            made["args"] = ["--a", self.pick(["$(VAR)", "b c", "1"])]
        if self.chance(0.2):
            made["volumeMounts"] = [{"name": "data", "mountPath": "/data"}, {"name": "cfg", "mountPath": "/cfg"}]
        if self.chance(0.15):
            made["resources"] = self.pick([{}, {"limits": {"cpu": "100m", "memory": "1Gi"}}, {"requests": {"cpu": 1}}])
        return made

    def pod(self, name):
        names = self.rng.sample(["main", "side", "log"], self.pick([1, 1, 2]))
        pod = {"containers": [self.container(one) for one in names]}
        if self.chance(0.2):
            pod["initContainers"] = [self.container("init")]
        if self.chance(0.3):
            pod["volumes"] = [{"name": "cfg", "configMap": {"name": self.pick(["settings", "web"])}},
                              {"name": "data", **self.pick([{"emptyDir": {}}, {"secret": {"secretName": "keys"}},
                                                            {"persistentVolumeClaim": {"claimName": name}}])}]
        if self.chance(0.3):
            pod["serviceAccountName"] = self.pick(NAMES)
        if self.chance(0.15):
            pod["tolerations"] = [{"key": "a", "operator": "Exists"}]
        if self.chance(0.15):
            pod["imagePullSecrets"] = [{"name": "keys"}]
        return pod

    def resource(self, kind, name):
        made = {"apiVersion": API.get(kind, "v1"), "kind": kind,
                "metadata": self.meta(name, kind not in ("Namespace", "ClusterRole", "ClusterRoleBinding"))}
        template = lambda: {"metadata": {"labels": {"app": name}}, "spec": self.pod(name)}  # noqa: E731
        if kind in WORKLOADS:
            made["spec"] = {"selector": {"matchLabels": {"app": name}}, "template": template()}
            if kind != "DaemonSet" and self.chance(0.6):
                made["spec"]["replicas"] = self.pick([1, 3])
            if kind == "StatefulSet":
                made["spec"]["serviceName"] = self.pick(NAMES)
                if self.chance(0.4):
                    made["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}]
        elif kind == "CronJob":
            made["spec"] = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template()}}}
        elif kind == "Service":
            made["spec"] = {"selector": {"app": name}, "ports": [
                {"port": port, **self.pick([{"targetPort": port}, {"protocol": "TCP"}, {"name": f"p{port}"}])}
                for port in self.rng.sample([80, 443], self.pick([1, 2]))]}
        elif kind == "ConfigMap":
            made["data"] = {"k": self.pick(["v", "1", "true", "line\nline\n", "", "a\tb", " lead", "x: y"]),
                            "conf.yaml": "a: 1\nb:\n  c: d\n"}
        elif kind == "Secret":
            made["type"] = "Opaque"
            made[self.pick(["data", "stringData"])] = {"k": "dg=="}
        elif kind in ("Role", "ClusterRole"):
            made["rules"] = [{"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get"],
                              **({"resourceNames": ["keys", "settings", "web"]} if self.chance(0.5) else {})}]
        elif kind in ("RoleBinding", "ClusterRoleBinding"):
            made["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io",
                               "kind": "ClusterRole" if kind == "ClusterRoleBinding" else self.pick(["Role", "ClusterRole"]),
                               "name": self.pick(NAMES)}
            made["subjects"] = [{"kind": "ServiceAccount", "name": self.pick(NAMES + ["default"]),
                                 **({"namespace": self.pick(["default", "prod", "dev", "other"])} if self.chance(0.5) else {})}]
        elif kind == "Ingress":
            made["spec"] = {"rules": [{"host": "h", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {
                "service": {"name": self.pick(NAMES), "port": {"number": 80}}}}]}}],
                "tls": [{"hosts": ["h"], "secretName": "keys"}]}
        elif kind == "HorizontalPodAutoscaler":
            made["spec"] = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": self.pick(WORKLOADS[:2]), "name": name},
                            "maxReplicas": 3}
        elif kind == "NetworkPolicy":
            made["spec"] = {"podSelector": {"matchLabels": {"app": name}}, "ingress": [
                {"from": [{"podSelector": {"matchLabels": {"app": "x"}}}]}]}
        elif kind == "PodDisruptionBudget":
            made["spec"] = {"selector": {"matchLabels": {"app": name}}, "minAvailable": 1}
        elif kind == "PersistentVolumeClaim":
            made["spec"] = {"storageClassName": "fast", "volumeName": "vol"}
        elif kind == "Widget":
            made["spec"] = {"parts": [{"name": "a", "size": 1}, {"name": "b", "size": 2.5}], "image": "nginx:1",
                            "containers": [{"name": "c", "image": "nginx"}], "ref": {"name": self.pick(NAMES)},
                            "when": self.pick([None, "2020-01-01", True])}
        elif kind == "CustomResourceDefinition":
            made["metadata"]["name"] = "widgets.example.com"
            made["spec"] = {"group": "example.com", "names": {"kind": "Widget", "plural": "widgets"}, "scope": "Namespaced"}
        if self.chance(0.05):
            made["metadata"]["creationTimestamp"] = None
            made["status"] = {}
        return made

    # kustomizations

    def selector(self):
        made = {}
        if self.chance(0.7):
            made["kind"] = self.pick(WORKLOADS + ["Service", "ConfigMap", "Deployment|Service", ".*Set"])
        if self.chance(0.4):
            made["name"] = self.pick(NAMES + ["w.*", "(web|api)", ".*"])
        if self.chance(0.15):
            made["labelSelector"] = self.pick(["app=web", "app in (web,db)", "!tier", "app,tier!=front"])
        if self.chance(0.1):
            made["annotationSelector"] = "note"
        if self.chance(0.1):
            made["namespace"] = self.pick(["default", "prod"])
        return made or {"kind": "Deployment"}

    def patch(self, known):
        kind, name = self.pick(known) if known and self.chance(0.9) else (self.pick(KINDS), self.pick(NAMES))
        if self.chance(0.3):
            fitting = [
                {"op": "add", "path": "/metadata/annotations/added", "value": "yes"},
                {"op": "add", "path": "/metadata/labels", "value": {"new": "label"}},
                {"op": "replace", "path": "/metadata/name", "value": "renamed"},
                {"op": "test", "path": "/kind", "value": kind},
                {"op": "add", "path": "/data", "value": {"a": "b"}}]
            if kind in WORKLOADS:
                fitting += [
                    {"op": "add", "path": "/spec/replicas", "value": 5},
                    {"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "added", "image": "nginx"}},
                    {"op": "add", "path": "/spec/template/spec/containers/0/args", "value": ["x"]},
                    {"op": "copy", "from": "/metadata", "path": "/spec/copied"},
                    {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "other:2"}]
            if self.chance(0.05):
                fitting = [{"op": "remove", "path": "/metadata/labels"}, {"op": "replace", "path": "/spec/none", "value": 1}]
            operations = [self.pick(fitting) for _ in range(self.pick([1, 2]))]
            text = json.dumps(operations) if self.chance(0.5) else dump(operations, random.Random(1))
            target = {"kind": kind, **({"name": name} if self.chance(0.7) else {})}
            return {"target": self.selector() if self.chance(0.05) else target, "patch": text}
        body = {"apiVersion": API.get(kind, "v1"), "kind": kind, "metadata": {"name": name}}
        if self.chance(0.3):
            body["metadata"].update(self.pick([
                {"labels": {"patched": "1", "tier": None}}, {"annotations": {"patched": "x", "note": None}},
                {"annotations": None}, {"labels": {"$patch": "replace", "only": "this"}}, {"namespace": "prod"}]))
        if kind in WORKLOADS:
            container = {"name": self.pick(["main", "side", "new"])}
            container.update(self.pick([
                {"image": "patched:1"}, {"env": [{"name": "E0", "value": "p"}, {"name": "E9", "value": "q"}]},
                {"$patch": "delete"}, {"ports": [{"containerPort": 80, "name": "p"}]}, {"env": [{"$patch": "replace"}, {"name": "Z"}]},
                {"volumeMounts": [{"mountPath": "/data", "name": "other"}]}, {"args": ["x"]}, {"env": None},
                {"ports": [{"containerPort": 8080, "protocol": "UDP"}, {"containerPort": 8080}]},
                {"resources": {"limits": {"cpu": None, "memory": "2Gi"}}}]))
            spec = {"template": {"spec": {"containers": [container]}}}
            if self.chance(0.2):
                spec["template"]["spec"]["volumes"] = [{"name": "data", "emptyDir": None, "hostPath": {"path": "/x"}}]
            if self.chance(0.2):
                spec["replicas"] = self.pick([7, None])
            if self.chance(0.1):
                spec["template"]["spec"]["tolerations"] = [{"key": "b"}]
            body["spec"] = spec
        elif kind == "Service":
            body["spec"] = {"ports": [{"port": self.pick([80, 443, 9]), "name": "x", **({"protocol": "UDP"} if self.chance(0.3) else {})}]}
        elif kind in ("ConfigMap", "Secret"):
            body["data"] = self.pick([{"k": "patched"}, {"k": None, "n": "1"}, {"$patch": "replace", "z": "y"}, None])
        elif kind == "Widget":
            body["spec"] = self.pick([{"parts": [{"name": "a", "size": 9}]}, {"image": None}, {"when": "now"}])
        else:
            body["metadata"].setdefault("annotations", {"p": "q"})
        if self.chance(0.04):
            body = {**{key: body[key] for key in ("apiVersion", "kind", "metadata")}, "$patch": "delete"}
        made = {"patch": dump(body, random.Random(self.rng.random()))}
        if self.chance(0.3):
            made["target"] = self.selector() if self.chance(0.2) else {"kind": kind, **self.pick([
                {}, {"name": name}, {"name": name[:1] + ".*"}, {"labelSelector": self.pick(["app=web", "!tier", "app in (web,db)"])}])}
        if self.chance(0.1):
            made["options"] = {"allowNameChange": True, "allowKindChange": self.chance(0.5)}
        return made

    def generator(self, directory, at, kind, known):
        made = {"name": self.pick(["settings", "keys", "web", f"gen{at}"])}
        if self.chance(0.7):
            made["literals"] = [f"{key}={value}" for key, value in self.rng.sample(
                [("a", "1"), ("b", "two words"), ("c", "'quoted'"), ("d", "x=y"), ("e", "<&>"), ("f", "é")], self.pick([1, 2]))]
        if self.chance(0.3):
            file = f"{directory}/data{at}.txt"
            self.files[file] = self.pick(["text\n", "", "a\r\nb\r\n", "no end", "tab\tand é\n", " lead\n\n", "x" * 200 + "\n"])
            made["files"] = [self.pick([f"data{at}.txt", f"key=data{at}.txt"])]
        if self.chance(0.2):
            self.files[f"{directory}/env{at}.env"] = "# c\nX=1\n\n Y=a=b\nZ\n"
            made["envs"] = [f"env{at}.env"]
        there = made["name"] in self.generated.get(kind, set()) or (kind, made["name"]) in known
        if there and self.chance(0.95):
            made["behavior"] = self.pick(["merge", "replace"])
        elif self.chance(0.1):
            made["behavior"] = self.pick(["create", "create", "merge"])
        self.generated.setdefault(kind, set()).add(made["name"])
        if self.chance(0.3):
            made["options"] = self.pick([{"disableNameSuffixHash": True}, {"labels": {"g": "1"}}, {"immutable": True},
                                         {"annotations": {"n": "m"}}])
        if self.chance(0.1):
            made["namespace"] = "prod"
        return made

    def replacement(self, known):
        kind, name = self.pick(known) if known else ("Deployment", "web")
        paths = ["metadata.labels.copied", "metadata.annotations.copied", "metadata.annotations.a\\.b/c", "metadata.name", "made.here"]
        if kind in WORKLOADS:
            paths += ["spec.template.spec.containers.0.image", "spec.template.spec.containers.[name=main].image", "spec.replicas",
                      "spec.template.spec.containers.*.env.[name=E0].value", "spec.template.spec.containers.*.image"] * 2
        if kind == "ConfigMap":
            paths += ["data.k", "data.conf\\.yaml.a", "data.conf\\.yaml.b.c", "data.new"] * 3
        if kind == "Service":
            paths += ["spec.ports.0.port", "spec.ports.0.name", "spec.selector.app"] * 2
        target = {"select": {"kind": kind, **({"name": name} if self.chance(0.5) else {})}, "fieldPaths": [self.pick(paths)]}
        if self.chance(0.9):
            target["options"] = self.pick([{"create": True}, {"create": True}, {"delimiter": ":", "index": 1}, {"delimiter": "/", "index": 0},
                                           {"delimiter": "-", "index": -1}, {"create": True, "delimiter": "/", "index": 9}])
        if self.chance(0.2):
            target["reject"] = [{"name": self.pick(NAMES)}]
        made = {"targets": [target]}
        if self.chance(0.2):
            made["sourceValue"] = self.pick(["static", "1", "a:b"])
        else:
            kind, name = self.pick(known) if known and self.chance(0.95) else (self.pick(KINDS), self.pick(NAMES))
            made["source"] = {"kind": kind, "name": name}
            if self.chance(0.4):
                made["source"]["fieldPath"] = self.pick(["metadata.name", "data.k", "metadata.namespace", "spec.replicas",
                                                         "spec.template.spec.containers.[name=main].image", "metadata.labels"])
            if self.chance(0.3):
                made["source"]["options"] = {"delimiter": self.pick([":", "-"]), "index": self.pick([0, 1])}
        return made

    def kustomization(self, directory, resources, known, component=False):
        made = {"apiVersion": "kustomize.config.k8s.io/" + ("v1alpha1" if component else "v1beta1"),
                "kind": "Component" if component else "Kustomization"}
        if resources:
            made["resources"] = resources
        maybe = self.chance
        if maybe(0.3):
            made["namePrefix"] = self.pick(["pre-", "a-", "x"])
        if maybe(0.2):
            made["nameSuffix"] = self.pick(["-post", "-b"])
        if maybe(0.3):
            made["namespace"] = self.pick(["prod", "staging", "default"])
        if maybe(0.2):
            made["commonLabels"] = {"env": self.pick(["prod", "true"]), "app": "common"}
        if maybe(0.3):
            made["labels"] = [{"pairs": {"team": "a"}, **self.pick([{}, {"includeSelectors": True}, {"includeTemplates": True},
                              {"fields": [{"path": "spec/extra", "kind": "Widget", "create": True}]}])}]
        if maybe(0.2):
            made["commonAnnotations"] = {"owner": "me", "n": "1"}
        if maybe(0.3):
            made["images"] = [{"name": self.pick(["nginx", "redis", "registry.local:5000/app/web", "busybox"]), **self.pick(
                [{"newTag": "9"}, {"newName": "other/img"}, {"digest": "sha256:123"}, {"newName": "n", "newTag": "t"},
                 {"tagSuffix": "-x"}, {"newTag": "1", "digest": "sha256:9"}])}]
        scalable = [name for kind, name in known if kind in ("Deployment", "StatefulSet")]
        if maybe(0.3) and (scalable or maybe(0.05)):
            made["replicas"] = [{"name": self.pick(scalable or NAMES), "count": 4}]
        for at in range(self.pick([0, 0, 1, 1, 2])):
            self.add_patch(made, directory, at, self.patch(known))
        if maybe(0.12):
            made["transformers"] = [self.transformer(directory, known)]
        if maybe(0.06):
            made["generators"] = [dump({"apiVersion": "builtin", "kind": "ConfigMapGenerator", "metadata": {"name": f"by-{directory}"},
                                        "literals": ["a=b"], "behavior": "create"}, self.rng)]
        for at in range(self.pick([0, 0, 1, 2])):
            field, kind = self.pick([("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")])
            made.setdefault(field, []).append(self.generator(directory, f"{at}", kind, known))
        if maybe(0.15):
            made["generatorOptions"] = self.pick([{"disableNameSuffixHash": True}, {"labels": {"all": "x"}}, {"immutable": True}])
        if maybe(0.2):
            made["replacements"] = [self.replacement(known)]
        if maybe(0.05) and known:
            kind, name = self.pick(known)
            made["vars"] = [{"name": "VAR", "objref": {"kind": kind, "name": name, "apiVersion": API.get(kind, "v1")}}]
        if maybe(0.08):
            self.write(f"{directory}/config.yaml", {
                "nameReference": [{"kind": "Deployment", "fieldSpecs": [{"kind": "Widget", "path": "spec/ref/name"}]}],
                "images": [{"kind": "Widget", "path": "spec/image"}],
                "commonLabels": [{"kind": "Widget", "path": "spec/sel", "create": True}]})
            made["configurations"] = ["config.yaml"]
        if maybe(0.07):
            made["buildMetadata"] = self.rng.sample(["originAnnotations", "transformerAnnotations", "managedByLabel"], self.pick([1, 2]))
        if maybe(0.05):
            made["sortOptions"] = self.pick([{"order": "fifo"}, {"order": "legacy"},
                                             {"order": "legacy", "legacySortOptions": {"orderFirst": ["Service"], "orderLast": ["ConfigMap"]}}])
        if maybe(0.02):
            made["nameprefix" if maybe(0.5) else "unknownField"] = "z-"
        if len(made) == 2:
            made["namePrefix"] = "only-"
        self.write(f"{directory}/kustomization.yaml", made)

    def add_patch(self, made, directory, at, patch):
        """Puts a patch into one of the fields that take it, written out or in a file."""
        is_json = patch["patch"][0] in "[-"
        if self.chance(0.15) and not is_json and "target" not in patch and "options" not in patch:
            self.files[f"{directory}/patch{at}.yaml"] = patch["patch"] + "\n"
            made.setdefault("patchesStrategicMerge", []).append(self.pick([f"patch{at}.yaml", patch["patch"]]))
        elif self.chance(0.15) and is_json and "name" in patch["target"]:
            target = {"version": "v1", **patch["target"]}
            made.setdefault("patchesJson6902", []).append({"target": target, "patch": patch["patch"]})
        elif self.chance(0.3):
            self.files[f"{directory}/patch{at}.yaml"] = patch.pop("patch") + "\n"
            made.setdefault("patches", []).append({**patch, "path": f"patch{at}.yaml"})
        else:
            made.setdefault("patches", []).append(patch)

    def transformer(self, directory, known):
        config = self.pick([
            {"kind": "LabelTransformer", "labels": {"by": "transformer", "n": 1}, "fieldSpecs": [
                {"path": "metadata/labels", "create": True}, {"path": "spec/template/metadata/labels", "kind": "Deployment"}]},
            {"kind": "AnnotationsTransformer", "annotations": {"by": "transformer"}, "fieldSpecs": [
                {"path": "metadata/annotations", "create": True}]},
            {"kind": "PrefixTransformer", "prefix": "t-", "fieldSpecs": [{"path": "metadata/name"}]},
            {"kind": "SuffixTransformer", "suffix": "-t", "fieldSpecs": [{"path": "metadata/name", "kind": "Deployment"}]},
            {"kind": "PrefixSuffixTransformer", "prefix": "t-", "suffix": "-t", "fieldSpecs": [{"path": "metadata/name"}]},
            {"kind": "NamespaceTransformer", "unsetOnly": self.chance(0.5),
             "setRoleBindingSubjects": self.pick(["allServiceAccounts", "none", "defaultOnly"]),
             "fieldSpecs": [{"path": "metadata/name", "kind": "Namespace", "create": True}]},
            {"kind": "ImageTagTransformer", "imageTag": {"name": "nginx", "newTag": "t"}, "fieldSpecs": [
                {"path": "spec/image", "kind": "Widget"}]},
            {"kind": "ValueAddTransformer", "value": "added", "targets": [
                {"fieldPath": "metadata/annotations/path", "filePathPosition": 1}, {"fieldPath": "metadata/namespace"}]},
            {"kind": "ReplacementTransformer", "replacements": [self.replacement(known)]},
            {"kind": "PatchTransformer", **self.patch(known)},
            {"kind": "HashTransformer"}])
        config = {"apiVersion": "builtin", **config, "metadata": {"name": "t", "namespace": "moved"}}
        if self.chance(0.5):
            return dump(config, self.rng) + "\n"
        self.write(f"{directory}/transformer.yaml", config)
        return "transformer.yaml"

    def base(self, directory):
        known, resources = [], []
        for at in range(self.pick([1, 2, 2, 3])):
            documents = []
            for _ in range(self.pick([1, 1, 2, 3])):
                key = (self.pick(KINDS), self.pick(NAMES))
                if key[0] == "CustomResourceDefinition":
                    key = (key[0], "widgets.example.com")
                if key in known and self.chance(0.97):
                    continue
                known.append(key)
                documents.append(self.resource(*key))
            if not documents:
                continue
            if self.chance(0.05):
                documents = [{"apiVersion": "v1", "kind": "List", "items": documents}]
            self.write(f"{directory}/r{at}.yaml", *documents)
            resources.append(f"r{at}.yaml")
        self.kustomization(directory, resources, known)
        return known

    def make(self):
        bases = {}
        for name in ["base", "base2"][: self.pick([1, 1, 1, 2])]:
            bases[name] = self.base(name)
        if self.chance(0.25):
            return self.files, "base"
        known = [key for keys in bases.values() for key in keys]
        resources = [f"../{name}" for name in bases]
        if self.chance(0.3):
            extra = (self.pick(KINDS[:-1]), "extra")
            self.write("overlay/extra.yaml", self.resource(*extra))
            resources.append("extra.yaml")
        self.kustomization("overlay", resources, known)
        if self.chance(0.2):
            self.kustomization("component", [], known, component=True)
            text = self.files["overlay/kustomization.yaml"]
            self.files["overlay/kustomization.yaml"] = text.rstrip("\n") + "\ncomponents: [../component]\n" if text[0] != "{" else text
        if self.chance(0.3):
            self.kustomization("top", ["../overlay"], known)
            return self.files, "top"
        return self.files, "overlay"
