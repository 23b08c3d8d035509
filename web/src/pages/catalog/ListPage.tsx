// The catalog as a table, with Backstage's filters. All entities are read once; filters are then instant.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/dynamic/components/FormSelect";
import { Label } from "@patternfly/react-core/dist/dynamic/components/Label";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { SearchInput } from "@patternfly/react-core/dist/dynamic/components/SearchInput";
import { useEffect, useMemo } from "react";
import { Link, useSearchParams } from "react-router";
import { useAnswer } from "../../api/hooks";
import { entities } from "../../catalog/client";
import { type Entity, entityPath, refOf, shortRef, specText, titleOf } from "../../catalog/entity";
import { useCatalogVersion } from "../../catalog/live";
import { counted, t } from "../../text/catalog";
import { type Column, CommandHint, Empty, Failed, Loading, NoMatch, PageHeader, sorted, Stale, StatusLabel, VirtualTable } from "../../widgets";
import { matches, offered, ownerOf, readFilters } from "./filters";

const FIELDS = "kind,metadata.name,metadata.namespace,metadata.title,metadata.description,metadata.tags,metadata.uid,spec.type,spec.owner,spec.lifecycle,spec.system";

export function ListPage() {
    const [params, setParams] = useSearchParams();
    const version = useCatalogVersion();
    const asked = useAnswer("catalog", signal => entities({ fields: FIELDS, orderField: "metadata.name,asc" }, [], signal));
    const { again } = asked;
    useEffect(() => {
        if (version > 0) again();
    }, [version, again]);
    const filters = readFilters(params);
    const sort = params.get("sort") ?? "name";
    const all = useMemo(() => asked.answer?.items ?? [], [asked.answer]);
    const key = params.toString();
    const rows = useMemo(() => sorted(all.filter(one => matches(one, readFilters(new URLSearchParams(key)))), COLUMNS, sort), [all, key, sort]);
    const change = (name: string, value: string): void => {
        const next = new URLSearchParams(params);
        if (value) next.set(name, value);
        else next.delete(name);
        setParams(next, { replace: true });
    };
    return (
        <>
            <PageHeader title={t("title")} description={t("description")} actions={<Link to="/create" className="pf-v6-c-button pf-m-primary">{t("create")}</Link>}>
                <div className="fw-row-gap fw-filters">
                    <SearchInput aria-label={t("search")} placeholder={t("search")} value={filters.words} onChange={(_, value) => change("q", value)} onClear={() => change("q", "")} />
                    <Choice label={t("kind")} value={filters.kind} options={offered(all, filters, "kind")} anyValue="all" onChange={value => change("kind", value)} />
                    {(["type", "owner", "lifecycle", "tag"] as const).map(name => (
                        <Choice key={name} label={t(name === "tag" ? "tags" : name)} value={filters[name]} options={offered(all, filters, name)} onChange={value => change(name, value)} show={name === "owner" ? shortRef : undefined} />
                    ))}
                </div>
            </PageHeader>
            <PageSection isFilled>
                {asked.error && !asked.answer && <Failed error={asked.error} again={again} />}
                <Stale of={asked} />
                {!asked.answer && !asked.error && <Loading />}
                {asked.answer?.items.length === 0 && <Empty title={t("empty")} actions={<Link to="/create">{t("create")}</Link>}>{t("emptyBody")}</Empty>}
                {all.length > 0 && rows.length === 0 && <NoMatch onClear={() => setParams({ kind: "all" })} />}
                {asked.answer && asked.answer.total > all.length && <Alert isInline variant="warning" title={t("cut", { n: all.length, all: asked.answer.total })} />}
                {rows.length > 0 && (
                    <>
                        <p className="fw-muted" role="status">{counted("entities", rows.length)}</p>
                        <VirtualTable label={t("title")} rows={rows} columns={COLUMNS} rowKey={refOf} sort={sort} onSort={value => change("sort", value)} />
                    </>
                )}
                <CommandHint commands={["fairway catalog list", "kubectl get catalogentities"]} />
            </PageSection>
        </>
    );
}

interface ChoiceProps {
    label: string;
    value: string;
    options: string[];
    anyValue?: string;
    onChange: (value: string) => void;
    show?: (value: string) => string;
}

function Choice({ label, value, options, anyValue = "", onChange, show = text => text }: ChoiceProps) {
    const all = options.includes(value) || value === anyValue ? options : [value, ...options];
    return (
        <FormSelect aria-label={label} value={value} onChange={(_, chosen) => onChange(chosen)} className="fw-choice">
            <FormSelectOption value={anyValue} label={`${label}: ${t("all")}`} />
            {all.map(one => <FormSelectOption key={one} value={one} label={show(one)} />)}
        </FormSelect>
    );
}

const COLUMNS: Column<Entity>[] = [
    { key: "name", title: t("name"), width: "2fr", sortBy: one => titleOf(one).toLowerCase(), render: one => <Link to={entityPath(refOf(one))}>{titleOf(one)}</Link> },
    { key: "kind", title: t("kind"), width: "7rem", sortBy: one => one.kind, render: one => one.kind },
    { key: "owner", title: t("owner"), sortBy: ownerOf, render: one => (ownerOf(one) ? <Link to={entityPath(ownerOf(one))}>{shortRef(ownerOf(one))}</Link> : null) },
    { key: "type", title: t("type"), isOptional: true, sortBy: one => specText(one, "type"), render: one => specText(one, "type") },
    { key: "lifecycle", title: t("lifecycle"), width: "8.5rem", isOptional: true, sortBy: one => specText(one, "lifecycle"), render: one => <StatusLabel isPlain word={specText(one, "lifecycle")} /> },
    { key: "description", title: t("descriptionColumn"), width: "2fr", isOptional: true, render: one => <span title={one.metadata.description}>{one.metadata.description}</span> },
    { key: "tags", title: t("tags"), isOptional: true, render: one => (one.metadata.tags ?? []).slice(0, 3).map(tag => <Label key={tag} isCompact>{tag}</Label>) },
];
