import { describe, expect, it } from "vitest";
import type { KubernetesObject } from "./kinds";
import { backoff, keyOf, LineCutter, parseEvent, slim } from "./watchlines";

describe("lines of a watch", () => {
    const cases: { name: string; chunks: string[]; lines: string[] }[] = [
        { name: "a line in two chunks", chunks: ['{"a":', "1}\n"], lines: ['{"a":1}'] },
        { name: "two lines in a chunk", chunks: ["a\nb\n"], lines: ["a", "b"] },
        { name: "the rest waits", chunks: ["a\nb"], lines: ["a"] },
        { name: "empty lines are nothing", chunks: ["\n\na\n"], lines: ["a"] },
    ];
    it.each(cases)("$name", ({ chunks, lines }) => {
        const cutter = new LineCutter();
        expect(chunks.flatMap(chunk => cutter.push(chunk))).toEqual(lines);
    });

    it("refuses what is no event", () => {
        expect(() => parseEvent("3")).toThrow();
        expect(() => parseEvent("{}")).toThrow();
    });

    it("waits longer each time, and never longer than half a minute", () => {
        expect(backoff(0, 0)).toBe(250);
        expect(backoff(1, 1)).toBe(1000);
        expect(backoff(50, 1)).toBe(30_000);
    });

    it("keeps objects without their managers", () => {
        const object = { metadata: { name: "a", namespace: "n", managedFields: [] } };
        expect(slim(object).metadata).not.toHaveProperty("managedFields");
        expect(keyOf(object)).toBe("n/a");
    });

    it("leaves out what a list does not show, and nothing beside it", () => {
        const bulk = ["status.history", "status.operation.result"];
        const cases = [
            [{ status: { history: [1], operation: { result: 1, phase: "a" }, health: 1 } }, { status: { operation: { phase: "a" }, health: 1 } }],
            [{ status: { health: 1 } }, { status: { health: 1 } }],
            [{ metadata: { name: "a" } }, { metadata: { name: "a" } }],
        ];
        for (const [given, kept] of cases) expect(slim(given as KubernetesObject, bulk)).toEqual(kept);
    });
});
