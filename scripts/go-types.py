"""Writes crates/kernel/kinds/src/go_types.txt: the fields of Kubernetes' internal Go structs, in their order.

    scripts/go-types.py KUBERNETES API     # the source trees of k8s.io/kubernetes and k8s.io/api

A line is a struct: its name, then `GoName json kind` for each field. Kinds are `text`, `number`, `flag` and `null` (what
the field shows when it is not set), or the name of a struct, after `*` for a pointer, `[]` for a list, `+` for an
embedded one.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
NUMBERS = {"int", "int32", "int64", "float64", "uint32"}
# Internal package, versioned package, and the structs of which differences are shown.
SOURCES = [
    ("core", "core/v1", ["PodSpec", "PersistentVolumeClaimSpec", "PersistentVolumeSource"]),
    ("flowcontrol", "flowcontrol/v1", ["PriorityLevelConfigurationSpec"]),
]


def structs(path):
    text = path.read_text()
    named = dict(re.findall(r"^type (\w+) (string|bool|int|int32|int64)$", text, re.M))
    found = {}
    for name, body in re.findall(r"^type (\w+) struct \{\n(.*?)^\}", text, re.M | re.S):
        fields = []
        for line in body.splitlines():
            line = line.split("//")[0].strip()
            if match := re.match(r'(\w+)\s+([\w.*\[\]]+)(?:\s+`json:"([^",]*).*`)?$', line):
                fields.append(match.groups())
            elif match := re.match(r'(\w+)(?:\s+`.*`)?$', line):
                fields.append((match[1], "+", None))
        found[name] = fields
    return found, named


def kind(go, internal, named):
    if go == "+":
        return go
    prefix, bare = re.match(r"(\*|\[\])?(.*)", go).groups()
    prefix = prefix or ""
    if bare in internal:
        return prefix + bare
    if prefix or bare.startswith(("map[", "metav1.Time")):
        return "null"
    bare = named.get(bare, bare)
    if bare in ("string", "types.UID"):
        return "text"
    if bare in NUMBERS or bare == "intstr.IntOrString":
        return "number"
    return "flag" if bare == "bool" else "null"


def main(kubernetes, api):
    lines = []
    for package, version, roots in SOURCES:
        internal, named = structs(pathlib.Path(kubernetes) / "pkg/apis" / package / "types.go")
        tags = {
            (name, field): tag
            for name, fields in structs(pathlib.Path(api) / version / "types.go")[0].items()
            for field, _, tag in fields
        }
        todo, done = list(roots), []
        while todo:
            name = todo.pop(0)
            if name in done:
                continue
            done.append(name)
            shown = []
            for field, go, _ in internal[name]:
                what = kind(go, internal, named)
                if what == "+":
                    what = "+" + field
                json = tags.get((name, field)) or field[0].lower() + field[1:]
                shown.append(f"{field} {json} {what}")
                bare = what.lstrip("*[]+")
                if bare in internal:
                    todo.append(bare)
            lines.append(f"{name}: " + ", ".join(shown))
    (ROOT / "crates/kernel/kinds/src/go_types.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
