"""Transcripts: commands and what they print, run against a server and compared word for word.

A transcript is a text file:

    # a comment; a line `## title` starts a section
    $ kubectl create configmap settings --from-literal=colour=blue
    configmap/settings created
    $ kubectl get configmap nothing
    Error from server (NotFound): configmaps "nothing" not found
    [exit 1]

A command goes on in lines that start with `> `. Lines that start with `[fairway] ` are expected from Fairway only, lines
that start with `[upstream] ` from kube-apiserver only: every intended difference is there to be read. A file that starts
with `# only: fairway` is about Fairway alone.

An output line that would read as one of these is written with a backslash before it.

What differs from run to run (ages, identifiers, revisions, ports, column widths) is replaced before the comparison.
"""

import dataclasses
import pathlib
import re
import subprocess

FAIRWAY = "[fairway] "
UPSTREAM = "[upstream] "

# Replaced in this order, in what a command printed; transcripts are written with the replacements.
CHANGING = [
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UID"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+-]\d{4} \w+)?", "TIME"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d( [+-]\d{4})? \d{4}", "TIME"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r'(resourceVersion"?: ?)"?\d+"?', r"\1REVISION"),
    (r"https://127\.0\.0\.1:\d+", "SERVER"),
    (r"\b10\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "CLUSTER-IP"),
    (r":3[0-2]\d{3}/", ":NODE-PORT/"),
    # Ages stand in columns; elsewhere `100m` is a tenth of a core.
    (r"(?:(?<=  )|^|(?<= over ))(\d+[smhd])+(?=  |\)|$| \(x)", "AGE"),
    # Helm prints warnings through its log.
    (r"^W\d{4} [\d:.]+ +\d+ warnings\.go:\d+\] ", "Warning: "),
    # Fairway's notice names the object; transcripts have only its beginning.
    (r"(no node here runs pods): .*", r"\1"),
    (r" +\t", "\t"),
    (r"(?<=\S)   +", "  "),
    (r"[ \t]+$", ""),
]

# Fairway says so wherever it accepts a kind that bears pods. A transcript that does not expect the line does not mind it.
NO_PODS = "Warning: no node here runs pods"

# Shell functions that every command may use.
PRELUDE = r"""
# Runs a command until it succeeds: for what a controller does a moment later.
eventually() {
    local deadline=$((SECONDS + 30))
    until "$@" >"$SCRATCH/eventually" 2>&1; do
        if ((SECONDS >= deadline)); then break; fi
        sleep 0.1
    done
    cat "$SCRATCH/eventually"
}
# Succeeds when a command fails: for what should go away.
fails() { ! "$@"; }
"""


@dataclasses.dataclass
class Step:
    """One command with the lines before it (comments, blank lines) and the lines that it should print."""

    before: list[str]
    command: str
    expected: list[str]
    line: int


@dataclasses.dataclass
class Transcript:
    path: pathlib.Path
    only_fairway: bool
    steps: list[Step]
    after: list[str]

    @staticmethod
    def read(path):
        steps, before, only_fairway = [], [], False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if number == 1 and line == "# only: fairway":
                only_fairway = True
            if line.startswith("$ "):
                steps.append(Step(before, line[2:], [], number))
                before = []
            elif line.startswith("> ") and steps and not before and not steps[-1].expected:
                steps[-1].command += "\n" + line[2:]
            elif line.startswith("#") or (not line and (before or next_is_command(path, number))):
                before.append(line)
            elif steps:
                if before:
                    raise ValueError(f"{path}:{number}: output without a command")
                steps[-1].expected.append(line)
            else:
                raise ValueError(f"{path}:{number}: output before the first command")
        return Transcript(path, only_fairway, steps, before)

    def write(self):
        lines = []
        for step in self.steps:
            first, *rest = step.command.split("\n")
            lines += [*step.before, f"$ {first}", *(f"> {line}" for line in rest), *step.expected]
        self.path.write_text("\n".join(lines + self.after) + "\n")


def next_is_command(path, number):
    """Whether the next line that is not blank starts a command or a comment: then a blank line is a separator."""
    for line in path.read_text().splitlines()[number:]:
        if line:
            return line.startswith(("$ ", "#"))
    return True


def expected_of(step, upstream):
    """The lines that a step should print on this kind of server."""
    own, other = (UPSTREAM, FAIRWAY) if upstream else (FAIRWAY, UPSTREAM)
    return [line.removeprefix(own) for line in step.expected if not line.startswith(other)]


def agrees(step, actual, upstream):
    """Whether a step printed what it should, and what is compared with what."""
    expected = expected_of(step, upstream)
    if not upstream and NO_PODS not in expected:
        actual = [line for line in actual if line != NO_PODS]
    return actual == expected, expected, actual


def run_command(command, environment, directory):
    """What a command printed, with the changing parts replaced, and its exit code as a last line if not zero."""
    try:
        result = subprocess.run(
            ["bash", "--norc", "-c", PRELUDE + "exec 2>&1\n" + command],
            env=environment,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=120,
        )
        output, code = result.stdout, result.returncode
    except subprocess.TimeoutExpired as expired:
        output, code = (expired.stdout or b"") + b"\n(no end after 120 s)", 124
    text = output.decode(errors="replace")
    for pattern, replacement in CHANGING:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    lines = ["\\" + line if line.startswith(("#", "$ ", "> ", "[", "\\")) else line for line in lines]
    return lines + ([f"[exit {code}]"] if code else [])


# What an object or a user says of its workspace. Alone, the annotation takes its heading along.
OF_A_WORKSPACE = [
    (r"^(\+? *)annotations:\n\+? *kcp\.io/cluster: \w+\n(?!\1  )", ""),
    (r'^ *"annotations": \{\n *"kcp\.io/cluster": "\w+"\n *\},\n', ""),
    (r'"kcp\.io/cluster":"\w+",?', ""),
    (r"^Annotations:  kcp\.io/cluster: \w+$", "Annotations:  <none>"),
    (r"^ *kcp\.io/cluster[:=] ?\w+\n", ""),
    (r"^Extra: authentication\.kcp\.io/cluster-name  \[\w+\]\n", ""),
    (r"SERVER/clusters/[a-z0-9:-]+", "SERVER"),
]


def without_workspace(lines):
    """What was printed, as a cluster without workspaces would have printed it."""
    text = "".join(line + "\n" for line in lines)
    for pattern, replacement in OF_A_WORKSPACE:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text.splitlines()


def recorded(step, actual):
    """The step's lines after recording: what upstream printed now, with the lines about Fairway kept."""
    if expected_of(step, upstream=True) == actual:
        return step.expected
    ours = [line for line in step.expected if line.startswith(FAIRWAY)]
    leading = []
    for line in step.expected:
        if not line.startswith(FAIRWAY):
            break
        leading.append(line)
    return leading + actual + ours[len(leading) :]
