// All machines of a workspace: a tree to choose from, a list, and what can be done with several at once.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Checkbox } from "@patternfly/react-core/dist/dynamic/components/Checkbox";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/dynamic/components/FormSelect";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { SearchInput } from "@patternfly/react-core/dist/dynamic/components/SearchInput";
import { type ReactNode, useMemo, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { useAction, useList, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, type VirtualMachine } from "../../api";
import { counted, t } from "../../text/machines";
import { Age, type Column, CommandHint, Confirm, ConfirmByName, Empty, NoMatch, PageHeader, sorted as inOrder, StatusLabel, VirtualTable } from "../../widgets";
import { Live, Problem, Unread } from "../pieces/parts";
import { act, destroy, type Place, withEach } from "./act";
import { Branches } from "./Branches";
import { FolderDialog } from "./FolderDialog";
import { type Action, addressOf, applicationsOf, disksOf, folderOf, INTERRUPTING, possible, statusOf } from "./model";

const keyOf = (machine: VirtualMachine): string => `${machine.metadata?.namespace}/${machine.metadata?.name}`;
const placeOf = (machine: VirtualMachine): Place => ({ namespace: machine.metadata?.namespace ?? "", name: machine.metadata?.name ?? "" });
const namesOf = (places: Place[]): string => (places.length === 1 ? places[0]?.name : undefined) ?? t("machinesWord", { n: places.length });
const BULK: Action[] = ["start", "stop", "restart", "pause", "unpause", "migrate"];

export function List(): ReactNode {
    const [params, setParams] = useSearchParams();
    const found = useList(VIRTUAL_MACHINES);
    const instances = useList(VIRTUAL_MACHINE_INSTANCES);
    const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
    const [isDeleting, setDeleting] = useState(false);
    const [isMoving, setMoving] = useState(false);
    const [asked, setAsked] = useState<{ action: Action; places: Place[] }>();
    const [namespace, folder, text, status] = ["namespace", "folder", "text", "status"].map(key => params.get(key) ?? "") as [string, string, string, string];
    const bulk = useAction((action: Action, places: Place[]) => withEach(places, place => act(action, place.namespace, place.name)), (action, places) => t("requested", { action: t(action), name: namesOf(places) }));
    const change = (changes: Record<string, string>): void => setParams(before => {
        for (const [key, value] of Object.entries(changes)) {
            if (value === "") before.delete(key);
            else before.set(key, value);
        }
        return before;
    }, { replace: true });
    const sorted = useMemo(() => [...found.items].sort((a, b) => keyOf(a).localeCompare(keyOf(b))), [found.items]);
    const shown = useMemo(() => sorted.filter(machine =>
        (namespace === "" || machine.metadata?.namespace === namespace) && (folder === "" || folderOf(machine) === folder)
        && (status === "" || statusOf(machine) === status) && (machine.metadata?.name ?? "").includes(text.toLowerCase())), [sorted, namespace, folder, status, text]);
    const byKey = useMemo(() => new Map(instances.items.map(it => [`${it.metadata?.namespace}/${it.metadata?.name}`, it])), [instances.items]);
    const picked = shown.filter(machine => chosen.has(keyOf(machine)));
    const toggle = (key: string, is: boolean): void => setChosen(before => {
        const next = new Set(before);
        if (is) next.add(key);
        else next.delete(key);
        return next;
    });
    const sort = params.get("sort") ?? "";
    const columns: Column<VirtualMachine>[] = [
        { key: "pick", title: "", width: "2.5rem", render: machine => <Checkbox id={`pick ${keyOf(machine)}`} aria-label={t("select", { name: machine.metadata?.name ?? "" })} isChecked={chosen.has(keyOf(machine))} onChange={(_event, is) => toggle(keyOf(machine), is)} /> },
        { key: "name", title: t("name"), width: "1.5fr", sortBy: machine => machine.metadata?.name ?? "", render: machine => <Link to={`/machines/${keyOf(machine)}`}>{machine.metadata?.name}</Link> },
        { key: "namespace", title: t("namespace"), width: "1.3fr", sortBy: machine => machine.metadata?.namespace ?? "", render: machine => machine.metadata?.namespace, isOptional: true },
        { key: "status", title: t("status"), width: "7rem", sortBy: statusOf, render: machine => <StatusLabel word={statusOf(machine)} /> },
        { key: "node", title: t("node"), width: "0.8fr", sortBy: machine => byKey.get(keyOf(machine))?.status?.nodeName ?? "", render: machine => byKey.get(keyOf(machine))?.status?.nodeName ?? "", isOptional: true },
        { key: "address", title: t("address"), width: "1.2fr", sortBy: machine => addressOf(byKey.get(keyOf(machine))), render: machine => addressOf(byKey.get(keyOf(machine))), isOptional: true },
        { key: "created", title: t("created"), width: "5rem", sortBy: machine => machine.metadata?.creationTimestamp ?? "", render: machine => <Age of={machine.metadata?.creationTimestamp} />, isOptional: true },
    ];
    const folders = [...new Set(sorted.map(folderOf))].filter(Boolean).sort();
    const statuses = [...new Set(sorted.map(statusOf))].sort();
    return (
        <>
            <PageHeader title={t("title")} description={found.state === "live" ? counted(shown.length) : undefined} actions={<Link className="pf-v6-c-button pf-m-primary" to="/create">{t("create")}</Link>} />
            <PageSection className="fw-stack">
                <Problem error={bulk.error} />
                <Unread of={[[t("instances"), instances]]} />
                <Live of={found}>
                    <div className="fw-split left">
                        <Branches machines={sorted} namespace={namespace} folder={folder} onChoose={(inNamespace, inFolder) => change({ namespace: inNamespace, folder: inFolder })} />
                        {sorted.length === 0 ? <Empty title={t("none")} actions={<Link to="/create">{t("create")}</Link>}>{t("noneHelp")}</Empty> : (
                            <div className="fw-stack">
                                <div className="fw-filters">
                                    <SearchInput aria-label={t("search")} placeholder={t("search")} value={text} onChange={(_event, value) => change({ text: value })} onClear={() => change({ text: "" })} />
                                    <FormSelect aria-label={t("status")} value={status} onChange={(_event, value) => change({ status: value })}>
                                        <FormSelectOption value="" label={t("status")} />
                                        {statuses.map(it => <FormSelectOption key={it} value={it} label={it} />)}
                                    </FormSelect>
                                    <Checkbox id="pick-all" label={t("selectAll")} isChecked={shown.length > 0 && picked.length === shown.length} onChange={(_event, is) => setChosen(new Set(is ? shown.map(keyOf) : []))} />
                                </div>
                                <div className="fw-row-gap" role="group" aria-label={t("actions")}>
                                    {BULK.map(action => {
                                        const able = picked.filter(machine => possible(statusOf(machine)).includes(action)).map(placeOf);
                                        return <Button key={action} size="sm" variant="secondary" isDisabled={able.length === 0 || bulk.isRunning} onClick={() => (INTERRUPTING.includes(action) ? setAsked({ action, places: able }) : void bulk.run(action, able))}>{t(action)}</Button>;
                                    })}
                                    <Button size="sm" variant="secondary" isDisabled={picked.length === 0} onClick={() => setMoving(true)}>{t("moveToFolder")}</Button>
                                    <Button size="sm" variant="secondary" isDanger isDisabled={picked.length === 0} onClick={() => setDeleting(true)}>{t("remove")}</Button>
                                    {picked.length > 0 && <span className="fw-muted">{t("chosen", { n: picked.length })}</span>}
                                </div>
                                <Declared machines={picked} />
                                {shown.length === 0 ? <NoMatch onClear={() => setParams({})} /> : <VirtualTable label={t("title")} rows={inOrder(shown, columns, sort)} columns={columns} rowKey={keyOf} sort={sort} onSort={key => change({ sort: key })} />}
                            </div>
                        )}
                    </div>
                </Live>
                <CommandHint commands={["kubectl get vm -A", "fairway vm start NAME -n NAMESPACE"]} />
            </PageSection>
            {asked && (
                <Confirm title={t("interruptTitle", { action: t(asked.action), name: namesOf(asked.places) })} action={t(asked.action)} onClose={() => setAsked(undefined)} told={t("requested", { action: t(asked.action), name: namesOf(asked.places) })}
                    onConfirm={() => withEach(asked.places, place => act(asked.action, place.namespace, place.name))}>
                    <p>{t("interruptWhat")}</p>
                    <ul className="fw-long-list" tabIndex={0} aria-label={t("interruptWhat")}>{asked.places.map(place => <li key={`${place.namespace}/${place.name}`} className="fw-wrap">{place.namespace}/{place.name}</li>)}</ul>
                    <Declared machines={picked} />
                </Confirm>
            )}
            {isMoving && <FolderDialog machines={picked} known={folders} onClose={() => setMoving(false)} onDone={() => { setMoving(false); setChosen(new Set()); }} />}
            {isDeleting && <DeleteMachines machines={picked} onClose={() => { setDeleting(false); setChosen(new Set()); }} />}
        </>
    );
}

/** Whoever stops or deletes them here should know that it will not last. */
function Declared(props: { machines: VirtualMachine[] }): ReactNode {
    const applications = applicationsOf(props.machines);
    if (applications.length === 0) return null;
    return <Alert isInline isPlain variant="info" title={t("declaredSome", { applications: applications.join(", ") })} />;
}

/** What is on them is lost for good; what is left over is named, too, as it goes on taking room. */
function DisksOf(props: { machine: VirtualMachine }): ReactNode {
    const { lost, kept } = disksOf(props.machine);
    return (
        <div className="fw-muted">
            <div>{lost.length === 0 ? t("disksNone") : t("disksLost", { names: lost.join(", ") })}</div>
            {kept.length > 0 && <div>{t("disksKept", { names: kept.join(", ") })}</div>}
        </div>
    );
}

export function DeleteMachines(props: { machines: VirtualMachine[]; onClose: () => void; onDone?: () => void }): ReactNode {
    const places = props.machines.map(placeOf);
    const name = namesOf(places);
    return (
        <ConfirmByName title={t("deleteTitle", { name })} name={name} action={t("remove")} onClose={props.onClose} told={t("deletionRequested", { name })}
            onConfirm={async () => { await withEach(places, place => destroy(place.namespace, place.name)); props.onDone?.(); }}>
            <p>{t("deleteWhat")}</p>
            <ul className="fw-long-list" tabIndex={0} aria-label={t("deleteWhat")}>{props.machines.map(machine => <li key={keyOf(machine)} className="fw-wrap">{keyOf(machine)}<DisksOf machine={machine} /></li>)}</ul>
            <Declared machines={props.machines} />
        </ConfirmByName>
    );
}
