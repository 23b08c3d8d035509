// Where machines are: workspaces, their namespaces, and folders in these. Other workspaces are other pages, which links lead to. Of very many
// the first are drawn, and can be searched (`tree.ts`).

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { SearchInput } from "@patternfly/react-core/dist/dynamic/components/SearchInput";
import { type ReactNode, useCallback, useEffect, useState } from "react";
import { list, pathIn, session, useAnswer, useList, VIRTUAL_MACHINES, type VirtualMachine, workspace, WORKSPACES } from "../../api";
import { t } from "../../text/machines";
import { Failed, SafeLink } from "../../widgets";
import { type Branch, branches } from "./model";
import { depthOf, placesOf, wayTo } from "./places";
import { fewOf, linesOf, searched, STEP, trimmed, WORTH_SEARCHING } from "./tree";

interface Props { machines: VirtualMachine[]; namespace: string; folder: string; onChoose: (namespace: string, folder: string) => void }

export function Branches(props: Props): ReactNode {
    const here = workspace();
    const home = session().workspace || here;
    const [found, setFound] = useState<ReadonlyMap<string, readonly string[]>>(new Map());
    const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
    const toggle = (place: string): void => setOpened(before => new Set(before.has(place) ? [...before].filter(it => it !== place) : [...before, place]));
    const [most, setMost] = useState(STEP);
    const { shown, more } = fewOf(placesOf(here, home, found), new Set([...wayTo(here), ...wayTo(home)]), most);
    const onFound = useCallback((place: string, names: string[]) => setFound(before => new Map(before).set(place, names)), []);
    return (
        <nav aria-label={t("tree")} className="fw-branches">
            <ul>
                {shown.map(place => (
                    <li key={place} style={{ paddingInlineStart: `${depthOf(place)}rem` }}>
                        <span className="fw-branch">
                            <Button variant="plain" size="sm" aria-expanded={opened.has(place)} aria-label={t("open", { place })} onClick={() => toggle(place)}>{opened.has(place) ? "▾" : "▸"}</Button>
                            {place === here ? <Item label={`${place}: ${t("allMachines")}`} count={props.machines.length} isChosen={props.namespace === ""} onChoose={() => props.onChoose("", "")} /> : <SafeLink to={pathIn(place, "/machines")}>{place}</SafeLink>}
                        </span>
                        {place === here && <Here {...props} />}
                        {opened.has(place) && <>{place !== here && <Inside place={place} />}<Below place={place} onFound={onFound} /></>}
                    </li>
                ))}
            </ul>
            <More more={more} onMore={() => setMost(most + STEP)} />
        </nav>
    );
}

function Item(props: { label: string; count: number; isChosen: boolean; onChoose: () => void }): ReactNode {
    return <Button variant="link" isInline aria-current={props.isChosen ? "true" : undefined} className={props.isChosen ? "chosen" : undefined} onClick={props.onChoose}>{props.label} ({props.count})</Button>;
}

function Here(props: Props): ReactNode {
    return (
        <Namespaces of={branches(props.machines)} chosen={props} item={(namespace, folder, label, count) => (
            <Item label={label} count={count} isChosen={props.namespace === namespace && props.folder === folder} onChoose={() => props.onChoose(namespace, folder)} />
        )} />
    );
}

/** Looks for the workspaces in one. */
function Below({ place, onFound }: { place: string; onFound: (place: string, names: string[]) => void }): ReactNode {
    const asked = useAnswer(`workspaces of ${place}`, async signal => (await list(WORKSPACES, { workspace: place }, { signal })).items.map(it => it.metadata?.name ?? "").filter(Boolean));
    const names = asked.answer;
    useEffect(() => { if (names) onFound(place, names); }, [place, names, onFound]);
    if (asked.error) return <p className="fw-muted">{t("notBelow", { why: asked.error.message })}</p>;
    return names?.length === 0 ? <p className="fw-muted">{t("noneBelow")}</p> : null;
}

interface NamespacesProps { of: Branch[]; chosen?: { namespace: string; folder: string }; item: (namespace: string, folder: string, label: string, count: number) => ReactNode }

function Namespaces({ of, chosen = { namespace: "", folder: "" }, item }: NamespacesProps): ReactNode {
    const [typed, setTyped] = useState("");
    const [most, setMost] = useState(STEP);
    const found = searched(of, typed);
    const { branches: shown, more } = trimmed(found, chosen, most);
    return (
        <>
            {linesOf(of) > WORTH_SEARCHING && <SearchInput aria-label={t("treeSearch")} placeholder={t("treeSearch")} value={typed} onChange={(_, text) => setTyped(text)} onClear={() => setTyped("")} />}
            <ul>
                {shown.map(branch => (
                    <li key={branch.namespace}>
                        {item(branch.namespace, "", branch.namespace, branch.count)}
                        {branch.folders.length > 0 && <ul>{branch.folders.map(folder => <li key={folder.name}>{item(branch.namespace, folder.name, `▸ ${folder.name}`, folder.count)}</li>)}</ul>}
                    </li>
                ))}
            </ul>
            {found.length === 0 && typed !== "" && <p className="fw-muted">{t("treeNone")}</p>}
            <More more={more} onMore={() => setMost(most + STEP)} />
        </>
    );
}

function More({ more, onMore }: { more: number; onMore: () => void }): ReactNode {
    return more > 0 && <Button variant="link" isInline onClick={onMore}>{t("treeMore", { n: more })}</Button>;
}

/** The machines of another workspace. */
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
