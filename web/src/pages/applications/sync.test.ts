import { describe, expect, it } from "vitest";
import type { Application } from "../../api";
import { autoSyncPatch, destructive, isAutomated, pruned, prunedByItself, syncBody } from "./sync";

describe("a sync", () => {
    it.each([
        [{}, []], [{ prune: true }, ["prune"]], [{ force: true, replaceOption: true, serverSide: true }, ["force", "replaceOption"]],
        [{ prune: true, force: true, dryRun: true }, []], [{ applyOnly: true, serverSide: true }, []],
    ])("with %j asks for a name because of %j", (chosen, expected) => {
        expect(destructive(chosen)).toEqual(expected);
    });
    it("is Argo CD's", () => {
        expect(syncBody({ prune: true, applyOnly: true, force: true, replaceOption: true }, "main")).toEqual({
            revision: "main", prune: true, dryRun: false, strategy: { apply: { force: true } }, syncOptions: { items: ["Replace=true"] },
        });
    });
    it("names what it would prune", () => {
        const resources = [{ kind: "ConfigMap", namespace: "a", name: "kept" }, { kind: "VirtualMachine", namespace: "a", name: "gone", requiresPruning: true }];
        expect(pruned({ status: { resources } } as unknown as Application)).toEqual(["VirtualMachine a gone"]);
    });
});

describe("auto-sync", () => {
    const app = (automated: unknown): Application => ({ spec: { syncPolicy: { automated } }, status: { resources: [{ kind: "ConfigMap", name: "gone", requiresPruning: true }] } }) as unknown as Application;
    it.each([[undefined, false], [null, false], [{}, true], [{ prune: true }, true], [{ enabled: true }, true], [{ enabled: false, prune: true }, false]])("%j is on: %s", (automated, expected) => {
        expect(isAutomated(app(automated))).toBe(expected);
    });
    it.each([
        [{ prune: true, selfHeal: true }, false, { enabled: false }],
        [{ enabled: false, prune: true }, true, { enabled: true }],
        [undefined, true, { prune: false, selfHeal: false }],
    ])("%j is switched to %s with %j", (automated, isOn, expected) => {
        expect(autoSyncPatch(app(automated), isOn)).toEqual({ spec: { syncPolicy: { automated: expected } } });
    });
    it("says what it would delete, if it prunes", () => {
        expect(prunedByItself(app({ enabled: false, prune: true }))).toEqual(["ConfigMap gone"]);
        expect(prunedByItself(app({ enabled: false }))).toEqual([]);
    });
});
