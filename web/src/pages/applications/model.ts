// Applications as the page shows them, without a page: words and colours of Argo CD, filters, and the tree from left to right.

import type { Application } from "../../api";

export const healthOf = (app: Application): string => app.status?.health?.status ?? "Unknown";
export const syncOf = (app: Application): string => app.status?.sync?.status ?? "Unknown";
export const clusterOf = (app: Application): string => app.spec.destination.name || app.spec.destination.server || "in-cluster";

export interface Filters {
    text: string;
    health: string;
    sync: string;
    project: string;
    cluster: string;
    namespace: string;
    label: string;
}

export const NO_FILTERS: Filters = { text: "", health: "", sync: "", project: "", cluster: "", namespace: "", label: "" };

export function matches(app: Application, filters: Filters): boolean {
    const labels = Object.entries(app.metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`);
    return (
        (filters.text === "" || (app.metadata.name ?? "").includes(filters.text.toLowerCase()))
        && (filters.health === "" || healthOf(app) === filters.health)
        && (filters.sync === "" || syncOf(app) === filters.sync)
        && (filters.project === "" || app.spec.project === filters.project)
        && (filters.cluster === "" || clusterOf(app) === filters.cluster)
        && (filters.namespace === "" || app.spec.destination.namespace === filters.namespace)
        && (filters.label === "" || labels.some(label => label.includes(filters.label)))
    );
}

/** The choices of a filter: what is there, sorted. */
export function choices(apps: Application[], of: (app: Application) => string | undefined): string[] {
    return [...new Set(apps.map(of).filter((it): it is string => Boolean(it)))].sort();
}

/** The digest that approves deletions, if a sync waits for it. The guard names it in its message. */
export function waitingApproval(app: Application): string | undefined {
    const state = app.status?.operationState;
    if (!state || state.phase !== "Running") return undefined;
    const found = /fairway\.dev\/approve-sync:\s*([0-9a-f]{8,64})/.exec(state.message ?? "");
    return found?.[1];
}

/** A node of Argo CD's ApplicationTree. */
export interface TreeNode {
    group?: string;
    version?: string;
    kind: string;
    namespace?: string;
    name: string;
    uid?: string;
    parentRefs?: { uid?: string; kind?: string; name?: string; namespace?: string }[];
    health?: { status?: string; message?: string };
    createdAt?: string;
}

export interface Placed {
    id: string;
    node: TreeNode;
    /** Its parent's id; the root is the Application itself. */
    parent: string;
    column: number;
    row: number;
}

export const idOf = (node: TreeNode): string => [node.group ?? "", node.kind, node.namespace ?? "", node.name].join("/");

/** Objects that are declared and not there have no uid, and are not in the tree that the engine sees; they are shown all the same. As long
 * as the tree is not known (`undefined`), what is declared is shown with the health that the Application says it has: nobody has looked. */
export function withMissing(nodes: TreeNode[] | undefined, app: Application): TreeNode[] {
    const known = new Set((nodes ?? []).map(idOf));
    const declared = (app.status?.resources ?? []).map(it => ({ node: { group: it.group, version: it.version, kind: it.kind ?? "", namespace: it.namespace, name: it.name ?? "" }, health: it.health }));
    const others = declared.filter(it => !known.has(idOf(it.node)));
    return [...(nodes ?? []), ...others.map(it => ({ ...it.node, health: nodes ? { status: "Missing" } : it.health }))];
}

/** Children right of their parents, one row for every leaf. A child of several is drawn below the first; a circle is cut. */
export function layOut(nodes: TreeNode[]): { placed: Placed[]; columns: number; rows: number } {
    const byUid = new Map(nodes.filter(node => node.uid).map(node => [node.uid as string, node]));
    const children = new Map<string, TreeNode[]>();
    for (const node of nodes) {
        const parent = (node.parentRefs ?? []).map(ref => byUid.get(ref.uid ?? "")).find(it => it && it !== node);
        const key = parent ? idOf(parent) : "";
        children.set(key, [...(children.get(key) ?? []), node]);
    }
    const placed: Placed[] = [];
    const seen = new Set<string>();
    let rows = 0;
    let columns = 1;
    const place = (node: TreeNode, parent: string, column: number): void => {
        const id = idOf(node);
        if (seen.has(id)) return;
        seen.add(id);
        columns = Math.max(columns, column + 1);
        const own: Placed = { id, node, parent, column, row: rows };
        placed.push(own);
        const below = [...(children.get(id) ?? [])].sort(byKindAndName);
        if (below.length === 0) rows += 1;
        const first = rows;
        for (const child of below) place(child, id, column + 1);
        if (below.length > 0 && rows === first) rows += 1;
    };
    for (const node of [...(children.get("") ?? [])].sort(byKindAndName)) place(node, "", 1);
    // What hangs in a circle has no beginning.
    for (const node of nodes) place(node, "", 1);
    return { placed, columns, rows: Math.max(rows, 1) };
}

function byKindAndName(a: TreeNode, b: TreeNode): number {
    return a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name);
}
