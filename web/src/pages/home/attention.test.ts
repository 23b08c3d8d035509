import { describe, expect, it } from "vitest";
import { ApiError } from "../../api/errors";
import type { APIKeyRequest, Application, GatewayObject, Node, VirtualMachine, Voyage } from "../../api/kinds";
import { concernsOf, ifMine, sightOf, type Things } from "./attention";

const NOW = Date.parse("2026-01-10T00:00:00Z");
const app = (status: Record<string, unknown>): Application => ({ metadata: { namespace: "a", name: "shop" }, spec: {}, status }) as unknown as Application;
const well = { health: { status: "Healthy" }, sync: { status: "Synced" } };

const NOTHING: Things = { applications: [], machines: [], voyages: [], gateways: [], nodes: [], requests: [] };
const of = (things: Partial<Things>): string[][] => concernsOf({ ...NOTHING, ...things }, NOW).map(one => [one.word, one.message]);

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
        [{ ...well, health: { status: "Degraded" }, operationState: { phase: "Running", message: "annotation fairway.dev/approve-sync: 0123456789ab" } }, "Waits for approval", "annotation fairway.dev/approve-sync: 0123456789ab"],
    ])("%j: %s", (status, word, message) => {
        expect(of({ applications: [app(status)] })).toEqual(word === undefined ? [] : [[word, message]]);
    });
    it("after machines that are broken, and before runs of last week", () => {
        const machine = { metadata: { namespace: "a", name: "m" }, status: { printableStatus: "CrashLoopBackOff" } } as unknown as VirtualMachine;
        const run = (endedAt: string): Voyage => ({ metadata: { namespace: "a", name: endedAt }, spec: {}, status: { phase: "Failed", endedAt } }) as unknown as Voyage;
        const found = concernsOf({ ...NOTHING, applications: [app({ ...well, sync: { status: "OutOfSync" } })], machines: [machine], voyages: [run("2026-01-09T00:00:00Z"), run("2025-12-01T00:00:00Z")] }, NOW);
        expect(found.map(one => one.kind)).toEqual(["VirtualMachine", "Voyage", "Application"]);
    });
});

describe("others ask for attention, too", () => {
    const conditions = (...all: [string, string, string?][]): unknown => ({ conditions: all.map(([type, status, reason]) => ({ type, status, reason, message: "why" })) });
    it.each([
        [conditions(["Accepted", "True"], ["Programmed", "True"]), []],
        [conditions(["Accepted", "True"], ["Programmed", "False", "AddressNotUsable"]), [["AddressNotUsable", "why"]]],
        [conditions(["Accepted", "Unknown", "Pending"]), [["Pending", "why"]]],
        [undefined, []],
    ])("a Gateway with %j", (status, expected) => {
        expect(of({ gateways: [{ metadata: { namespace: "a", name: "web" }, status } as unknown as GatewayObject] })).toEqual(expected);
    });
    it.each([["True", []], ["False", [["NotReady", "why"]]], ["Unknown", [["NotReady", "why"]]]])("a node whose Ready is %s", (status, expected) => {
        expect(of({ nodes: [{ metadata: { name: "one" }, status: conditions(["Ready", status]) } as unknown as Node] })).toEqual(expected);
    });
    it.each([[undefined, [["Waits for approval", "alice asks for gold: to see it"]]], [conditions(["Approved", "True"]), []]])("a request for a key with %j", (status, expected) => {
        const request = { metadata: { namespace: "a", name: "mine" }, spec: { apiProductRef: { name: "api" }, planTier: "gold", useCase: "to see it", requestedBy: { userId: "alice" } }, status };
        expect(of({ requests: [request as unknown as APIKeyRequest] })).toEqual(expected);
    });
    it("unless they are none of whoever looks", () => {
        const [forbidden, absent, broken] = [403, 404, 500].map(status => ({ state: "failed" as const, error: new ApiError(status, "no") }));
        expect([forbidden, absent, broken].map(one => one && ifMine(one).state)).toEqual(["live", "live", "failed"]);
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
