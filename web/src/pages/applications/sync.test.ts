import { describe, expect, it } from "vitest";
import type { Application } from "../../api";
import { destructive, pruned, syncBody } from "./sync";

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
