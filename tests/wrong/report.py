"""What is the same and what is not, for the terminal and as a table."""

import dataclasses
import json


@dataclasses.dataclass
class Result:
    theme: object
    differences: dict
    same: set


def compare(theme, answers, recorded):
    differences, same = {}, set()
    for case in theme.cases:
        name = case["name"]
        if name not in recorded:
            raise SystemExit(f"{theme.stem}: no recorded answer to {name!r}: record the theme again")
        if answers[name] == recorded[name]:
            same.add(name)
        else:
            differences[name] = (recorded[name], answers[name])
    return Result(theme, differences, same)


def print_differences(results, reasons, brief):
    """Prints what nobody has explained; returns how many there are."""
    problems, known = 0, set()
    for result in results:
        for name, (expected, actual) in result.differences.items():
            known.add(name)
            if name in reasons:
                continue
            problems += 1
            print(f"\n{result.theme.stem}: {name}")
            if not brief:
                for key in sorted(set(expected) | set(actual)):
                    if key == "causes" and expected.get(key) and actual.get(key):
                        show_causes(expected[key], actual[key])
                    elif expected.get(key) != actual.get(key):
                        print(f"    {key}: expected {show(expected.get(key))}")
                        print(f"    {' ' * len(key)}  answered {show(actual.get(key))}")
        for name in sorted(result.same & set(reasons)):
            problems += 1
            print(f"\n{result.theme.stem}: {name}: differences.yaml explains a difference that is gone; remove it there")
    return problems


def show_causes(expected, actual):
    for cause in expected:
        if cause not in actual or expected.count(cause) > actual.count(cause):
            print(f"    cause missing   {show(cause)}")
    for cause in actual:
        if cause not in expected or actual.count(cause) > expected.count(cause):
            print(f"    cause too many  {show(cause)}")


def show(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 1500 else f"{text[:1200]} … {text[-200:]}"


def table(results, reasons, commit, date):
    lines = [
        "# Wrong requests",
        "",
        f"kube-apiserver 1.36.3 and Fairway, asked the same wrong things; {date}, commit {commit}. Compared are the HTTP code, the",
        "`Status` (reason, message, details and every cause) and the headers `Content-Type`, `Retry-After`, `Warning` and `Allow`. The",
        "requests are `tests/wrong/cases`, the recorded answers `tests/wrong/answers`; `make conformance` asks the original again.",
        "",
        "| theme | cases | same | differ |",
        "|---|---:|---:|---:|",
    ]
    total = differ = 0
    for result in results:
        count, wrong = len(result.theme.cases), len(result.differences)
        total, differ = total + count, differ + wrong
        lines.append(f"| {result.theme.title} | {count} | {count - wrong} | {wrong} |")
    lines += [f"| **all** | **{total}** | **{total - differ}** | **{differ}** |", "", "## What differs, and why", ""]
    by_reason = {}
    for result in results:
        for name in result.differences:
            by_reason.setdefault(reasons.get(name, "not explained"), []).append(f"{result.theme.title}: {name}")
    for reason, names in by_reason.items():
        lines.append(f"- {reason.strip()}")
        lines += [f"  - {name}" for name in names]
    if not by_reason:
        lines.append("Nothing.")
    return "\n".join(lines) + "\n"
