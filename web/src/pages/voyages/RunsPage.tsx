// All runs, newest first, live; filters are in the address.

import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { SearchInput } from "@patternfly/react-core/dist/dynamic/components/SearchInput";
import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core/dist/dynamic/components/ToggleGroup";
import { useMemo } from "react";
import { Link, useSearchParams } from "react-router";
import { useList } from "../../api/hooks";
import { type Voyage, VOYAGES } from "../../api/kinds";
import { shortRef } from "../../catalog/entity";
import { t } from "../../text/create";
import { Age, type Column, CommandHint, duration, Empty, Failed, Loading, NoMatch, PageHeader, sorted, StatusLabel, VirtualTable } from "../../widgets";
import { isMeant, runTitle, spanOf } from "./runs";

const PHASES = ["Running", "Succeeded", "Failed", "Cancelled", "Decommissioned"];

export function RunsPage() {
    const [params, setParams] = useSearchParams();
    const [words, phase, sort] = [params.get("q") ?? "", params.get("phase") ?? "", params.get("sort") ?? "-started"];
    const change = (key: string, value: string): void => {
        const next = new URLSearchParams(params);
        if (value) next.set(key, value);
        else next.delete(key);
        setParams(next, { replace: true });
    };
    const found = useList(VOYAGES);
    const rows = useMemo(() => {
        const kept = found.items.filter(one => (!phase || one.status?.phase === phase) && isMeant(one, words));
        return sorted(kept, COLUMNS, sort);
    }, [found.items, words, phase, sort]);
    return (
        <>
            <PageHeader title={t("runs")} description={t("runsDescription")}>
                <div className="fw-row-gap">
                    <SearchInput aria-label={t("search")} value={words} onChange={(_, value) => change("q", value)} onClear={() => change("q", "")} />
                    <ToggleGroup aria-label={t("phase")}>
                        {["", ...PHASES].map(one => (
                            <ToggleGroupItem key={one} text={one || t("all")} buttonId={`phase-${one}`} isSelected={phase === one} onChange={() => change("phase", one)} />
                        ))}
                    </ToggleGroup>
                </div>
            </PageHeader>
            <PageSection isFilled>
                {found.state === "failed" && found.error && <Failed error={found.error} />}
                {found.state === "loading" && <Loading />}
                {found.state !== "loading" && found.state !== "failed" && found.items.length === 0 && <Empty title={t("noRuns")} actions={<Link to="/create">{t("startOne")}</Link>} />}
                {found.items.length > 0 && rows.length === 0 && <NoMatch onClear={() => setParams({})} />}
                {rows.length > 0 && (
                    <VirtualTable label={t("runs")} rows={rows} columns={COLUMNS} rowKey={one => `${one.metadata?.namespace}/${one.metadata?.name}`} sort={sort} onSort={key => change("sort", key)} />
                )}
                <CommandHint commands={["fairway voyage list", "kubectl get voyages -A"]} />
            </PageSection>
        </>
    );
}

function durationOf(one: Voyage): string {
    const { from, to } = spanOf(one);
    return duration(from, to, Date.now());
}

const COLUMNS: Column<Voyage>[] = [
    { key: "makes", title: t("makes"), width: "1.5fr", sortBy: runTitle, render: one => <Link to={`/voyages/${one.metadata?.namespace}/${one.metadata?.name}`}>{runTitle(one)}</Link> },
    { key: "phase", title: t("phase"), sortBy: one => one.status?.phase ?? "", render: one => <StatusLabel word={one.status?.phase ?? "Pending"} /> },
    { key: "name", title: t("runName"), width: "1.5fr", isOptional: true, sortBy: one => one.metadata?.name ?? "", render: one => one.metadata?.name },
    { key: "template", title: t("template"), isOptional: true, sortBy: one => one.spec.template, render: one => shortRef(one.spec.template) },
    { key: "by", title: t("startedBy"), isOptional: true, sortBy: one => one.spec.requestedBy?.username ?? "", render: one => one.spec.requestedBy?.username },
    { key: "started", title: t("started"), width: "6rem", sortBy: one => one.metadata?.creationTimestamp ?? "", render: one => <Age of={one.metadata?.creationTimestamp} /> },
    { key: "took", title: t("took"), width: "6rem", isOptional: true, render: one => durationOf(one) },
];
