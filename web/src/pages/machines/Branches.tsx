// Where machines are: workspaces, their namespaces, and folders in these. Other workspaces are other pages, which links lead to.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { type ReactNode, useState } from "react";
import { list, pathIn, session, useAnswer, useList, VIRTUAL_MACHINES, type VirtualMachine, workspace, WORKSPACES } from "../../api";
import { Failed, SafeLink } from "../../widgets";
import { type Branch, branches } from "./model";
import { depthOf, seen } from "./places";
import { t } from "./text";

interface Props { machines: VirtualMachine[]; namespace: string; folder: string; onChoose: (namespace: string, folder: string) => void }

const below = (signal: AbortSignal) => async (place: string): Promise<string[]> =>
    (await list(WORKSPACES, { workspace: place }, { signal })).items.map(it => it.metadata?.name ?? "").filter(Boolean);

export function Branches(props: Props): ReactNode {
    const here = workspace();
    const home = session().workspace || here;
    const asked = useAnswer(`workspaces around ${here} ${home}`, signal => seen(here, home, below(signal)));
    const all = asked.answer ?? [here];
    return (
        <nav aria-label={t("tree")} className="fw-branches">
            <ul>
                {all.map(place => (
                    <li key={place} style={{ paddingInlineStart: `${depthOf(place, all)}rem` }}>
                        {place === here ? <Here {...props} place={place} /> : <Elsewhere place={place} />}
                    </li>
                ))}
            </ul>
        </nav>
    );
}

function Here(props: Props & { place: string }): ReactNode {
    const item = (label: string, count: number, isChosen: boolean, choose: () => void): ReactNode => (
        <Button variant="link" isInline aria-current={isChosen ? "true" : undefined} className={isChosen ? "chosen" : undefined} onClick={choose}>{label} ({count})</Button>
    );
    return (
        <>
            {item(`${props.place}: ${t("allMachines")}`, props.machines.length, props.namespace === "", () => props.onChoose("", ""))}
            <Namespaces of={branches(props.machines)} item={(namespace, folder, label, count) => item(label, count, props.namespace === namespace && props.folder === folder, () => props.onChoose(namespace, folder))} />
        </>
    );
}

function Namespaces(props: { of: Branch[]; item: (namespace: string, folder: string, label: string, count: number) => ReactNode }): ReactNode {
    return (
        <ul>
            {props.of.map(branch => (
                <li key={branch.namespace}>
                    {props.item(branch.namespace, "", branch.namespace, branch.count)}
                    {branch.folders.length > 0 && <ul>{branch.folders.map(folder => <li key={folder.name}>{props.item(branch.namespace, folder.name, `▸ ${folder.name}`, folder.count)}</li>)}</ul>}
                </li>
            ))}
        </ul>
    );
}

/** Another workspace: what is in it is read when somebody opens it. */
function Elsewhere({ place }: { place: string }): ReactNode {
    const [isOpen, setOpen] = useState(false);
    return (
        <>
            <span className="fw-branch">
                <Button variant="plain" size="sm" aria-expanded={isOpen} aria-label={t("machinesOf", { place })} onClick={() => setOpen(!isOpen)}>{isOpen ? "▾" : "▸"}</Button>
                <SafeLink to={pathIn(place, "/machines")}>{place}</SafeLink>
            </span>
            {isOpen && <Inside place={place} />}
        </>
    );
}

function Inside({ place }: { place: string }): ReactNode {
    const found = useList(VIRTUAL_MACHINES, { workspace: place });
    if (found.error && found.state !== "live") return <Failed error={found.error} />;
    if (found.state === "live" && found.items.length === 0) return <p className="fw-muted">{t("none")}</p>;
    return (
        <Namespaces of={branches(found.items)} item={(namespace, folder, label, count) => (
            <SafeLink to={`${pathIn(place, "/machines")}?${new URLSearchParams({ namespace, ...(folder ? { folder } : {}) }).toString()}`}>{label} ({count})</SafeLink>
        )} />
    );
}
