import { describe, expect, it } from "vitest";
import { concernsOf } from "../pages/home/attention";
import { matches, offered, readFilters } from "../pages/catalog/filters";
import { type Entity, entityPath, parseRef, shortRef } from "./entity";
import { byRef, type Graph, graphOf, layOut, lineThrough, missing, NODE } from "./graph";

const web: Entity = {
    apiVersion: "backstage.io/v1alpha1", kind: "Component", metadata: { name: "web", tags: ["vm"] }, spec: { type: "service", owner: "team", lifecycle: "production" },
    relations: [{ type: "ownedBy", targetRef: "group:default/team" }, { type: "providesApi", targetRef: "api:default/rest" }],
};
const team: Entity = { apiVersion: "backstage.io/v1alpha1", kind: "Group", metadata: { name: "team" }, relations: [{ type: "ownerOf", targetRef: "component:default/web" }, { type: "hasMember", targetRef: "user:default/ann" }] };

describe("references", () => {
    it.each([
        ["team", { kind: "group", namespace: "default", name: "team" }],
        ["user:ann", { kind: "user", namespace: "default", name: "ann" }],
        ["Group:x/y", { kind: "group", namespace: "x", name: "y" }],
    ])("%s", (text, expected) => expect(parseRef(text, "group")).toEqual(expected));
    it("have addresses that hold them", () => {
        expect(entityPath("component:default/a%2F..")).toBe("/catalog/component/default/a%252F..");
        expect(shortRef("group:default/team")).toBe("team");
    });
});

describe("the relations graph", () => {
    it("says each relation once, whichever end it was read from", () => {
        const graph = graphOf("component:default/web", byRef([web, team]), 2);
        expect(graph.refs).toEqual(["component:default/web", "group:default/team", "api:default/rest", "user:default/ann"]);
        expect(graph.edges.map(edge => `${edge.from} ${edge.label} ${edge.to}`)).toEqual([
            "component:default/web ownedBy group:default/team",
            "component:default/web providesApi api:default/rest",
            "user:default/ann memberOf group:default/team",
        ]);
    });
    it.each<[string, Graph]>([
        ["relations", graphOf("component:default/web", byRef([web, team]), 2)],
        ["several between the same two, and a circle", { refs: ["a", "b", "c"], edges: [{ from: "a", to: "b", label: "dependsOn" }, { from: "a", to: "b", label: "partOf" }, { from: "b", to: "c", label: "x" }, { from: "c", to: "a", label: "y" }] }],
        ["one alone", { refs: ["a"], edges: [] }],
        ["one that depends on itself", { refs: ["a"], edges: [{ from: "a", to: "a", label: "dependsOn" }] }],
    ])("has a place for everything, and nothing lies over something else: %s", async (_why, graph) => {
        const laid = await layOut(graph);
        expect(laid.nodes.map(node => node.ref)).toEqual(graph.refs);
        for (const node of laid.nodes) {
            expect([node.x >= 0, node.y >= 0, node.x + NODE.width <= laid.width, node.y + NODE.height <= laid.height]).toEqual([true, true, true, true]);
            expect(laid.nodes.filter(it => Math.abs(it.x - node.x) < NODE.width && Math.abs(it.y - node.y) < NODE.height)).toEqual([node]);
        }
        expect(laid.edges.map(edge => edge.points.length > 1 && Number.isFinite(edge.middle.x))).toEqual(graph.edges.map(() => true));
    });
    it("draws lines that begin and end where they should", () => {
        const [a, b, c, d] = [{ x: 0, y: 0 }, { x: 10, y: 0 }, { x: 20, y: 10 }, { x: 30, y: 10 }];
        expect([lineThrough([]), lineThrough([a, b]), lineThrough([a, b, c]), lineThrough([a, b, c, d])]).toEqual(["", "M0,0 L10,0", "M0,0 Q10,0 20,10", "M0,0 Q10,0 15,5 Q20,10 30,10"]);
    });
    it("knows what it still needs", () => {
        expect(missing("component:default/web", byRef([web]), 2)).toEqual(["group:default/team", "api:default/rest"]);
        expect(missing("component:default/web", byRef([web]), 1)).toEqual([]);
    });
});

describe("filters", () => {
    const filters = readFilters(new URLSearchParams("q=we vm"));
    it("begin with components, and look for every word", () => {
        expect(matches(web, filters)).toBe(true);
        expect(matches(team, filters)).toBe(false);
        expect(matches(web, { ...filters, lifecycle: "experimental" })).toBe(false);
    });
    it("offer what would be found", () => {
        const none = readFilters(new URLSearchParams("kind=all"));
        expect(offered([web, team], none, "kind")).toEqual(["component", "group"]);
        expect(offered([web, team], none, "owner")).toEqual(["group:default/team"]);
    });
});

describe("what needs attention", () => {
    it("is worst first, and not what is old", () => {
        const now = Date.parse("2026-01-10T00:00:00Z");
        const app = (name: string, health: string, sync: string) => ({ metadata: { namespace: "a", name }, status: { health: { status: health }, sync: { status: sync } } });
        const run = (name: string, endedAt: string) => ({ metadata: { namespace: "d", name }, spec: {}, status: { phase: "Failed", endedAt } });
        const machine = { metadata: { namespace: "v", name: "m" }, status: { printableStatus: "ErrorUnschedulable" } };
        const things = {
            applications: [app("late", "Healthy", "OutOfSync"), app("bad", "Degraded", "Synced"), app("good", "Healthy", "Synced")], machines: [machine],
            voyages: [run("new", "2026-01-09T00:00:00Z"), run("old", "2025-01-01T00:00:00Z")], gateways: [], nodes: [], requests: [],
        };
        const found = concernsOf(things as never, now);
        expect(found.map(one => `${one.name} ${one.word}`)).toEqual(["bad Degraded", "m ErrorUnschedulable", "new Failed", "late OutOfSync"]);
    });
});
