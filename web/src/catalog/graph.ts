// The graph of relations around an entity, and where its nodes are: the library that knows how to place them is loaded when one is drawn.

import { type Entity, refOf } from "./entity";

export interface Edge {
    from: string;
    to: string;
    label: string;
}

export interface Graph {
    refs: string[];
    edges: Edge[];
}

interface Point { x: number; y: number }

/** Where everything is: nodes by their upper left corner. */
export interface Laid {
    nodes: (Point & { ref: string })[];
    /** The way of each edge, and the middle of its label. */
    edges: (Edge & { points: Point[]; middle: Point })[];
    width: number;
    height: number;
}

/** Of each pair of relations the one that is said; the other says the same from the other end. */
const SAID = new Set(["ownedBy", "partOf", "providesApi", "consumesApi", "dependsOn", "memberOf", "childOf"]);
const OPPOSITES: Record<string, string> = {
    ownerOf: "ownedBy", hasPart: "partOf", apiProvidedBy: "providesApi", apiConsumedBy: "consumesApi", dependencyOf: "dependsOn", hasMember: "memberOf", parentOf: "childOf",
};

export const NODE = { width: 190, height: 44, columnGap: 36, rowGap: 18 };
/** About as large as the letters of a label are. */
const LETTER = { width: 6, height: 14 };
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
    return { refs: [...distance.keys()], edges: [...edges.values()] };
}

/** Places a graph from left to right, so that few edges cross and none goes through a node. */
export async function layOut(graph: Graph): Promise<Laid> {
    const dagre = await import("@dagrejs/dagre");
    const drawn = new dagre.Graph({ multigraph: true });
    drawn.setGraph({ rankdir: "LR", nodesep: NODE.rowGap, edgesep: NODE.rowGap / 2, ranksep: NODE.columnGap, marginx: 2, marginy: 2 });
    for (const ref of graph.refs) drawn.setNode(ref, { width: NODE.width, height: NODE.height });
    for (const { from, to, label } of graph.edges) drawn.setEdge(from, to, { label, width: label.length * LETTER.width, height: LETTER.height, labelpos: "c" }, label);
    dagre.layout(drawn);
    const { width = 0, height = 0 } = drawn.graph() as { width?: number; height?: number };
    return {
        nodes: graph.refs.map(ref => {
            const { x, y } = drawn.node(ref) as Point;
            return { ref, x: x - NODE.width / 2, y: y - NODE.height / 2 };
        }),
        edges: graph.edges.map(edge => {
            const { points, x, y } = drawn.edge(edge.from, edge.to, edge.label) as Point & { points: Point[] };
            return { ...edge, points, middle: { x, y } };
        }),
        width, height,
    };
}

/** A line through points, with round corners. */
export function lineThrough(points: readonly Point[]): string {
    const [first, ...rest] = points;
    const last = rest.at(-1);
    if (!first || !last) return "";
    const bends = rest.slice(0, -1).map((point, at) => {
        const next = rest[at + 1] ?? last;
        const isEnd = at === rest.length - 2;
        return `Q${point.x},${point.y} ${isEnd ? next.x : (point.x + next.x) / 2},${isEnd ? next.y : (point.y + next.y) / 2}`;
    });
    return `M${first.x},${first.y} ${bends.length === 0 ? `L${last.x},${last.y}` : bends.join(" ")}`;
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
