// What an entity is related to, as a graph; and as a list, for those who do not see it.

import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core/dist/dynamic/components/ToggleGroup";
import { useMemo } from "react";
import { Link, useSearchParams } from "react-router";
import { useAnswer } from "../../api/hooks";
import { json } from "../../api/request";
import { type Entity, entityPath, parseRef, refOf, shortRef } from "../../catalog/entity";
import { byRef, graphOf, missing, NODE } from "../../catalog/graph";
import { t } from "../../text/catalog";
import { Failed } from "../../widgets";

const FIELDS = ["kind", "metadata.name", "metadata.namespace", "metadata.title", "relations"];

/** Reads what is related, step by step, as far as the depth wants it. */
async function around(entity: Entity, depth: number, signal: AbortSignal): Promise<Entity[]> {
    const known = byRef([entity]);
    const absent = new Set<string>();
    for (let at = 0; at < depth; at += 1) {
        const entityRefs = missing(refOf(entity), known, depth).filter(ref => !absent.has(ref));
        if (entityRefs.length === 0) break;
        const { items } = await json<{ items: (Entity | null)[] }>("/api/catalog/entities/by-refs", { method: "POST", body: { entityRefs, fields: FIELDS }, signal });
        items.forEach((item, n) => {
            const ref = entityRefs[n] ?? "";
            if (item) known.set(ref, item);
            else absent.add(ref);
        });
    }
    return [...known.values()];
}

export function RelationsGraph({ entity }: { entity: Entity }) {
    const [params, setParams] = useSearchParams();
    const depth = Math.min(4, Math.max(1, Number(params.get("depth") ?? 1) || 1));
    const root = refOf(entity);
    const asked = useAnswer(`around ${root} ${depth} ${JSON.stringify(entity.relations ?? [])}`, signal => around(entity, depth, signal));
    const graph = useMemo(() => graphOf(root, byRef([entity, ...(asked.answer ?? [])]), depth), [root, entity, asked.answer, depth]);
    const at = new Map(graph.nodes.map(node => [node.ref, node]));
    const setDepth = (value: number): void => {
        const next = new URLSearchParams(params);
        next.set("depth", String(value));
        setParams(next, { replace: true });
    };
    if (!entity.relations?.length) return <p className="fw-muted">{t("noRelations")}</p>;
    return (
        <div className="fw-stack fw-top">
            <ToggleGroup aria-label={t("depth")}>
                {[1, 2, 3, 4].map(value => <ToggleGroupItem key={value} text={`${t("depth")} ${value}`} buttonId={`depth-${value}`} isSelected={depth === value} onChange={() => setDepth(value)} />)}
            </ToggleGroup>
            {asked.error && <Failed error={asked.error} again={asked.again} />}
            <div className="fw-scroll" tabIndex={0} role="region" aria-label={t("graphLabel", { name: entity.metadata.name })}>
                <svg width={graph.width + 4} height={graph.height + 4} className="fw-graph" role="group" aria-label={t("graphLabel", { name: entity.metadata.name })}>
                    {graph.edges.map(edge => {
                        const [a, b] = [at.get(edge.from), at.get(edge.to)];
                        if (!a || !b) return null;
                        const [left, right] = a.x <= b.x ? [a, b] : [b, a];
                        const [x1, y1, x2, y2] = [left.x + NODE.width, left.y + NODE.height / 2, right.x, right.y + NODE.height / 2];
                        return (
                            <g key={`${edge.from} ${edge.label} ${edge.to}`}>
                                <path d={`M${x1},${y1} C${x1 + 45},${y1} ${x2 - 45},${y2} ${x2},${y2}`} className="fw-edge" />
                                <text x={(x1 + x2) / 2} y={(y1 + y2) / 2 - 4} textAnchor="middle" className="fw-edge-label">{edge.label}</text>
                            </g>
                        );
                    })}
                    {graph.nodes.map(node => (
                        // A link, so that it can be reached by keyboard, opened beside this page, and told by a screen reader.
                        <Link key={node.ref} to={`${entityPath(node.ref)}?tab=relations&depth=${depth}`} aria-current={node.ref === root ? "page" : undefined} className="fw-node-link">
                            <g transform={`translate(${node.x + 2},${node.y + 2})`}>
                                <rect width={NODE.width} height={NODE.height} rx={6} className={node.ref === root ? "fw-node fw-node-root" : "fw-node"} />
                                <text x={10} y={18} className="fw-node-kind">{parseRef(node.ref).kind} </text>
                                <text x={10} y={35} className="fw-node-name">{shortRef(node.ref).slice(0, 24)}</text>
                            </g>
                        </Link>
                    ))}
                </svg>
            </div>
            <ul aria-label={t("relations")}>
                {(entity.relations ?? []).map(relation => (
                    <li key={`${relation.type} ${relation.targetRef}`}>
                        {relation.type} <Link to={`${entityPath(relation.targetRef)}?tab=relations`}>{relation.targetRef}</Link>
                    </li>
                ))}
            </ul>
        </div>
    );
}
