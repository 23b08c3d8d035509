import { describe, expect, it } from "vitest";
import type { Voyage } from "../../api/kinds";
import { linksOf, stepsOf, wishesOf } from "./steps";

const run = (phase: string, spec = {}): Voyage => ({
    spec: { template: "template:default/x", ...spec },
    status: {
        phase,
        steps: [
            { id: "a", state: "completed", log: [{ at: "t", text: "done" }], made: [{ title: "repository root/x", undone: false }, { title: "gone", undone: true }] },
            { id: "b", name: "B" },
        ],
        output: { links: [{ title: "Repository", url: "https://x" }, { title: "none" }] },
    } as never,
});

describe("a run", () => {
    it("is read with what is missing", () => {
        const [a, b] = stepsOf(run("Running"));
        expect(a).toMatchObject({ name: "a", log: [{ at: "t", text: "done" }], made: ["repository root/x"] });
        expect(b).toMatchObject({ name: "B", state: "pending", log: [], made: [] });
        expect(linksOf(run("Succeeded"))).toEqual([{ title: "Repository", url: "https://x" }]);
        expect(stepsOf({ spec: { template: "x" } })).toEqual([]);
    });
    it.each([
        ["Running", {}, { retry: false, cancel: true, decommission: false }],
        ["Running", { cancel: true }, { retry: false, cancel: false, decommission: false }],
        ["Failed", {}, { retry: true, cancel: false, decommission: true }],
        ["Succeeded", {}, { retry: false, cancel: false, decommission: true }],
        ["Decommissioned", {}, { retry: false, cancel: false, decommission: false }],
    ])("%s %o can be asked for the right things", (phase, spec, expected) => expect(wishesOf(run(phase, spec))).toEqual(expected));
});
