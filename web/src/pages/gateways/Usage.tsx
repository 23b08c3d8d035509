// How far limits are used up, and by whom; and what gateways have published.

import { type ReactNode, useEffect, useState } from "react";
import { Link } from "react-router";
import { clusterPath, json, LIVE_MS, RATE_LIMIT_POLICIES, useAnswer, useList } from "../../api";
import type { Counter, Items, Rule } from "../../api/rest/gateway";
import { t } from "../../text/gateways";
import { Answered, type Column, StatusLabel, VirtualTable } from "../../widgets";
import { Unread } from "../pieces/parts";
import { pathOf } from "./model";
import { known, type Known, type Used, usedUp } from "./usage";


/** `90 s`, `5 min`, `24 h`: the largest unit that says it in whole numbers, or nearly. */
function span(seconds: number): string {
    if (seconds < 120 || (seconds < 3600 && seconds % 60 !== 0)) return t("seconds", { n: seconds });
    if (seconds < 7200) return t("minutes", { n: Math.round(seconds / 60) });
    return seconds < 2 * 86_400 ? t("hours", { n: Math.round(seconds / 3600) }) : t("days", { n: Math.round(seconds / 86_400) });
}

const COLUMNS: Column<Used>[] = [
    { key: "consumer", title: t("consumer"), width: "1.5fr", render: row => row.consumer || t("allTogether") },
    { key: "plan", title: t("planOrLimit"), width: "1.5fr", render: row => (row.policy ? <><Link to={pathOf(row.isPlan ? "PlanPolicy" : "RateLimitPolicy", row.namespace, row.policy)}>{row.policy}</Link> {row.limit}</> : <code>{row.limit}</code>) },
    { key: "route", title: t("route"), render: row => row.route, isOptional: true },
    { key: "most", title: t("limit"), render: row => (row.most === undefined ? "–" : t("inTime", { limit: row.most, time: span(row.seconds) })) },
    { key: "used", title: t("used"), width: "9rem", render: row => <><meter min={0} max={row.most || 1} low={(row.most || 1) * 0.8} high={(row.most || 1) - 0.5} optimum={0} value={Math.min(row.used, row.most ?? 0)} aria-hidden hidden={row.most === undefined} /> {row.used}{row.most !== undefined && row.used >= row.most && <> <StatusLabel word={t("usedUp")} tone="red" /></>}</> },
    { key: "reset", title: t("reset"), width: "8rem", render: row => (row.reset === undefined ? "–" : t("inSpan", { time: span(row.reset) })) },
];

export function Usage(): ReactNode {
    const base = `${clusterPath()}/apis/gateway.fairway.dev/v1alpha1`;
    const counters = useAnswer("counters", signal => json<Items<Counter>>(`${base}/counters`, { signal }), LIVE_MS);
    const rules = useAnswer("rules", signal => json<Items<Rule>>(`${base}/publishedrules`, { signal }), LIVE_MS);
    const policies = useList(RATE_LIMIT_POLICIES);
    const [limits, setLimits] = useState<Map<string, Known>>(new Map());
    useEffect(() => {
        let isCurrent = true;
        void known(policies.items).then(found => { if (isCurrent) setLimits(found); });
        return () => { isCurrent = false; };
    }, [policies.items]);
    return (
        <>
            <h2>{t("counters")}</h2>
            <Unread of={[["RateLimitPolicy", policies]]} />
            <Answered of={counters}>{({ items }) => (items.length === 0 ? <p className="fw-muted">{t("noCounters")}</p> : <VirtualTable label={t("counters")} rows={usedUp(items, limits)} columns={COLUMNS} rowKey={row => row.key} />)}</Answered>
            <h2>{t("rules")}</h2>
            <Answered of={rules}>{({ items }) => (items.length === 0 ? <p className="fw-muted">{t("none")}</p> : (
                <ul className="fw-plain-list">
                    {items.map((it, at) => <li key={at}><code>{it.scheme}://{it.host}:{it.port}{it.path}</code> {it.kind} {it.namespace}/{it.name} → {it.backends.join(", ")}</li>)}
                </ul>
            ))}</Answered>
        </>
    );
}
