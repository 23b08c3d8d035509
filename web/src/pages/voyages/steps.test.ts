import { describe, expect, it } from "vitest";
import type { Application, Voyage } from "../../api/kinds";
import { grownOf, linksBeside, linksOf, stepsOf, thingsOf, wishesOf } from "./steps";

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

describe("what a run has made", () => {
    const path = (plural: string, name: string) => ({ path: `/apis/${plural === "repositories" ? "fairway.dev" : "argoproj.io"}/v1alpha1/${plural === "repositories" ? "" : "namespaces/a/"}${plural}/${name}` });
    const voyage = { spec: { template: "x" }, status: { steps: [
        { id: "a", made: [{ reference: path("repositories", "web") }, { reference: path("applications", "web") }, "text", null] },
        { id: "b", made: [{ reference: path("applications", "gone"), undone: true }, { reference: { path: "/api/v1/namespaces/b" } }, { reference: {} }] },
        { id: "c" },
    ] } } as unknown as Voyage;
    it("is what has a page and is still there", () => {
        expect(thingsOf(voyage).map(it => it.to)).toEqual(["/repositories/root/web", "/applications/a/web"]);
    });
    it("leads to what its Applications declare", () => {
        const app = (name: string, kind: string) => ({ metadata: { namespace: "a", name }, status: { resources: [{ group: "kubevirt.io", kind, namespace: "vms", name }, { kind: "ConfigMap", name: "c" }] } });
        const all = [app("web", "VirtualMachine"), app("other", "VirtualMachine")] as unknown as Application[];
        expect(grownOf(thingsOf(voyage), all).map(it => it.to)).toEqual(["/machines/vms/web"]);
    });
});

describe("links of a run", () => {
    it("are not what is named already", () => {
        const links = [{ title: "Repository", url: "https://git.example/root/web" }, { title: "Other", url: "https://git.example/root/other" }, { title: "Site", url: "https://web.example" }];
        const things = [{ kind: "Repository", name: "web", to: "/repositories/root/web" }];
        expect(linksBeside(things, links, "https://git.example").map(one => one.title)).toEqual(["Other", "Site"]);
        expect(linksBeside([], links, "https://git.example")).toEqual(links);
    });
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
