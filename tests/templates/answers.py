"""Answers to the questions of a template that nobody here has written: as a person would give them who takes what is offered.

Where a question offers several ways (an `enum` on which others depend), `choices` yields one set of answers for each.
"""

import re

ENTITIES = {"group": "group:default/team", "user": "user:default/admin", "system": "system:default/shop", "component": "component:default/app"}


def choices(pages, name, known):
    """One set of answers for each way through the form, at most four; some answers are known beforehand."""
    pages = pages if isinstance(pages, list) else [pages]
    ways = [known]
    for schema in pages:
        for key, question in (schema.get("properties") or {}).items():
            options = question.get("enum") or []
            if len(options) > 1 and (key in (schema.get("dependencies") or {}) or leads_on(pages, key)):
                ways = [dict(way, **{key: option}) for option in options for way in ways]
    return [fill(pages, name, way) for way in ways[:4]]


def leads_on(pages, key):
    """Whether other pages are asked or not by the answer."""
    return any(f"parameters.{key}" in str(page.get("when", "")) for page in pages)


def fill(pages, name, chosen):
    answers = dict(chosen)
    for schema in pages:
        if not is_asked(schema, answers):
            continue
        # What is asked may depend on what was answered.
        while True:
            asked = questions(schema, answers)
            missing = [key for key in asked if key not in answers and (asked[key][1] or "default" in asked[key][0])]
            if not missing:
                break
            for key in missing:
                answers[key] = answer(key, asked[key][0], name)
    return answers


def is_asked(page, answers):
    """Whether a page is asked: of conditions those are understood that compare an answer, or take one for true."""
    condition = str(page.get("when", ""))
    compared = re.search(r"parameters\.(\w+)\s*===?\s*['\"]([^'\"]*)['\"]", condition)
    if compared:
        return answers.get(compared.group(1)) == compared.group(2)
    named = re.search(r"parameters\.(\w+)", condition)
    return not named or bool(answers.get(named.group(1)))


def questions(schema, answers):
    """The questions of a page and whether each has to be answered, with those that answers lead to."""
    asked = {}
    required = set(schema.get("required") or [])
    for key, question in (schema.get("properties") or {}).items():
        asked[key] = (question or {}, key in required)
    for key, dependency in (schema.get("dependencies") or {}).items():
        if key not in answers:
            continue
        if isinstance(dependency, list):
            for other in dependency:
                asked[other] = (asked.get(other, ({}, True))[0], True)
            continue
        for branch in branches(dependency, answers):
            more = questions(branch, answers)
            for other, (question, is_required) in more.items():
                known = asked.get(other, ({}, False))
                asked[other] = ({**known[0], **question}, is_required or known[1])
    for branch in (schema.get("allOf") or []) if "properties" in schema else []:
        for part in branches({"allOf": [branch]}, answers):
            asked.update(questions(part, answers))
    return asked


def branches(dependency, answers):
    """Those parts of a dependency that hold for the answers."""
    found = [dependency] if "properties" in dependency else []
    for branch in dependency.get("oneOf") or []:
        if holds(branch, answers):
            found.append(branch)
    for branch in dependency.get("allOf") or []:
        if "if" in branch:
            part = branch.get("then") if holds(branch["if"], answers) else branch.get("else")
            if part:
                found.append(part)
        else:
            found.append(branch)
    return found


def holds(schema, answers):
    for key, question in (schema.get("properties") or {}).items():
        if not isinstance(question, dict):
            continue
        if "const" in question and answers.get(key) != question["const"]:
            return False
        if "enum" in question and key in answers and answers[key] not in question["enum"]:
            return False
    return True


def answer(key, question, name):
    if "default" in question and question["default"] not in ("", None):
        return question["default"]
    if question.get("enum"):
        return question["enum"][0]
    if "const" in question:
        return question["const"]
    field = question.get("ui:field", "")
    if field == "RepoUrlPicker":
        return f"fairway?owner=root&repo={name}"
    if field in ("OwnerPicker", "EntityPicker", "OwnedEntityPicker", "MyGroupsPicker"):
        return ENTITIES[kind_of(question, field)]
    kind = question.get("type", "string")
    if kind in ("number", "integer"):
        return question.get("minimum", 1)
    if kind == "boolean":
        return False
    if kind == "array":
        return []
    if kind == "object":
        return {inner: answer(inner, question["properties"][inner], name) for inner in question.get("required") or []}
    if key.lower() in ("orgname", "repoowner", "owner", "organization"):
        return "root"
    if question.get("format") == "email":
        return "someone@example.com"
    if question.get("format") == "uri":
        return "https://example.com/"
    return name


def kind_of(question, field):
    options = question.get("ui:options") or {}
    filters = options.get("catalogFilter") or {}
    for one in filters if isinstance(filters, list) else [filters]:
        kinds = one.get("kind", [])
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            if str(kind).lower() in ENTITIES:
                return str(kind).lower()
    for kind in options.get("allowedKinds") or []:
        if kind.lower() in ENTITIES:
            return kind.lower()
    return "component" if field == "OwnedEntityPicker" else "group"
