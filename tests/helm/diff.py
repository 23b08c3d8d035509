"""Random charts, rendered by the real helm and by Fairway; the results must be the same bytes, or both must refuse.

    diff.py --helm HELM --program PROGRAM [--count N] [--seed S] [--keep DIR]

PROGRAM is the example `template` of the helm crate. Where both refuse a chart because of the same template, the chart is
rendered again without it, so that one wrong expression does not hide the others. What they say is compared only as far as
the place. A case that differs is kept under DIR and can be made again from its seed. The seed is fixed, so that a failure
is of the change and not of the day; a long run is one with another seed and count.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import generate

# What Go prints of a pointer.
ADDRESS = re.compile(rb"0xc[0-9a-f]{9}")
PLACE = re.compile(r"case/((?:charts/\w+/)*templates/\w+\.\w+)")


def run(command, directory):
    environment = dict(os.environ, TZ="UTC", HELM_CACHE_HOME="/nonexistent", HELM_CONFIG_HOME="/nonexistent", HELM_DATA_HOME="/nonexistent")
    answer = subprocess.run(command, cwd=directory, capture_output=True, timeout=120, env=environment)
    if answer.returncode != 0:
        return None, answer.stderr.decode(errors="replace").strip()
    return answer.stdout, ""


def place(error):
    """The template that an error names first."""
    found = PLACE.search(error)
    return found.group(1) if found else ""


def difference(options, seed, directory):
    """What differs, as a text, and how many times both refused; no text if nothing does."""
    files, arguments = generate.Maker(seed).make()
    for name, text in files.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    refused = 0
    while True:
        theirs, their_error = run([options.helm, "template", "release-name", ".", *arguments], directory)
        ours, our_error = run([options.program, "--name", "release-name", ".", *arguments], directory)
        if theirs is not None or ours is not None:
            masked = lambda output: output and ADDRESS.sub(b"0x", output)
            same = masked(theirs) == masked(ours)
            shown = lambda output, error: f"ERROR: {error}\n" if output is None else output.decode(errors="replace")
            return ("" if same else f"arguments: {arguments}\n=== helm\n{shown(theirs, their_error)}=== fairway\n{shown(ours, our_error)}"), refused
        refused += 1
        # What makes helm run out of stack is refused by Fairway with a reason.
        blamed = place(our_error if "goroutine stack exceeds" in their_error else their_error)
        if blamed != place(our_error):
            return f"arguments: {arguments}\nrefused for different reasons\n=== helm\n{their_error}\n=== fairway\n{our_error}\n", refused
        if not blamed or not (directory / blamed).exists():
            return "", refused
        (directory / blamed).unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helm", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("target/helm-diff"))
    options = parser.parse_args()
    if shutil.which(options.helm) is None:
        print(f"SKIPPED: there is no {options.helm}")
        return 0
    options.helm, options.program = str(pathlib.Path(shutil.which(options.helm)).absolute()), str(pathlib.Path(options.program).absolute())
    different = refused = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:

        def check(seed):
            directory = pathlib.Path(scratch) / str(seed)
            directory.mkdir()
            text, times = difference(options, seed, directory)
            if text:
                kept = options.keep / str(seed)
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(directory, kept / "chart")
                (kept / "difference.txt").write_text(text)
            shutil.rmtree(directory)
            return seed, text, times

        for seed, text, times in pool.map(check, range(options.seed, options.seed + options.count)):
            refused += times
            if text:
                different += 1
                print(f"DIFFERENT: seed {seed}, kept in {options.keep / str(seed)}")
    print(f"{options.count} charts: {options.count - different} same, {different} different; templates or charts refused by both: {refused}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
