// The catalog's REST API, which is Backstage's.

import { json } from "../api/request";
import type { Facets, Live, Page } from "../api/rest/catalog";
import { type Entity, refOf } from "./entity";

export interface Wanted {
    kinds: string[];
    /** Values of a field, or that it is there at all. */
    filters?: Record<string, string | string[] | { exists: true }>[];
    ownedBy?: string[];
}

/** Entities, and how many there are: who shows fewer has to say so. */
export interface Found<T> {
    items: T[];
    total: number;
}

/** All pages of a query, up to a bound that no list on a screen needs. */
export async function entities(query: Record<string, string | undefined>, filters: string[], signal?: AbortSignal, most = 10_000): Promise<Found<Entity>> {
    const found: Entity[] = [];
    let total = 0;
    let cursor: string | undefined;
    do {
        const search = new URLSearchParams();
        if (cursor) search.set("cursor", cursor);
        else {
            for (const [key, value] of Object.entries(query)) if (value) search.set(key, value);
            for (const filter of filters) search.append("filter", filter);
        }
        search.set("limit", "500");
        const page: Page = await json<Page>(`/api/catalog/entities/by-query?${search.toString()}`, { signal });
        found.push(...page.items);
        total = Math.max(total, page.totalItems, found.length);
        cursor = page.pageInfo?.nextCursor;
    } while (cursor && found.length < most);
    return { items: found, total };
}

/** References of entities that a picker offers. */
export async function entityRefs(wanted: Wanted, signal?: AbortSignal): Promise<Found<string>> {
    const kinds = wanted.kinds.map(kind => `kind=${kind.toLowerCase()}`);
    const filters = (wanted.filters?.length ? wanted.filters : [{}]).flatMap(record => {
        const parts = Object.entries(record).flatMap(([key, value]) => {
            if (typeof value === "object" && !Array.isArray(value)) return [key];
            return (Array.isArray(value) ? value : [value]).map(one => `${key}=${String(one).toLowerCase()}`);
        });
        if (wanted.ownedBy) parts.push(...wanted.ownedBy.map(ref => `relations.ownedBy=${ref.toLowerCase()}`));
        const whole = [...(parts.some(part => part.startsWith("kind=")) ? [] : kinds), ...parts].join(",");
        return whole ? [whole] : [];
    });
    const found = await entities({ fields: "kind,metadata.name,metadata.namespace", orderField: "metadata.name,asc" }, filters, signal, 2000);
    return { items: found.items.map(refOf), total: found.total };
}

/** The values that a field has in entities of some kinds. */
export async function facetOf(field: string, kinds: string[], signal?: AbortSignal): Promise<Found<string>> {
    const search = new URLSearchParams({ facet: field });
    for (const kind of kinds) search.append("filter", `kind=${kind.toLowerCase()}`);
    const { facets } = await json<Facets>(`/api/catalog/entity-facets?${search.toString()}`, { signal });
    const items = (facets[field] ?? []).map(one => one.value).sort();
    return { items, total: items.length };
}

export function entityByName(kind: string, namespace: string, name: string, signal?: AbortSignal): Promise<Entity> {
    return json<Entity>(`/api/catalog/entities/by-name/${encodeURIComponent(kind)}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`, { signal });
}

export function liveOf(kind: string, namespace: string, name: string, signal?: AbortSignal): Promise<Live> {
    return json<Live>(`/api/catalog/entities/by-name/${encodeURIComponent(kind)}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/live`, { signal });
}
