// What an entity is related to, as a graph; and as a list, for those who do not see it.

import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core/dist/dynamic/components/ToggleGroup";
import { Link, useSearchParams } from "react-router";
import { useAnswer } from "../../api/hooks";
import { json } from "../../api/request";
import type { ByRefs } from "../../api/rest/catalog";
import { type Entity, entityPath, parseRef, refOf, shortRef } from "../../catalog/entity";
import { byRef, graphOf, type Laid, layOut, lineThrough, missing, NODE } from "../../catalog/graph";
import { t } from "../../text/catalog";
import { Answered } from "../../widgets";

const FIELDS = ["kind", "metadata.name", "metadata.namespace", "metadata.title", "relations"];

/** Reads what is related, step by step, as far as the depth wants it. */
async function around(entity: Entity, depth: number, signal: AbortSignal): Promise<Entity[]> {
    const known = byRef([entity]);
    const absent = new Set<string>();
    for (let at = 0; at < depth; at += 1) {
        const entityRefs = missing(refOf(entity), known, depth).filter(ref => !absent.has(ref));
        if (entityRefs.length === 0) break;
        const { items } = await json<ByRefs>("/api/catalog/entities/by-refs", { method: "POST", body: { entityRefs, fields: FIELDS }, signal });
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
    const asked = useAnswer(`graph ${root} ${depth} ${JSON.stringify(entity.relations ?? [])}`, async signal => layOut(graphOf(root, byRef([entity, ...await around(entity, depth, signal)]), depth)));
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
            <Answered of={asked}>{laid => <Drawing laid={laid} root={root} depth={depth} name={entity.metadata.name} />}</Answered>
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

function Drawing({ laid, root, depth, name }: { laid: Laid; root: string; depth: number; name: string }) {
    return (
        <div className="fw-scroll" tabIndex={0} role="region" aria-label={t("graphLabel", { name })}>
            <svg width={laid.width} height={laid.height} className="fw-graph" role="group" aria-label={t("graphLabel", { name })}>
                {laid.edges.map(edge => (
                    <g key={`${edge.from} ${edge.label} ${edge.to}`}>
                        <path d={lineThrough(edge.points)} className="fw-edge" />
                        <text x={edge.middle.x} y={edge.middle.y - 4} textAnchor="middle" className="fw-edge-label">{edge.label}</text>
                    </g>
                ))}
                {laid.nodes.map(node => (
                    // A link, so that it can be reached by keyboard, opened beside this page, and told by a screen reader.
                    <Link key={node.ref} to={`${entityPath(node.ref)}?tab=relations&depth=${depth}`} aria-current={node.ref === root ? "page" : undefined} className="fw-node-link">
                        <g transform={`translate(${node.x},${node.y})`}>
                            <rect width={NODE.width} height={NODE.height} rx={6} className={node.ref === root ? "fw-node fw-node-root" : "fw-node"} />
                            <text x={10} y={18} className="fw-node-kind">{parseRef(node.ref).kind} </text>
                            <text x={10} y={35} className="fw-node-name">{shortRef(node.ref).slice(0, 24)}</text>
                        </g>
                    </Link>
                ))}
            </svg>
        </div>
    );
}
