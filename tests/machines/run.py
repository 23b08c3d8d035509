"""End-to-end tests of machines: real guests on the debug binary, with the real kubectl, virtctl, ssh and git.

    run.py --fairway BINARY                  everything
    run.py --fairway BINARY --quick          what `make test` runs
    run.py --fairway BINARY NAME...          scenarios by name; `--list` shows them

One Fairway serves all scenarios, and one machine runs at a time unless a scenario needs two. Whatever is left running in the end is a
failure. `--keep` leaves the directory with logs where it is.

With FAIRWAY_TEST_REQUIRE=1 a scenario that is not tried has failed, unless it says what this host lacks that nobody can install.
"""

import argparse
import importlib
import os
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

from guest import Key
from world import HERE, Failed, Skipped, World, images


class Bench:
    """What a scenario is given: the world, a place, a namespace of its own, a key."""

    def __init__(self, world, place, namespace, key):
        self.world = world
        self.place = place
        self.namespace = namespace
        self.key = key


def scenarios():
    """What is marked as one, file by file, as `file/name`."""
    found = {}
    for path in sorted((HERE / "scenarios").glob("*.py")):
        module = importlib.import_module(f"scenarios.{path.stem}")
        for name, value in vars(module).items():
            if getattr(value, "is_scenario", False) and value.__module__ == module.__name__:
                found[f"{path.stem}/{name.replace('_', '-')}"] = value
    return found


def run(chosen, binary, scratch, target):
    wanted = sorted({image for it in chosen.values() for image in it.images})
    # Tests fetch images from this host, and one port of it is allowed to machines.
    world = World(binary, scratch, images(binary, target, wanted), ["--image-allowed-hosts", "loopback"])
    world.allow_port()
    failed, skipped = [], []
    try:
        print(f"fairway up: ready after {world.start():.1f} s", flush=True)
        key = Key(scratch)
        for number, (name, scenario) in enumerate(chosen.items()):
            place = world.workspace(scenario.workspace) if scenario.workspace else world.root()
            bench = Bench(world, place, f"t{number}-{name.split('/')[1]}"[:40].rstrip("-"), key)
            began = time.monotonic()
            try:
                place.namespace(bench.namespace)
                why = tried(scenario, bench)
                place.free(bench.namespace)
                left = world.machines()
                if left:
                    raise Failed(f"after the namespace is gone, these still run: {left}")
                if why:
                    skipped.append(name)
                    print(f"SKIPPED {name}  {time.monotonic() - began:.1f} s: {why}", flush=True)
                else:
                    print(f"ok      {name}  {time.monotonic() - began:.1f} s", flush=True)
            except Exception as error:  # noqa: BLE001: the next scenario may still tell something
                failed.append(name)
                print(f"FAILED  {name}  {time.monotonic() - began:.1f} s: {error}", flush=True)
                if not isinstance(error, Failed):
                    traceback.print_exc()
                world.tell(place, bench.namespace)
                if world.process.poll() is not None:
                    print("the server has ended; it is started again", flush=True)
                    world.start()
                place.run("kubectl", "delete", "namespace", bench.namespace, "--timeout=60s")
    finally:
        try:
            world.end()
        except Failed as error:
            failed.append("the end")
            print(f"FAILED  the end: {error}", flush=True)
    return failed, skipped


def tried(scenario, bench):
    """Runs it; why it could not be tried, if so. That has failed where everything has to be there, but for what a host cannot be given."""
    try:
        scenario(bench)
    except Skipped as why:
        if is_required() and not why.cannot:
            raise Failed(f"it was not tried, and FAIRWAY_TEST_REQUIRE wants everything to be: {why}") from why
        return str(why)
    return None


def is_required():
    """Whether what cannot be tried has failed, as with the tests in Rust."""
    return os.environ.get("FAIRWAY_TEST_REQUIRE", "") not in ("", "0")


def summary(count, failed, skipped):
    """The last line: each scenario counts once, and those that were not tried are named."""
    said = f"{count} scenarios: {count - len(failed) - len(skipped)} passed, {len(failed)} failed, {len(skipped)} skipped"
    for what, names in (("failed", failed), ("skipped", skipped)):
        said += f"; {what}: {', '.join(names)}" if names else ""
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairway", type=pathlib.Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    known = scenarios()
    if options.list:
        for name, scenario in known.items():
            print(f"{'quick' if scenario.quick else '     '}  {name}: {scenario.__doc__.splitlines()[0]}")
        return
    chosen = {name: it for name, it in known.items() if it.quick or not options.quick}
    if options.names:
        chosen = {name: it for name, it in known.items() if any(word in name for word in options.names)}
    if not chosen:
        raise SystemExit("no scenario has such a name; --list shows them")
    binary = options.fairway.resolve()
    # Beside the binary: the image is built once, and may be linked from there.
    target = binary.parent.parent / "tmp" / "machines"
    target.mkdir(parents=True, exist_ok=True)
    # A short path: sockets are made below it.
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="fw-", dir=target))
    failed, skipped = [], []
    try:
        failed, skipped = run(chosen, binary, scratch, target)
    finally:
        if not failed and not options.keep:
            shutil.rmtree(scratch, ignore_errors=True)
        else:
            print(f"logs are in {scratch}", flush=True)
    print(summary(len(chosen), failed, skipped))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
