// Applications as the page shows them, without a page: words and colours of Argo CD, filters, and the tree from left to right.

import type { Application } from "../../api";
import type { Node } from "../../api/rest/argo";

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
export function choices<T>(all: readonly T[], of: (one: T) => string | undefined): string[] {
    return [...new Set(all.map(of).filter((it): it is string => Boolean(it)))].sort();
}

/** The digest that approves deletions, if a sync waits for it. The guard names it in its message. */
export function waitingApproval(app: Application): string | undefined {
    const state = app.status?.operationState;
    if (!state || state.phase !== "Running") return undefined;
    const found = /fairway\.dev\/approve-sync:\s*([0-9a-f]{8,64})/.exec(state.message ?? "");
    return found?.[1];
}

/** What is declared, or grew out of it. */
export interface TreeNode extends Node {
    /** Of what is declared: whether it is as Git has it, whether Git no longer has it, and whether it is a hook. What grew out of it has none of these. */
    sync?: string;
    requiresPruning?: boolean;
    hook?: boolean;
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

type Declared = NonNullable<NonNullable<Application["status"]>["resources"]>[number];

const bare = (it: Declared): TreeNode => ({ group: it.group, version: it.version, kind: it.kind ?? "", namespace: it.namespace, name: it.name ?? "" });
const standing = (it: Declared): Pick<TreeNode, "sync" | "requiresPruning" | "hook"> => ({ sync: it.status || undefined, requiresPruning: it.requiresPruning, hook: it.hook });

/** What there is, with how it stands to Git. Objects that are declared and not there have no uid, and are not in the tree that the engine sees;
 * they are shown all the same. As long as the tree is not known (`undefined`), what is declared is shown with the health that the Application
 * says it has: nobody has looked. A hook is there only while a sync needs it. */
export function withMissing(nodes: TreeNode[] | undefined, app: Application): TreeNode[] {
    const declared = new Map((app.status?.resources ?? []).map(it => [idOf(bare(it)), it]));
    const seen = (nodes ?? []).map(node => {
        const own = declared.get(idOf(node));
        return own ? { ...node, ...standing(own) } : node;
    });
    const known = new Set(seen.map(idOf));
    const others = [...declared].filter(([id]) => !known.has(id)).map(([, it]) => it);
    return [...seen, ...others.map(it => ({ ...bare(it), ...standing(it), health: nodes && !it.hook ? { status: "Missing" } : it.health }))];
}

export interface NodeFilters { kind: string; sync: string; health: string }

/** What matches, and what it grew out of: without that it would hang in the air. */
export function filtered(nodes: TreeNode[], filters: NodeFilters): TreeNode[] {
    if (filters.kind === "" && filters.sync === "" && filters.health === "") return nodes;
    const byUid = new Map(nodes.filter(node => node.uid).map(node => [node.uid as string, node]));
    const kept = new Set<TreeNode>();
    const keep = (node: TreeNode | undefined): void => {
        if (!node || kept.has(node)) return;
        kept.add(node);
        for (const ref of node.parentRefs ?? []) keep(byUid.get(ref.uid ?? ""));
    };
    for (const node of nodes) {
        if ((filters.kind === "" || node.kind === filters.kind) && (filters.sync === "" || node.sync === filters.sync) && (filters.health === "" || node.health?.status === filters.health)) keep(node);
    }
    return nodes.filter(node => kept.has(node));
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

/** How small and how large a tree is drawn. */
export const SMALLEST = 0.4;
export const LARGEST = 1.6;
/** Smaller than this nobody reads it; it is scrolled then. */
const READABLE = 0.8;

/** The scale at which a tree has room, as far as it can still be read. */
export function fitting(room: number, wide: number): number {
    return room === 0 ? 1 : Math.max(READABLE, Math.min(1, room / wide));
}
