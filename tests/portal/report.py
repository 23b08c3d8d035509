"""What the portal's pages cost in a real browser, as a report beside those of `fairway-bench`."""

import datetime
import json
import os
import pathlib
import platform
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def write(screens, binary, dist, directory):
    """Writes `portal-DATE-COMMIT.md`; its path."""
    found = json.loads((screens / "floors.json").read_text())
    now = datetime.datetime.now(datetime.timezone.utc)
    path = directory / f"portal-{now:%Y-%m-%d}-{commit()}.md"
    path.write_text(text(found, now, binary, dist))
    return path


def text(found, now, binary, dist):
    build = binary.resolve().parent.name
    optimised = "" if build == "release" else ", which is not optimised: the server's part of the times is several times what it is otherwise"
    beside = " The web application came out of a directory by way of the browser's driver, and not out of the program; its size is that of gzip." if dist else ""
    rows = [f"| {row['what']}: at most {amount(row, 'most')} | {amount(row, 'value')} | {'yes' if row['isHeld'] else 'NO'} | {row['how']} |" for row in found["rows"]]
    return "\n".join([
        "# The portal: what its pages cost in a browser", "",
        f"{now:%Y-%m-%d %H:%M} UTC, commit {commit()}. {machine()} Chromium {found['browser']} without a screen, and Fairway's {build} build{optimised}, on the same host.{beside}", "",
        "## Floors", "", "| floor | measured | held | how |", "|---|---|---|---|", *rows, "",
        "The thousand Applications are as Argo CD leaves them after months: 14 objects, a history of ten syncs, the last operation with what became of each object, and conditions "
        "(`tests/portal/grown.py`). The ten thousand rows are of machines, Applications and workspaces, put in place of the server's answer.", "",
    ])


def amount(row, key):
    return f"{row[key]:,} {row['unit']}".strip()


def machine():
    def line(path, prefix):
        found = (line.removeprefix(prefix).strip(": \t\n") for line in open(path) if line.startswith(prefix))
        return next(found, "")

    memory = int(re.match(r"\d+", line("/proc/meminfo", "MemTotal")).group()) >> 20
    load = " ".join(open("/proc/loadavg").read().split()[:3])
    return f"{os.cpu_count()} cores of {line('/proc/cpuinfo', 'model name')}, {memory} GiB, Linux {platform.release()}; load average at the end {load}."


def commit():
    """The commit that was measured, marked when the tree had changes. A report that lies there already is none."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    changed = git("status", "--porcelain", "--", ":!bench/results")
    return git("rev-parse", "--short=10", "HEAD") + ("-changed" if changed else "")
