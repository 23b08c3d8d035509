import { describe, expect, it } from "vitest";
import type { Application } from "../../api";
import { NO_FILTERS, choices, filtered, fitting, layOut, matches, waitingApproval, withMissing, type TreeNode } from "./model";

const app = (name: string, more: Record<string, unknown> = {}, status: Record<string, unknown> = {}): Application => ({
    metadata: { name, namespace: "argocd", labels: { team: "web" } },
    spec: { project: "default", destination: { name: "in-cluster", namespace: "shop" }, ...more },
    status: { health: { status: "Healthy" }, sync: { status: "Synced" }, ...status },
}) as unknown as Application;

describe("filters", () => {
    it.each([
        [{}, true], [{ text: "SHO" }, true], [{ text: "other" }, false], [{ health: "Healthy" }, true], [{ health: "Degraded" }, false],
        [{ sync: "OutOfSync" }, false], [{ project: "default", cluster: "in-cluster", namespace: "shop" }, true], [{ namespace: "other" }, false],
        [{ label: "team=web" }, true], [{ label: "team=db" }, false],
    ])("%j", (filters, expected) => {
        expect(matches(app("shop"), { ...NO_FILTERS, ...filters })).toBe(expected);
    });
    it("offers what is there", () => {
        expect(choices([app("b"), app("a", { project: "x" })], it => it.spec.project)).toEqual(["default", "x"]);
    });
});

describe("approvals", () => {
    it.each([
        ["Running", "3 deletions wait: `fairway app approve shop` or the annotation fairway.dev/approve-sync: 0123456789abcdef", "0123456789abcdef"],
        ["Succeeded", "the annotation fairway.dev/approve-sync: 0123456789abcdef", undefined],
        ["Running", "waiting for healthy state", undefined],
    ])("%s: %s", (phase, message, digest) => {
        expect(waitingApproval(app("shop", {}, { operationState: { phase, message } }))).toBe(digest);
    });
});

describe("the tree", () => {
    const node = (kind: string, name: string, uid: string, parent?: string): TreeNode => ({ kind, name, uid, parentRefs: parent ? [{ uid: parent }] : undefined });
    it("has children right of their parents and a row for each leaf", () => {
        const { placed, columns, rows } = layOut([node("Pod", "b", "3", "2"), node("Deployment", "web", "1"), node("ReplicaSet", "web-1", "2", "1"), node("Pod", "a", "4", "2"), node("Service", "web", "5")]);
        expect(placed.map(it => [it.node.name, it.column, it.row])).toEqual([["web", 1, 0], ["web-1", 2, 0], ["a", 3, 0], ["b", 3, 1], ["web", 1, 2]]);
        expect([columns, rows]).toEqual([4, 3]);
    });
    it("ends with circles, and with parents that are not there", () => {
        const { placed } = layOut([node("A", "a", "1", "2"), node("B", "b", "2", "1"), node("C", "c", "3", "9")]);
        expect(placed.map(it => it.node.name).sort()).toEqual(["a", "b", "c"]);
    });
    it("shows what is declared and missing", () => {
        const declared = app("shop", {}, { resources: [{ kind: "ConfigMap", name: "gone", namespace: "shop", version: "v1" }] });
        expect(withMissing([], declared)[0]?.health?.status).toBe("Missing");
    });
    it("calls nothing missing before anybody has looked", () => {
        const resources = [{ kind: "ConfigMap", name: "a", namespace: "shop" }, { kind: "VirtualMachine", group: "kubevirt.io", name: "b", namespace: "shop", health: { status: "Healthy" } }];
        const nodes = withMissing(undefined, app("shop", {}, { resources }));
        expect(nodes.map(it => [it.name, it.health?.status])).toEqual([["a", undefined], ["b", "Healthy"]]);
    });
    it("says of what is declared whether it is as Git has it", () => {
        const resources = [
            { kind: "ConfigMap", name: "a", namespace: "shop", status: "OutOfSync", requiresPruning: true }, { kind: "Job", group: "batch", name: "before", namespace: "shop", hook: true },
            { kind: "Service", name: "web", namespace: "shop", status: "Synced" },
        ];
        const there: TreeNode[] = [{ kind: "ConfigMap", name: "a", namespace: "shop", uid: "1", health: { status: "Healthy" } }, node("Endpoints", "web", "2")];
        expect(withMissing(there, app("shop", {}, { resources })).map(it => [it.name, it.sync, it.requiresPruning, it.hook, it.health?.status])).toEqual([
            ["a", "OutOfSync", true, undefined, "Healthy"], ["web", undefined, undefined, undefined, undefined],
            ["before", undefined, undefined, true, undefined], ["web", "Synced", undefined, undefined, "Missing"],
        ]);
    });
    it.each([
        [{}, ["web", "web-1", "a", "settings"]], [{ kind: "Pod" }, ["web", "web-1", "a"]], [{ sync: "OutOfSync" }, ["settings"]],
        [{ health: "Degraded" }, ["web", "web-1", "a"]], [{ kind: "Pod", sync: "Synced" }, []],
    ])("is shown with what it grew out of when it is filtered by %j", (filters, expected) => {
        const nodes: TreeNode[] = [
            { ...node("Deployment", "web", "1"), sync: "Synced" }, node("ReplicaSet", "web-1", "2", "1"), { ...node("Pod", "a", "3", "2"), health: { status: "Degraded" } },
            { ...node("ConfigMap", "settings", "4"), sync: "OutOfSync" },
        ];
        expect(filtered(nodes, { kind: "", sync: "", health: "", ...filters }).map(it => it.name)).toEqual(expected);
    });
    it.each([[0, 1000, 1], [2000, 1000, 1], [850, 1000, 0.85], [300, 3000, 0.8]])("with room for %i of %i is drawn at %d", (room, wide, expected) => {
        expect(fitting(room, wide)).toBe(expected);
    });
});
