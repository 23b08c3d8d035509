import { describe, expect, it } from "vitest";
import type { Voyage } from "../../api/kinds";
import { isMeant, runTitle, spanOf } from "./runs";

const run = { metadata: { name: "virtual-machine-x7k2p" }, spec: { template: "template:default/virtual-machine", values: { name: "shop" }, requestedBy: { username: "acme/Alice" } } } as unknown as Voyage;

it("a run is called by what it makes", () => {
    expect(runTitle(run)).toBe("shop");
    expect(runTitle({ metadata: { name: "x-1" }, spec: { values: {} } } as unknown as Voyage)).toBe("x-1");
});

it.each([
    ["one that has ended", { phase: "Succeeded", startedAt: "1", endedAt: "3", steps: [{ endedAt: "2" }] }, "3"],
    ["one that goes on", { phase: "Running", startedAt: "1", steps: [{ endedAt: "2" }, {}] }, undefined],
    ["one that was taken back", { phase: "Decommissioned", startedAt: "1", endedAt: "9", steps: [{ endedAt: "2" }, { endedAt: "1" }, { endedAt: "" }] }, "2"],
    ["one that is being taken back", { phase: "Decommissioning", startedAt: "1", steps: [{ endedAt: "2" }] }, "2"],
    ["one without steps", { phase: "Decommissioned", startedAt: "1", endedAt: "9" }, "9"],
])("the time of %s ends at the right moment", (_what, status, to) => {
    expect(spanOf({ spec: {}, status } as unknown as Voyage)).toEqual({ from: "1", to });
});

describe("a run is found", () => {
    it.each([["", true], ["X7K", true], ["Shop", true], ["alice", true], [" default/virtual ", true], ["undefined", false], ["other", false]])("by %j: %s", (words, expected) => {
        expect(isMeant(run, words)).toBe(expected);
    });
    it("also if it says little of itself", () => {
        expect(isMeant({ spec: {} } as unknown as Voyage, "undefined")).toBe(false);
    });
});
