"""What every scenario uses: a Fairway, programs with identities of their own, expectations with a time limit."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import identities
import servers

ROOT = servers.ROOT
TOOLS = ROOT / ".tools" / "bin"
HERE = pathlib.Path(__file__).resolve().parent


class Failed(Exception):
    """An expectation that was not met."""


@dataclasses.dataclass
class Result:
    name: str
    program: str
    passed: bool = False
    checks: list = dataclasses.field(default_factory=list)
    logs: list = dataclasses.field(default_factory=list)
    usage: str = ""


@dataclasses.dataclass
class Log:
    """What a program wrote, once it has ended: how many lines, which complaints, and why those may be."""

    program: str
    lines: int
    allowed: dict
    unexpected: list


@contextlib.contextmanager
def scratch(keep, name):
    if keep:
        directory = keep.resolve() / name
        directory.mkdir(parents=True)
        yield directory
    else:
        with tempfile.TemporaryDirectory(prefix=f"fairway-{name}-") as directory:
            yield pathlib.Path(directory)


def run(name, scenario, binary, directory):
    result = Result(name, scenario.PROGRAM)
    print(f"\n{name}: {scenario.PROGRAM}", flush=True)
    try:
        with Fairway.start(binary, directory, result) as fairway:
            scenario.run(fairway)
            fairway.note_usage()
        result.passed = not any(log.unexpected for log in result.logs)
    except Failed as failure:
        result.checks.append((str(failure), None))
        print(f"  FAILED {failure}", flush=True)
    for log in result.logs:
        print(f"  {log.program}: {log.lines} lines logged, {sum(log.allowed.values())} expected complaints, "
              f"{len(log.unexpected)} unexpected")
        for line in log.unexpected[:20]:
            print(f"    {line[:1600]}")
    print(f"{name}: {'passed' if result.passed else 'FAILED'}, {result.usage}", flush=True)
    return result


class Fairway:
    """A running Fairway, and what is known of it."""

    def __init__(self, binary, process, kubeconfig, directory, result):
        self.binary = binary
        self.process = process
        self.kubeconfig = kubeconfig
        self.directory = directory
        self.result = result
        self.identities = identities.Identities(self, directory)

    @classmethod
    @contextlib.contextmanager
    def start(cls, binary, directory, result):
        data, log = directory / "data", directory / "fairway.log"
        command = [str(binary.resolve()), "up", "--data", str(data), "--listen", f"127.0.0.1:{servers.free_port()}"]
        with servers.process(command, log) as process:
            kubeconfig = servers.wait_until_ready(process, data / "kubeconfig", log)
            yield cls(binary.resolve(), process, kubeconfig, directory, result)
        result.logs.append(read_log("fairway", log, re.compile(r" (ERROR|WARN) ")))

    @property
    def data(self):
        return self.directory / "data"

    @property
    def server(self):
        return self.kubectl("config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster.server}")

    def environment(self, kubeconfig=None):
        return servers.environment(kubeconfig or self.kubeconfig, self.directory)

    def kubectl(self, *arguments, text=None, check=True, kubeconfig=None):
        """What kubectl printed, as the administrator if nobody else is named."""
        done = subprocess.run(
            ["kubectl", *arguments], input=text, capture_output=True, text=True, env=self.environment(kubeconfig)
        )
        if check and done.returncode:
            raise Failed(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout if check else (done.returncode, done.stdout, done.stderr)

    def apply(self, manifest, *arguments):
        """A file of ours or a text, by server-side apply."""
        if isinstance(manifest, pathlib.Path):
            return self.kubectl("apply", "--server-side", "-f", str(manifest), *arguments)
        return self.kubectl("apply", "--server-side", "-f", "-", *arguments, text=manifest)

    def get(self, *arguments):
        """An object or a list, or None if it does not exist."""
        code, out, err = self.kubectl("get", *arguments, "-o", "json", check=False)
        if code == 0:
            return json.loads(out)
        if "NotFound" in err or "doesn't have a resource type" in err:
            return None
        raise Failed(f"kubectl get {' '.join(arguments)}: {err.strip()}")

    def items(self, *arguments):
        found = self.get(*arguments)
        return found["items"] if found else []

    def expect(self, what, test, within=60):
        """Asks until the answer is true; what it was the last time is told if it never is."""
        started, answer = time.monotonic(), None
        while time.monotonic() - started < within:
            answer = test()
            if answer is True or (answer and not isinstance(answer, Unmet)):
                self.note(what, time.monotonic() - started)
                return answer
            if self.process.poll() is not None:
                raise Failed(f"{what}: Fairway has ended with {self.process.returncode}")
            time.sleep(0.2)
        raise Failed(f"{what}: not within {within} s; last seen: {answer}")

    def note(self, what, seconds):
        self.result.checks.append((what, seconds))
        print(f"  {seconds:6.1f} s  {what}", flush=True)

    @contextlib.contextmanager
    def program(self, name, command, complaints, allowed=(), **environment):
        """A program until the end of the block; then its log is read: `complaints` finds lines, `allowed` excuses them."""
        log = self.directory / f"{name}.log"
        with open(log, "wb") as output:
            running = subprocess.Popen(
                [str(part) for part in command],
                cwd=self.directory,
                env={**self.environment(), **{key: str(value) for key, value in environment.items()}},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            yield running
            if running.poll() is not None:
                raise Failed(f"{name} ended with {running.returncode}:\n{tail(log)}")
        except Failed as failure:
            raise Failed(f"{failure}\n{tail(log, complaints)}") from None
        finally:
            running.terminate()
            try:
                running.wait(20)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
        self.result.logs.append(read_log(name, log, complaints, allowed))

    def note_usage(self):
        """Processor time and memory of Fairway so far."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        resident, peak = (int(re.search(rf"{name}:\s+(\d+)", status)[1]) // 1024 for name in ("VmRSS", "VmHWM"))
        self.result.usage = f"Fairway used {seconds:.1f} s CPU, {resident} MB resident ({peak} MB at most)"

    def cpu_over(self, seconds):
        """Percent of a core that Fairway uses while nothing is asked of it by us."""
        def ticks():
            fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])
        before = ticks()
        time.sleep(seconds)
        return (ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds * 100


class Unmet(str):
    """Not yet; the words tell what was seen."""


def condition(found, kind):
    """The status of an object's condition, or None."""
    for entry in (found or {}).get("status", {}).get("conditions", []):
        if entry["type"] == kind:
            return entry["status"]
    return None


def tail(log, complaints=None):
    lines = log.read_text(errors="replace").splitlines()
    if complaints:
        lines = [line for line in lines if complaints.search(line)] or lines
    return "\n".join(line[:400] for line in lines[-15:])


def read_log(program, log, complaints, allowed=()):
    lines = log.read_text(errors="replace").splitlines()
    excused, unexpected = {}, []
    for line in lines:
        if not complaints.search(line):
            continue
        reason = next((reason for pattern, reason in allowed if re.search(pattern, line)), None)
        if reason is None:
            unexpected.append(line)
        else:
            excused[reason] = excused.get(reason, 0) + 1
    return Log(program, len(lines), excused, unexpected)


def allow_list(name):
    """`allowed/NAME.txt`: a line with the reason, then indented patterns that it excuses."""
    found, reason = [], None
    path = HERE / "allowed" / f"{name}.txt"
    if not path.exists():
        return found
    for line in path.read_text().splitlines():
        if not line.strip():
            continue
        if not line.startswith(" "):
            reason = line.strip()
        else:
            found.append((line.strip(), reason))
    return found


def build(name):
    """A program of another project, in .tools/bin."""
    if not (TOOLS / name).exists():
        subprocess.run([ROOT / "scripts" / "peers.sh", name], check=True)


def module_directory(peer, module):
    """Where the source of a peer's module lies: its manifests come with it."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", module]
    found = subprocess.run(command, cwd=ROOT / "bench" / "peers" / peer, capture_output=True, text=True, check=True)
    return pathlib.Path(found.stdout.strip())
