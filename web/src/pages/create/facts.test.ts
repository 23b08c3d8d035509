import { expect, it } from "vitest";
import type { DryRun } from "../../api/rest/scaffolder";
import { type Fact, facts } from "./facts";

const nothing = { succeeds: true, repositories: [], objects: [], manifests: [] };
const share = { namespace: "vms", name: "machines", resource: "pods", hard: "3", used: "1", left: "2", takes: "1" };
const place = { namespace: "vms", name: "web", node: "host-1", scheduled: true };
const unlimited: Fact = { name: "Quota", lines: ["No quota limits this run"] };
const unpublished: Fact = { name: "Address", lines: ["Nothing is published"] };

it.each<[string, Partial<NonNullable<DryRun["foreseen"]>>, Fact[]]>([
    ["nothing is known", {}, [unlimited, unpublished]],
    ["there is a node", { node: [place] }, [{ name: "Node of vms/web", lines: ["host-1"], tone: "green" }, unlimited, unpublished]],
    ["no node fits", { node: [{ ...place, node: "none: full", scheduled: false }] }, [{ name: "Node of vms/web", lines: ["none: full"], tone: "orange" }, unlimited, unpublished]],
    ["nobody knows yet", { node: [{ ...place, node: "not known: turns", scheduled: null }] }, [{ name: "Node of vms/web", lines: ["not known: turns"], tone: "grey" }, unlimited, unpublished]],
    ["a quota limits it", { quota: [share] }, [{ name: "Quota", lines: ["vms/machines: pods: takes 1 of 2 left (3 in all)"] }, unpublished]],
    ["it is published", { urls: ["https://a.example:8443"] }, [unlimited, { name: "Address", lines: ["https://a.example:8443"] }]],
])("%s", (_what, foreseen, expected) => {
    expect(facts({ ...nothing, ...foreseen })).toEqual(expected);
});
