import { describe, expect, it } from "vitest";
import { ApiError } from "../../api/errors";
import type { Application, VirtualMachine, Voyage } from "../../api/kinds";
import { concernsOf, sightOf } from "./attention";

const NOW = Date.parse("2026-01-10T00:00:00Z");
const app = (status: Record<string, unknown>): Application => ({ metadata: { namespace: "a", name: "shop" }, spec: {}, status }) as unknown as Application;
const well = { health: { status: "Healthy" }, sync: { status: "Synced" } };

describe("an Application asks for attention", () => {
    it.each([
        [well, undefined, ""],
        [{}, undefined, ""],
        [{ ...well, health: { status: "Degraded" } }, "Degraded", ""],
        [{ ...well, sync: { status: "OutOfSync" } }, "OutOfSync", ""],
        [{ ...well, health: { status: "Missing" } }, "Missing", ""],
        [{ ...well, sync: { status: "Unknown" } }, "Unknown", ""],
        [{ ...well, conditions: [{ type: "OrphanedResourceWarning", message: "b" }, { type: "ComparisonError", message: "no such path" }] }, "ComparisonError", "no such path"],
        [{ ...well, sync: { status: "Unknown" }, conditions: [{ type: "InvalidSpecError", message: "c" }] }, "InvalidSpecError", "c"],
        [{ ...well, conditions: [{ type: "OrphanedResourceWarning", message: "b" }] }, undefined, ""],
        [{ ...well, operationState: { phase: "Failed", message: "d" } }, "Failed", "d"],
    ])("%j: %s", (status, word, message) => {
        const found = concernsOf([app(status)], [], [], NOW);
        expect(found.map(one => [one.word, one.message])).toEqual(word === undefined ? [] : [[word, message]]);
    });
    it("after machines that are broken, and before runs of last week", () => {
        const machine = { metadata: { namespace: "a", name: "m" }, status: { printableStatus: "CrashLoopBackOff" } } as unknown as VirtualMachine;
        const run = (endedAt: string): Voyage => ({ metadata: { namespace: "a", name: endedAt }, spec: {}, status: { phase: "Failed", endedAt } }) as unknown as Voyage;
        const found = concernsOf([app({ ...well, sync: { status: "OutOfSync" } })], [machine], [run("2026-01-09T00:00:00Z"), run("2025-12-01T00:00:00Z")], NOW);
        expect(found.map(one => one.kind)).toEqual(["VirtualMachine", "Voyage", "Application"]);
    });
});

describe("all is well only if all was seen", () => {
    const [live, loading] = [{ state: "live" as const }, { state: "loading" as const }];
    it.each([
        [{ a: live, b: live }, true, false, []],
        [{ a: live, b: loading }, false, true, []],
        [{ a: live, b: { state: "failed" as const, error: new ApiError(403, "no") } }, false, false, ["b"]],
        [{ a: { state: "lost" as const, error: new ApiError(500, "no") }, b: { state: "lost" as const, error: new ApiError(0, "no") } }, false, false, ["a", "b"]],
    ])("%#", (lists, isWhole, isLoading, blind) => {
        const sight = sightOf(lists);
        expect([sight.isWhole, sight.isLoading, sight.blind.map(one => one.what)]).toEqual([isWhole, isLoading, blind]);
    });
});
