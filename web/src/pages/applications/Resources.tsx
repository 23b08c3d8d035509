// The objects of an Application, as a tree or as a list, all of them or some.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/dynamic/components/FormSelect";
import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core/dist/dynamic/components/ToggleGroup";
import type { ReactNode } from "react";
import { useSearchParams } from "react-router";
import { t } from "../../text/applications";
import { type Column, NoMatch, sorted, StatusLabel, VirtualTable } from "../../widgets";
import { choices, filtered, idOf, type NodeFilters, type TreeNode } from "./model";
import { Standing } from "./Standing";

const FILTERS: [keyof NodeFilters, (node: TreeNode) => string | undefined][] = [["kind", node => node.kind], ["sync", node => node.sync], ["health", node => node.health?.status]];

interface Props {
    nodes: TreeNode[];
    /** The panel of what was chosen. */
    chosen: ReactNode;
    onChoose: (id: string) => void;
    /** The tree of what is shown. */
    children: (shown: TreeNode[]) => ReactNode;
}

export function Resources(props: Props): ReactNode {
    const [params, setParams] = useSearchParams();
    const filters: NodeFilters = { kind: params.get("kind") ?? "", sync: params.get("sync") ?? "", health: params.get("health") ?? "" };
    const change = (changes: Record<string, string>): void => setParams(before => {
        for (const [key, value] of Object.entries(changes)) {
            if (value === "") before.delete(key);
            else before.set(key, value);
        }
        return before;
    }, { replace: true });
    const isList = params.get("view") === "list";
    const sort = params.get("sort") ?? "";
    const shown = filtered(props.nodes, filters);
    const columns = columnsOf(props.onChoose);
    const isEmpty = shown.length === 0 && props.nodes.length > 0;
    return (
        <>
            <div className="fw-filters">
                {FILTERS.map(([key, of]) => {
                    const options = choices([...props.nodes.map(of), filters[key]], it => it);
                    return (
                        <FormSelect key={key} aria-label={t(key)} value={filters[key]} onChange={(_event, value) => change({ [key]: value })}>
                            <FormSelectOption value="" label={t("any", { what: t(key) })} />
                            {options.map(value => <FormSelectOption key={value} value={value} label={value} />)}
                        </FormSelect>
                    );
                })}
                <ToggleGroup aria-label={t("view")}>
                    <ToggleGroupItem text={t("tree")} isSelected={!isList} onChange={() => change({ view: "" })} />
                    <ToggleGroupItem text={t("list")} isSelected={isList} onChange={() => change({ view: "list" })} />
                </ToggleGroup>
            </div>
            {isEmpty ? <NoMatch onClear={() => change({ kind: "", sync: "", health: "" })} /> : (
                <div className={`fw-split ${props.chosen ? "open" : ""}`}>
                    {isList
                        ? <VirtualTable label={t("resources")} rows={sorted(shown, columns, sort)} columns={columns} rowKey={idOf} sort={sort} onSort={key => change({ sort: key })} />
                        : props.children(shown)}
                    {props.chosen}
                </div>
            )}
        </>
    );
}

function columnsOf(choose: (id: string) => void): Column<TreeNode>[] {
    return [
        { key: "kind", title: t("kind"), width: "1.4fr", render: node => node.kind, sortBy: node => node.kind },
        { key: "name", title: t("name"), render: node => <Button variant="link" isInline onClick={() => choose(idOf(node))}>{node.name}</Button>, width: "2fr", sortBy: node => node.name },
        { key: "namespace", title: t("namespace"), render: node => node.namespace ?? "", isOptional: true, sortBy: node => node.namespace ?? "" },
        { key: "sync", title: t("sync"), width: "1.3fr", render: node => <Standing of={node} />, sortBy: node => node.sync ?? "" },
        { key: "health", title: t("health"), render: node => <StatusLabel word={node.health?.status} title={node.health?.message} />, sortBy: node => node.health?.status ?? "" },
    ];
}
