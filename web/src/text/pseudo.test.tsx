// Pages with a translation in which every text is marked: what is shown without a mark was written into a page, and nobody could translate it.

import { type ComponentType, createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { MemoryRouter, Route, Routes } from "react-router";
import { beforeAll, describe, expect, it, vi } from "vitest";
import type { Resource } from "../api/kinds";
import { beginSession } from "../api/session";
import { type Catalog, setCatalog } from "./t";

const AT = "2026-01-01T00:00:00Z";
/** What comes from the server begins like this, so that it is told from texts of the portal. */
const metadata = (name = "~web") => ({ name, namespace: "~ns", uid: "~uid", creationTimestamp: AT, labels: { "~label": "~value" } });
const condition = { type: "~Type", status: "True", reason: "~Reason", message: "~message", lastTransitionTime: AT };

const OBJECTS: Record<string, unknown[]> = {
    applications: [{
        metadata: metadata(), spec: { project: "~project", source: { repoURL: "~url", path: "~path", targetRevision: "~main" }, destination: { name: "~cluster", namespace: "~ns" }, syncPolicy: { automated: {} } },
        status: {
            health: { status: "~Degraded", message: "~message" }, sync: { status: "~OutOfSync", revision: "~revision" }, conditions: [condition], operationState: { phase: "Running", message: "~message" },
            resources: [{ group: "kubevirt.io", kind: "VirtualMachine", namespace: "~ns", name: "~web" }, { kind: "ConfigMap", namespace: "~ns", name: "~settings", status: "~OutOfSync", requiresPruning: true, hook: true }],
            history: [{ id: 1, revision: "~revision", deployedAt: AT, initiatedBy: { automated: true } }, { id: 2, revision: "~revision", deployedAt: AT }],
        },
    }],
    virtualmachines: [{ metadata: metadata(), spec: { runStrategy: "~Always", template: { spec: { domain: { cpu: { cores: 2 }, memory: { guest: "~1Gi" }, devices: { disks: [{ name: "~disk" }], interfaces: [{ name: "~net" }] } }, volumes: [] } } }, status: { printableStatus: "~Running", conditions: [condition] } }],
    virtualmachineinstances: [{ metadata: metadata(), spec: {}, status: { phase: "Running", nodeName: "~node", interfaces: [{ ipAddress: "10.0.0.1" }] } }],
    voyages: [{
        metadata: metadata(), spec: { template: "~template", requestedBy: { username: "~me" }, values: { name: "~web" } },
        status: { phase: "Succeeded", startedAt: AT, endedAt: AT, message: "~message", output: { links: [{ title: "~link", url: "https://~" }], text: [{ title: "~note", content: "~content" }] }, steps: [{ id: "~step", name: "~Step", action: "~action", state: "~completed", log: [], made: [{ title: "~made", reference: { path: "/apis/argoproj.io/v1alpha1/namespaces/~ns/applications/~web" } }] }] },
    }],
    gateways: [{ metadata: metadata(), spec: { gatewayClassName: "~class", listeners: [{ name: "~http", port: 80, protocol: "~HTTP" }] }, status: { conditions: [condition], addresses: [{ value: "127.0.0.1" }] } }],
    httproutes: [{ metadata: metadata(), spec: { hostnames: ["~host"], parentRefs: [{ name: "~gateway" }], rules: [{ backendRefs: [{ name: "~service" }] }] }, status: { parents: [{ parentRef: { name: "~gateway" }, conditions: [condition] }] } }],
    authpolicies: [{ metadata: metadata(), spec: { targetRef: { kind: "HTTPRoute", name: "~route" }, rules: { authentication: {} } }, status: { conditions: [condition] } }],
    services: [{ metadata: metadata(), spec: { type: "~ClusterIP", clusterIP: "10.0.0.1", ports: [{ port: 80, protocol: "~TCP" }], selector: { "~app": "~web" } } }],
    apiproducts: [{ metadata: metadata(), spec: { displayName: "~product", targetRef: { kind: "HTTPRoute", name: "~route" }, approvalMode: "~manual", publishStatus: "~Published" }, status: { conditions: [condition] } }],
    apikeys: [{ metadata: metadata(), spec: { apiProductRef: { name: "~product" }, planTier: "~free" }, status: { secretRef: { name: "~secret" }, conditions: [condition] } }],
    repositories: [{ metadata: metadata(), spec: { description: "~description" } }],
    workspaces: [{ metadata: metadata(), spec: { type: { name: "~type" } }, status: { phase: "~Ready" } }],
    clusterrolebindings: [{ metadata: metadata(), roleRef: { kind: "ClusterRole", name: "~role" }, subjects: [{ kind: "User", name: "~who" }] }],
    events: [{ metadata: metadata(), reason: "~Reason", message: "~message", involvedObject: {}, type: "Normal", lastTimestamp: AT, source: { component: "~component" } }],
};

const ENTITY = { apiVersion: "backstage.io/v1alpha1", kind: "Component", metadata: { ...metadata(), description: "~description", tags: ["~tag"] }, spec: { type: "~type", owner: "~owner", lifecycle: "~lifecycle", system: "~system" }, relations: [{ type: "ownedBy", targetRef: "group:default/~owner" }] };
const COMMIT = { sha: "~sha", commit: { message: "~message", author: { name: "~author", email: "~email", date: AT } }, parents: [] };
const PULL = { number: 1, title: "~title", state: "open", head: { ref: "~head", sha: "~sha" }, base: { ref: "~base" }, created_at: AT, mergeable: true };

/** A question for each of Backstage's fields. */
const PICKERS = Object.fromEntries(
    ["OwnerPicker", "EntityPicker", "OwnedEntityPicker", "MyGroupsPicker", "EntityNamePicker", "MultiEntityPicker", "EntityTagsPicker", "RepoUrlPicker", "RepoBranchPicker", "Secret"]
        .map(field => [field, { type: /Multi|Tags/.test(field) ? "array" : "string", title: `~${field}`, default: /Multi|Tags/.test(field) ? ["~one"] : undefined, "ui:field": field }]),
);

/** By how the question begins. */
const ANSWERS: [string, unknown][] = [
    ["entity ", ENTITY], ["live ", { applications: [{ name: "~web", namespace: "~ns", health: "~Healthy", sync: "~Synced" }], objects: [{ kind: "VirtualMachine", name: "~web", namespace: "~ns", status: "~Running" }], hidden: ["~kinds"] }], ["around ", []],
    ["templates", { items: [{ ...ENTITY, kind: "Template" }], total: 1 }], ["catalog", { items: [ENTITY], total: 2 }], ["mine ", { items: [ENTITY], total: 1 }], ["refs ", { items: [], total: 0 }],
    ["/api/scaffolder", { title: "~title", description: "~description", steps: [{ title: "~page", schema: { properties: { name: { type: "string", title: "~Name" }, tags: { type: "array", title: "~Tags", items: { type: "string" } }, open: { type: "boolean", title: "~Open" }, image: { type: "string", title: "~Image", "ui:field": "DataSourcePicker" }, ...PICKERS } } }] }],
    ["tags ", { items: ["~tag"], total: 1 }], ["repo-names ", ["~repo"]], ["repo-branches ", ["~main"]], ["datasources ", { items: [{ metadata: { name: "~tiny" } }] }],
    ["activity", [{ time: AT, user: "~user", verb: "~verb", group: "", resource: "~resource", code: 403 }]],
    ["repo ", { name: "~web", full_name: "~full", default_branch: "~main", description: "~description" }], ["branches ", [{ name: "~main" }, { name: "~other" }]], ["contents ", [{ name: "~file", path: "~file", type: "file" }]],
    ["commits ", [COMMIT]], ["commit ", COMMIT], ["patch ", "~patch"], ["diff ", "~patch"], ["pulls ", [PULL]], ["pull ", PULL], ["statuses ", []], ["comments ", [{ id: 1, body: "~body", user: { login: "~login" }, created_at: AT }]],
    ["tree ", { nodes: [{ kind: "ConfigMap", namespace: "~ns", name: "~settings", uid: "~1", health: { status: "~Healthy" }, createdAt: AT }] }],
    ["plan ", { changes: [] }],
    ["why ", { verdict: "~verdict", links: [{ link: "~link", state: "~ok", at: AT, finding: "~finding", evidence: [{ seenIn: "~seen", message: "~message" }], advice: "~advice" }] }],
];

vi.mock("../api/hooks", async original => ({
    ...(await original<Record<string, unknown>>()),
    useList: (resource: Resource) => ({ items: OBJECTS[resource.plural] ?? [], state: "live" }),
    useObject: (resource: Resource) => (OBJECTS[resource.plural]?.[0] ? { object: OBJECTS[resource.plural]?.[0], state: "live" } : { state: "absent" }),
    useAnswer: (key: string) => ({ answer: ANSWERS.find(([begin]) => key.startsWith(begin))?.[1], isLoading: false, again: () => undefined }),
}));

/** Every area with every text, each with a mark. */
const MARKED = new Proxy({}, { get: (_, area) => new Proxy({}, { get: (_all, key) => `⟦${String(area)}.${String(key)}⟧` }) }) as Catalog;

/** Names of things, which are the same in every language. */
const NAMES = [
    "VirtualMachine", "VirtualMachineInstance", "Application", "ConfigMap", "Component", "Gateway", "HTTPRoute", "APIProduct", "APIKey", "AuthPolicy", "Service", "User", "Group", "ClusterRole", "kubevirt.io", "argoproj.io", "root", "True", "False", "Running",
    "Succeeded", "Failed", "Cancelled", "Decommissioned", "Pending", "Open", "Missing", "NotProgrammed", "Ready", "CPU", "MiB", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "universal", "organization", "team", "ownedBy", "ownerOf", "component", "group", "default",
    "in-cluster", "bios", "http", "https", "TCP", "AM", "PM",
];

/** What PatternFly says by itself, in English: to screen readers, of its own parts. */
const PATTERNFLY = ["Breadcrumb", "Info", "Success", "Warning", "Danger", "alert", "Reset", "Scroll", "left", "right", "back", "forward"];

/** What somebody reads or hears: texts between tags and those of attributes, without code and commands. */
function shown(html: string): string[] {
    const without = html.replace(/<(code|pre|style|svg)\b[\s\S]*?<\/\1>/g, " ");
    const attributes = [...without.matchAll(/ (?:aria-label|title|placeholder|alt|label)="([^"]*)"/g)].map(([, text = ""]) => text);
    return [...attributes, ...without.replace(/<[^>]*>/g, "\n").split("\n")].map(text => text.replace(/&[a-z#0-9]+;/g, " ").trim()).filter(Boolean);
}

/** The words of a text that are neither marked nor the server's. */
function unmarked(text: string): string[] {
    return text.replace(/⟦[^⟧]*⟧/g, " ").split(/[\s/:,;·()#→"]+/).filter(word => /\p{L}/u.test(word) && !word.includes("~") && !NAMES.includes(word) && !PATTERNFLY.includes(word) && !/^(\d+[smhdy])+$/.test(word));
}

const LOADERS = import.meta.glob<{ default: ComponentType }>("../pages/*/index.tsx");

const PLACES: [string, string[]][] = [
    ["home", [""]],
    ["catalog", ["?kind=all", "/component/default/~web", "/component/default/~web?tab=relations"]],
    ["create", ["", "/default/~web"]],
    ["voyages", ["", "/~ns/~web", "/~ns/~web?tab=events", "/~ns/~web?tab=why"]],
    ["applications", ["", "?view=list", "/~ns/~web?view=list", ...["tree", "summary", "history", "events", "why"].map(tab => `/~ns/~web?tab=${tab}`), ...["summary", "diff", "why", "events"].map(panel => `/~ns/~web?object=/ConfigMap/~ns/~settings&panel=${panel}`)]],
    ["machines", ["", ...["overview", "configuration", "events", "diagnostics", "why", "snapshots"].map(tab => `/~ns/~web?tab=${tab}`)]],
    ["gateways", [...["gateways", "routes", "services", "policies", "products", "keys", "explain"].map(tab => `?tab=${tab}`), "/httproutes/~ns/~web", "/services/~ns/~web", "/authpolicies/~ns/~web", "/apikeys/~ns/~web?tab=why"]],
    ["repositories", ["", ...["files", "commits", "pulls", "why"].map(tab => `/root/~web?tab=${tab}`), "/root/~web/commits/~sha", ...["plan", "diff", "comments"].map(tab => `/root/~web/pulls/1?tab=${tab}`)]],
    ["workspaces", ["?tab=below", "?tab=members"]],
    ["activity", [""]],
];

describe("every text of a page can be translated", () => {
    beforeAll(() => {
        vi.stubGlobal("document", { documentElement: {}, visibilityState: "visible" });
        vi.stubGlobal("location", { href: "https://portal.example.com/", origin: "https://portal.example.com", pathname: "/", search: "" });
        vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined, removeEventListener: () => undefined }));
        setCatalog("en", MARKED);
        beginSession({ user: { name: "~me" }, workspace: "root", csrf: "", gitUrl: "https://git.example.com" }, "root");
    });
    it.each(PLACES)("%s", async (name, places) => {
        const load = LOADERS[`../pages/${name}/index.tsx`];
        if (!load) throw new Error(`there is no page ${name}`);
        const { default: Page } = await load();
        for (const place of places) {
            const html = renderToStaticMarkup(
                <MemoryRouter initialEntries={[`/${name}${place}`]}><Routes><Route path={`/${name}/*`} element={createElement(Page)} /></Routes></MemoryRouter>,
            );
            const texts = shown(html);
            expect(texts.some(text => text.includes("⟦")), `${place} shows something`).toBe(true);
            expect(texts.filter(text => unmarked(text).length > 0), place).toEqual([]);
        }
    });
});
