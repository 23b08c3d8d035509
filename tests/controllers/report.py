"""What a run has seen, as Markdown, with its date and commit."""

import datetime
import subprocess

import harness

INTRODUCTION = """# Real controllers

Programs of other projects, built from their own source and unchanged, on Fairway instead of kube-apiserver. Each has a
Fairway with an empty data directory and the identity and rights that its own project gives it. Written by
`make controllers`; how it works is said in [tests/controllers](../../tests/controllers/README.md).
"""


def write(path, results):
    date = datetime.date.today().isoformat()
    lines = [INTRODUCTION, f"{date}, commit {commit()}, debug build.", "",
             "| program | result | checks | unexpected complaints | Fairway |", "|---|---|---|---|---|"]
    for result in results:
        met = sum(1 for _, seconds in result.checks if seconds is not None)
        complaints = sum(len(log.unexpected) for log in result.logs)
        usage = result.usage.removeprefix("Fairway used ")
        outcome = "passed" if result.passed else "**failed**"
        lines.append(f"| {result.program} | {outcome} | {met} of {len(result.checks)} | {complaints} | {usage} |")
    for result in results:
        lines += ["", f"## {result.program}", "", "| s | seen |", "|---:|---|"]
        for what, seconds in result.checks:
            lines.append(f"| {'–' if seconds is None else f'{seconds:.1f}'} | {cell(what)} |")
        excused = {}
        for log in result.logs:
            for reason, count in log.allowed.items():
                excused[reason] = excused.get(reason, 0) + count
        if excused:
            lines += ["", "Complaints in the logs that are expected:", ""]
            lines += [f"* {count} lines: {reason}" for reason, count in excused.items()]
    path.write_text("\n".join(lines) + "\n")


def cell(text):
    return text.splitlines()[0].replace("|", "\\|")


def commit():
    def git(*arguments):
        done = subprocess.run(["git", *arguments], cwd=harness.ROOT, capture_output=True, text=True)
        return done.stdout.strip()
    changed = " and what was not committed" if git("status", "--porcelain", "--", "crates", "tests") else ""
    return (git("rev-parse", "--short=7", "HEAD") or "unknown") + changed
