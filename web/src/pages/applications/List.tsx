// All Applications of a workspace, as tiles or as a list.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Card, CardBody, CardFooter, CardTitle } from "@patternfly/react-core/dist/dynamic/components/Card";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/dynamic/components/FormSelect";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { SearchInput } from "@patternfly/react-core/dist/dynamic/components/SearchInput";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core/dist/dynamic/components/ToggleGroup";
import { type ReactNode, useMemo, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { APPLICATIONS, type Application, patch, useAction, useList } from "../../api";
import { counted, t } from "../../text/applications";
import { Age, type Column, CommandHint, Empty, NoMatch, PageHeader, sorted as inOrder, StatusLabel, VirtualTable } from "../../widgets";
import { Facts, Live, Problem } from "../pieces/parts";
import { Tiles } from "../pieces/window";
import { type Filters, NO_FILTERS, choices, clusterOf, healthOf, matches, syncOf } from "./model";
import { SyncDialog } from "./SyncDialog";

const SELECTS = ["health", "sync", "project", "cluster", "namespace"] as const;

export function List(): ReactNode {
    const [params, setParams] = useSearchParams();
    const found = useList(APPLICATIONS);
    const filters = useMemo(() => {
        const read: Filters = { ...NO_FILTERS };
        for (const key of Object.keys(NO_FILTERS) as (keyof Filters)[]) read[key] = params.get(key) ?? "";
        return read;
    }, [params]);
    const change = (key: string, value: string): void => {
        setParams(before => {
            if (value === "") before.delete(key);
            else before.set(key, value);
            return before;
        }, { replace: true });
    };
    const sorted = useMemo(() => [...found.items].sort((a, b) => (a.metadata.name ?? "").localeCompare(b.metadata.name ?? "")), [found.items]);
    const shown = useMemo(() => sorted.filter(app => matches(app, filters)), [sorted, filters]);
    const options = useMemo(() => ({
        health: choices(sorted, healthOf), sync: choices(sorted, syncOf), project: choices(sorted, app => app.spec.project),
        cluster: choices(sorted, clusterOf), namespace: choices(sorted, app => app.spec.destination.namespace),
    }), [sorted]);
    const isList = params.get("view") === "list";
    const sort = params.get("sort") ?? "";
    const [syncing, setSyncing] = useState<Application>();
    const refresh = useAction(
        (app: Application) => patch(APPLICATIONS, app.metadata.namespace, app.metadata.name ?? "", { metadata: { annotations: { "argocd.argoproj.io/refresh": "normal" } } }),
        app => t("requested", { what: t("refresh"), name: app.metadata.name ?? "" }),
    );
    const tile = (app: Application | undefined): ReactNode => app && <Tile app={app} onSync={() => setSyncing(app)} onRefresh={() => void refresh.run(app)} isBusy={refresh.isRunning} />;
    const view = isList
        ? <VirtualTable label={t("title")} rows={inOrder(shown, COLUMNS, sort)} columns={COLUMNS} rowKey={app => `${app.metadata.namespace}/${app.metadata.name}`} sort={sort} onSort={key => change("sort", key)} />
        : <Tiles count={shown.length} height={264} minWidth={300} label={t("title")} render={index => tile(shown[index])} />;
    return (
        <>
            <PageHeader title={t("title")} description={found.state === "live" ? counted(shown.length) : undefined} />
            <PageSection>
                <div className="fw-filters">
                    <SearchInput aria-label={t("search")} placeholder={t("search")} value={filters.text} onChange={(_event, value) => change("text", value)} onClear={() => change("text", "")} />
                    {SELECTS.map(key => (
                        <FormSelect key={key} aria-label={t(key)} value={filters[key]} onChange={(_event, value) => change(key, value)}>
                            <FormSelectOption value="" label={t("any", { what: t(key) })} />
                            {options[key].map(value => <FormSelectOption key={value} value={value} label={value} />)}
                        </FormSelect>
                    ))}
                    <TextInput aria-label={t("labels")} placeholder={t("label")} value={filters.label} onChange={(_event, value) => change("label", value)} />
                    <ToggleGroup aria-label={t("view")}>
                        <ToggleGroupItem text={t("tiles")} isSelected={!isList} onChange={() => change("view", "")} />
                        <ToggleGroupItem text={t("list")} isSelected={isList} onChange={() => change("view", "list")} />
                    </ToggleGroup>
                </div>
                <Problem error={refresh.error} />
                <Live of={found}>
                    {sorted.length === 0 ? <Empty title={t("none")}>{t("noneHelp")}</Empty> : shown.length === 0 ? <NoMatch onClear={() => setParams({})} /> : view}
                </Live>
                <CommandHint commands={["fairway app list", "kubectl get applications.argoproj.io -A"]} />
            </PageSection>
            {syncing && <SyncDialog app={syncing} onClose={() => setSyncing(undefined)} />}
        </>
    );
}

const linkTo = (app: Application): string => `/applications/${app.metadata.namespace}/${app.metadata.name}`;

function sourceOf(app: Application): string {
    const source = app.spec.source ?? app.spec.sources?.[0];
    return source ? [source.repoURL.replace(/^https?:\/\//, ""), source.path ?? source.chart].filter(Boolean).join(" ") : "-";
}

function Marks(props: { app: Application }): ReactNode {
    return (
        <span className="fw-row-gap">
            <StatusLabel word={healthOf(props.app)} title={props.app.status?.health?.message} />
            <StatusLabel word={syncOf(props.app)} />
        </span>
    );
}

const COLUMNS: Column<Application>[] = [
    { key: "name", title: t("name"), sortBy: app => app.metadata.name ?? "", render: app => <Link to={linkTo(app)}>{app.metadata.name}</Link>, width: "2fr" },
    { key: "status", title: t("status"), sortBy: app => `${healthOf(app)} ${syncOf(app)}`, render: app => <Marks app={app} />, width: "14rem" },
    { key: "project", title: t("project"), sortBy: app => app.spec.project, render: app => app.spec.project, isOptional: true },
    { key: "source", title: t("source"), sortBy: sourceOf, render: sourceOf, width: "3fr", isOptional: true },
    { key: "destination", title: t("destination"), sortBy: app => `${clusterOf(app)} ${app.spec.destination.namespace ?? ""}`, render: app => `${clusterOf(app)} / ${app.spec.destination.namespace ?? "-"}`, width: "1.3fr", isOptional: true },
    { key: "synced", title: t("synced"), sortBy: app => app.status?.operationState?.finishedAt ?? "", render: app => <Age of={app.status?.operationState?.finishedAt} />, width: "6rem", isOptional: true },
];

function Tile(props: { app: Application; onSync: () => void; onRefresh: () => void; isBusy: boolean }): ReactNode {
    const { app } = props;
    const name = app.metadata.name ?? "";
    return (
        <Card isCompact className="fw-tile">
            <CardTitle component="h2"><Link to={linkTo(app)}>{name}</Link></CardTitle>
            <CardBody className="fw-stack">
                <Marks app={app} />
                <Facts of={[
                    [t("source"), sourceOf(app).slice(0, 80)],
                    [t("destination"), `${clusterOf(app)} / ${app.spec.destination.namespace ?? "-"}`],
                    [t("synced"), <Age key="age" of={app.status?.operationState?.finishedAt} />],
                ]} />
            </CardBody>
            <CardFooter className="fw-row-gap">
                <Button variant="secondary" size="sm" aria-label={t("actOn", { action: t("doSync"), name })} onClick={props.onSync}>{t("doSync")}</Button>
                <Button variant="secondary" size="sm" aria-label={t("actOn", { action: t("refresh"), name })} isDisabled={props.isBusy} onClick={props.onRefresh}>{t("refresh")}</Button>
            </CardFooter>
        </Card>
    );
}
