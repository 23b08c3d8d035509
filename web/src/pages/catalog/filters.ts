// Which entities are shown: Backstage's filters, as values of the address.

import { type Entity, parseRef, refOf, shortRef, specText, titleOf } from "../../catalog/entity";

export interface Filters {
    words: string;
    kind: string;
    type: string;
    owner: string;
    lifecycle: string;
    tag: string;
}

export function readFilters(params: URLSearchParams): Filters {
    const text = (key: string, fallback = ""): string => params.get(key) ?? fallback;
    return { words: text("q"), kind: text("kind", "component"), type: text("type"), owner: text("owner"), lifecycle: text("lifecycle"), tag: text("tag") };
}

export function ownerOf(entity: Entity): string {
    const owner = specText(entity, "owner");
    if (!owner) return "";
    const { kind, namespace, name } = parseRef(owner, "group", entity.metadata.namespace ?? "default");
    return `${kind}:${namespace}/${name}`.toLowerCase();
}

/** Everything but one filter: so that a filter offers what would still be found. */
export function matches(entity: Entity, filters: Filters, without?: keyof Filters): boolean {
    const is = (key: keyof Filters, value: string): boolean => without === key || filters[key] === "" || filters[key] === value;
    if (!(without === "kind" || filters.kind === "all" || filters.kind === entity.kind.toLowerCase())) return false;
    if (!is("type", specText(entity, "type")) || !is("lifecycle", specText(entity, "lifecycle")) || !is("owner", ownerOf(entity))) return false;
    if (without !== "tag" && filters.tag && !entity.metadata.tags?.includes(filters.tag)) return false;
    if (without === "words" || filters.words === "") return true;
    const text = [refOf(entity), titleOf(entity), entity.metadata.description, shortRef(ownerOf(entity)), ...(entity.metadata.tags ?? [])].join(" ").toLowerCase();
    return filters.words.toLowerCase().split(/\s+/).every(word => text.includes(word));
}

/** What a filter offers. */
export function offered(entities: Entity[], filters: Filters, key: "kind" | "type" | "owner" | "lifecycle" | "tag"): string[] {
    const found = new Set<string>();
    for (const entity of entities) {
        if (!matches(entity, filters, key)) continue;
        if (key === "kind") found.add(entity.kind.toLowerCase());
        else if (key === "owner") found.add(ownerOf(entity));
        else if (key === "tag") entity.metadata.tags?.forEach(tag => found.add(tag));
        else found.add(specText(entity, key));
    }
    found.delete("");
    return [...found].sort();
}
