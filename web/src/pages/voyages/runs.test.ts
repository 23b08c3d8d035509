import { describe, expect, it } from "vitest";
import type { Voyage } from "../../api/kinds";
import { isMeant } from "./runs";

const run = { metadata: { name: "virtual-machine-x7k2p" }, spec: { template: "template:default/virtual-machine", values: { name: "shop" }, requestedBy: { username: "acme/Alice" } } } as unknown as Voyage;

describe("a run is found", () => {
    it.each([["", true], ["X7K", true], ["Shop", true], ["alice", true], [" default/virtual ", true], ["undefined", false], ["other", false]])("by %j: %s", (words, expected) => {
        expect(isMeant(run, words)).toBe(expected);
    });
    it("also if it says little of itself", () => {
        expect(isMeant({ spec: {} } as unknown as Voyage, "undefined")).toBe(false);
    });
});
