import { expect, it } from "vitest";
import { depthOf, placesOf } from "./places";

it.each([
    ["where one is and all above it", "root:acme:web", "root:acme:web", {}, ["root", "root:acme", "root:acme:web"]],
    ["where one is at home, too", "root:acme", "root:other", {}, ["root", "root:acme", "root:other"]],
    ["what was opened, each below its own", "root", "root", { "root": ["a-b", "a"], "root:a": ["z", "c"], "root:none": [] }, ["root", "root:a", "root:a:c", "root:a:z", "root:a-b"]],
])("the tree has %s", (_why, here, home, found, expected) => {
    expect(placesOf(here, home, new Map(Object.entries(found)))).toEqual(expected);
});

it("a workspace is drawn as deep as it is", () => {
    expect(["root", "root:a", "root:a:b"].map(depthOf)).toEqual([0, 1, 2]);
});
