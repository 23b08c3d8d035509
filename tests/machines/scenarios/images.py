"""Images that are built here."""

import json

from scenario import scenario
from world import check

# mmdebstrap runs the scripts of some two hundred packages.
BUILD = 3600


@scenario(images=("tiny", "debian"))
def repeatable(bench):
    """Both images are built once more, elsewhere, and have the same bytes; each says of what packages it consists."""
    again = bench.world.scratch / "again"
    again.mkdir(mode=0o700)

    def listed(data):
        return {it["name"]: it for it in json.loads(bench.place.fairway("image", "list", "--data", data, "-o", "json"))}

    first = listed(bench.world.data)
    for name, package in (("tiny", "busybox-static="), ("debian", "cloud-init=")):
        bench.place.fairway("image", "build", name, "--data", again, timeout=BUILD)
        second = listed(again)[name]
        check(second["digest"] == first[name]["digest"], f"{name}: the disks differ: {first[name]} {second}")
        check(second["labels"] == first[name]["labels"], f"{name}: the packages differ: {first[name]['labels']} {second['labels']}")
        check(package in second["labels"]["fairway.dev/packages"], f"{name}: {second['labels']}")
    packages = listed(again)["debian"]["labels"]["fairway.dev/packages"].split()
    check(any(it.startswith("libc6=") for it in packages) and len(packages) > 150, f"everything that is installed: {packages}")
