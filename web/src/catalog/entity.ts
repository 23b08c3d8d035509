// Backstage's entities and references, as values.

import type { Entity } from "../api/rest/catalog";

export type { Entity };

export interface Ref {
    kind: string;
    namespace: string;
    name: string;
}

export function refOf(entity: Entity): string {
    return `${entity.kind.toLowerCase()}:${(entity.metadata.namespace ?? "default").toLowerCase()}/${entity.metadata.name.toLowerCase()}`;
}

/** `group:default/team`, `team` and what is between, as parts. */
export function parseRef(text: string, kind = "", namespace = "default"): Ref {
    const colon = text.indexOf(":");
    const rest = colon === -1 ? text : text.slice(colon + 1);
    const slash = rest.indexOf("/");
    return {
        kind: (colon === -1 ? kind : text.slice(0, colon)).toLowerCase(),
        namespace: slash === -1 ? namespace : rest.slice(0, slash),
        name: slash === -1 ? rest : rest.slice(slash + 1),
    };
}

/** As people write it: without what goes without saying. */
export function shortRef(text: string): string {
    const { namespace, name } = parseRef(text);
    return namespace === "default" ? name : `${namespace}/${name}`;
}

/** The address of an entity's page. */
export function entityPath(ref: string | Ref): string {
    const { kind, namespace, name } = typeof ref === "string" ? parseRef(ref) : ref;
    return `/catalog/${encodeURIComponent(kind)}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

export function specText(entity: Entity, key: string): string {
    const value = entity.spec?.[key];
    return typeof value === "string" ? value : "";
}

export function titleOf(entity: Entity): string {
    return entity.metadata.title || entity.metadata.name;
}
