// Where the nodes of a relations graph are: columns by distance from the middle, in the order in which they were found.

import { type Entity, refOf } from "./entity";

export interface Node {
    ref: string;
    x: number;
    y: number;
}

export interface Edge {
    from: string;
    to: string;
    label: string;
}

export interface Graph {
    nodes: Node[];
    edges: Edge[];
    width: number;
    height: number;
}

/** Of each pair of relations the one that is said; the other says the same from the other end. */
const SAID = new Set(["ownedBy", "partOf", "providesApi", "consumesApi", "dependsOn", "memberOf", "childOf"]);
const OPPOSITES: Record<string, string> = {
    ownerOf: "ownedBy", hasPart: "partOf", apiProvidedBy: "providesApi", apiConsumedBy: "consumesApi", dependencyOf: "dependsOn", hasMember: "memberOf", parentOf: "childOf",
};

export const NODE = { width: 190, height: 44, columnGap: 90, rowGap: 18 };
/** More than this nobody reads. */
const MAX_NODES = 120;

export function graphOf(root: string, known: Map<string, Entity>, depth: number): Graph {
    const distance = new Map([[root, 0]]);
    const edges = new Map<string, Edge>();
    let layer = [root];
    for (let at = 0; at < depth; at += 1) {
        const next: string[] = [];
        for (const ref of layer) {
            for (const relation of known.get(ref)?.relations ?? []) {
                const target = relation.targetRef.toLowerCase();
                if (!distance.has(target)) {
                    if (distance.size >= MAX_NODES) continue;
                    distance.set(target, at + 1);
                    next.push(target);
                }
                const isSaid = SAID.has(relation.type);
                const [from, to] = isSaid || !OPPOSITES[relation.type] ? [ref, target] : [target, ref];
                const label = OPPOSITES[relation.type] ?? relation.type;
                edges.set(`${from} ${label} ${to}`, { from, to, label });
            }
        }
        layer = next;
    }
    const columns: string[][] = [];
    for (const [ref, at] of distance) (columns[at] ??= []).push(ref);
    const rows = Math.max(...columns.map(column => column.length));
    const height = rows * (NODE.height + NODE.rowGap);
    const nodes = columns.flatMap((column, at) => {
        const gap = height / column.length;
        return column.map((ref, n) => ({ ref, x: at * (NODE.width + NODE.columnGap), y: gap * n + (gap - NODE.height) / 2 }));
    });
    return { nodes, edges: [...edges.values()], width: columns.length * (NODE.width + NODE.columnGap) - NODE.columnGap, height };
}

/** References that a graph of this depth still needs. */
export function missing(root: string, known: Map<string, Entity>, depth: number): string[] {
    const needed = new Set<string>();
    let layer = [root];
    for (let at = 0; at < depth; at += 1) {
        const next: string[] = [];
        for (const ref of layer) {
            if (!known.has(ref)) needed.add(ref);
            for (const relation of known.get(ref)?.relations ?? []) next.push(relation.targetRef.toLowerCase());
        }
        layer = next.slice(0, MAX_NODES);
    }
    return [...needed];
}

export function byRef(entities: Entity[]): Map<string, Entity> {
    return new Map(entities.map(entity => [refOf(entity), entity]));
}
