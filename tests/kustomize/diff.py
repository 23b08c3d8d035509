"""Random kustomizations, built by the real kustomize and by Fairway; the results must be the same bytes.

    diff.py --original KUSTOMIZE --ours PROGRAM [--count N] [--seed S] [--keep DIR]

PROGRAM is the example `build` of the kustomize crate. That both fail counts as the same; what they say may differ. A case
that differs is kept under DIR and can be made again from its seed. Seeds start at S; without S at the day's number, so
that a nightly run sees new cases. Without KUSTOMIZE nothing is compared.
"""

import argparse
import concurrent.futures
import datetime
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import generate

BATCH = 200


def original(program, directory, path):
    run = subprocess.run([program, "build", path], cwd=directory, capture_output=True, text=True, timeout=60)
    return run.stdout if run.returncode == 0 else "ERROR: " + run.stderr.strip()


def same(theirs, ours):
    if theirs.startswith("ERROR: ") or ours.startswith("ERROR: "):
        return theirs.startswith("ERROR: ") and ours.startswith("ERROR: ")
    return theirs == ours


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--original", required=True, type=pathlib.Path)
    parser.add_argument("--ours", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=datetime.date.today().toordinal() * 1_000_000)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("target/kustomize-diff"))
    arguments = parser.parse_args()
    if not arguments.original.exists():
        print(f"SKIPPED: there is no {arguments.original}; scripts/peers.sh kustomize builds it")
        return 0
    program = str(arguments.original.resolve())
    counts = {"same": 0, "both fail": 0, "different": 0}
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for start in range(arguments.seed, arguments.seed + arguments.count, BATCH):
            cases = []
            for seed in range(start, min(start + BATCH, arguments.seed + arguments.count)):
                files, path = generate.Maker(seed).make()
                directory = pathlib.Path(scratch) / str(seed)
                for name, text in files.items():
                    file = directory / name
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(text.encode())
                cases.append((seed, directory, path))
            lines = "".join(f"{directory}\t{path}\t{directory}.ours\n" for _, directory, path in cases)
            subprocess.run([arguments.ours, "--batch"], input=lines, text=True, check=True)
            answers = pool.map(lambda case: original(program, case[1], case[2]), cases)
            for (seed, directory, path), theirs in zip(cases, answers):
                ours = pathlib.Path(f"{directory}.ours").read_bytes().decode()
                if same(theirs, ours):
                    counts["both fail" if ours.startswith("ERROR: ") else "same"] += 1
                else:
                    counts["different"] += 1
                    kept = arguments.keep / str(seed)
                    shutil.rmtree(kept, ignore_errors=True)
                    shutil.copytree(directory, kept / "files")
                    (kept / "path").write_text(path + "\n")
                    (kept / "original.yaml").write_text(theirs)
                    (kept / "ours.yaml").write_text(ours)
                    print(f"DIFFERENT: seed {seed}, kept in {kept}")
                shutil.rmtree(directory)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
