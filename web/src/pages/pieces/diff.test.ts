import { describe, expect, it } from "vitest";
import { diffLines } from "./diff";

/** What is not added is the old text, what is not removed the new one. */
function sides(before: string, after: string): [string, string] {
    const lines = diffLines(before, after, 10_000);
    const of = (without: string): string => lines.filter(line => line.kind !== without).map(line => line.text).join("\n");
    return [of("added"), of("removed")];
}

describe("differences of texts", () => {
    it.each([
        ["a\nb\nc", "a\nx\nc"], ["", "a"], ["a", ""], ["a\nb", "b\na"], ["a\na\na", "a\na"], ["x\na\nb\nc\ny", "x\nb\nc\nd\ny\nz"],
    ])("%j and %j can be told from the difference", (before, after) => {
        expect(sides(before, after)).toEqual([before, after]);
    });
    it("is no longer than it must be", () => {
        const marks = diffLines("a\nb\nc\nd", "a\nc\nd\ne").filter(line => line.kind !== "same");
        expect(marks).toEqual([{ kind: "removed", text: "b" }, { kind: "added", text: "e" }]);
    });
    it("leaves out what is far away", () => {
        const before = Array.from({ length: 100 }, (_, at) => `line ${at}`);
        const after = before.with(50, "changed");
        const lines = diffLines(before.join("\n"), after.join("\n"));
        expect(lines.filter(line => line.kind === "skipped")).toHaveLength(2);
        expect(lines).toHaveLength(2 + 6 + 2);
    });
    it("ends with texts that have nothing in common", () => {
        const [before, after] = ["a", "b"].map(letter => Array.from({ length: 6_000 }, (_, at) => `${letter}${at}`).join("\n")) as [string, string];
        expect(diffLines(before, after)).toHaveLength(12_000);
    });
});
