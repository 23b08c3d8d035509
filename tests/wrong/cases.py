"""Cases, recorded answers and explained differences, as they lie on disk."""

import dataclasses
import json
import re

import yaml


@dataclasses.dataclass
class Theme:
    stem: str
    title: str
    objects: dict
    setup: list
    cases: list


KEYS = {
    "name", "method", "path", "query", "headers", "accept", "type", "body", "text", "base64",
    "create", "update", "delete", "merge", "strategic", "json", "apply", "cbor", "of", "set", "subresource", "as", "version", "kind",
}


def load(directory):
    """All themes; names of cases are unique, because answers and differences go by them."""
    themes, seen = [], set()
    for path in sorted(directory.glob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        theme = Theme(path.stem, content["theme"], content.get("objects", {}), content.get("setup", []), content["cases"])
        for case in theme.cases:
            if unknown := set(case) - KEYS:
                raise SystemExit(f"{path.name}: {case.get('name')}: unknown key {', '.join(sorted(unknown))}")
            if case["name"] in seen:
                raise SystemExit(f"{path.name}: the name {case['name']!r} occurs twice")
            seen.add(case["name"])
        themes.append(theme)
    return themes


REPEAT = re.compile(r"\$\{([^}]+?)\*(\d+)\}")


def expand(value):
    """`${a*300}` is a text of 300 a's, and a map key may have one too."""
    if isinstance(value, str):
        return REPEAT.sub(lambda match: match[1] * int(match[2]), value)
    if isinstance(value, list):
        return [expand(item) for item in value]
    if isinstance(value, dict):
        return {expand(key): expand(item) for key, item in value.items()}
    return value


def change(target, pointer, value):
    """Sets what a JSON pointer names; null removes it, `-` appends."""
    *path, last = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for step in path:
        target = target[int(step)] if isinstance(target, list) else target.setdefault(step, {})
    if isinstance(target, list):
        if last == "-":
            target.append(value)
        else:
            target[int(last)] = value
    elif value is None:
        target.pop(last, None)
    else:
        target[last] = value


def write_answers(directory, theme, answers):
    text = json.dumps(answers, indent=1, ensure_ascii=False, sort_keys=True)
    (directory / f"{theme.stem}.json").write_text(text + "\n")


def read_answers(directory, theme):
    path = directory / f"{theme.stem}.json"
    if not path.exists():
        raise SystemExit(f"{path} does not exist: record it with --upstream COMMAND --record {theme.stem}")
    return json.loads(path.read_text())


def read_differences(path):
    """Reasons by the name of the case."""
    reasons = {}
    for entry in yaml.safe_load(path.read_text()) or []:
        for name in entry["cases"]:
            reasons[name] = entry["reason"]
    return reasons
