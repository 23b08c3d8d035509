// The catalog's REST API has no watch; entities are objects, which have. When they change, it is asked again.

import { useEffect, useRef, useState } from "react";
import { useList } from "../api/hooks";
import { CATALOG_ENTITIES, type CatalogEntity } from "../api/kinds";
import { refOf } from "./entity";

/** How often it is asked by whoever may not watch: rarely enough for the server, often enough for a reader. */
export const BLIND_MS = 10_000;

/** A number that grows when the catalog changes, once a second at most. Of whoever cannot watch it grows by the clock: nothing may have changed,
 * and nobody would know. */
export function useCatalogVersion(): number {
    const { items, state } = useList(CATALOG_ENTITIES);
    const [version, setVersion] = useState(0);
    const first = useRef(true);
    useEffect(() => {
        if (state === "loading") return;
        const more = (): void => setVersion(before => before + 1);
        if (state === "failed") {
            const timer = setInterval(() => document.visibilityState === "visible" && more(), BLIND_MS);
            return () => clearInterval(timer);
        }
        if (first.current) {
            first.current = false;
            return;
        }
        const timer = setTimeout(more, 1000);
        return () => clearTimeout(timer);
    }, [items, state]);
    return version;
}

/** The name of the object that an entity is kept in, which is not always its reference: names of objects have no capitals and no underscores. */
export function objectNameOf(objects: readonly CatalogEntity[], ref: string): string | undefined {
    return objects.find(one => isNamed(one.spec.entity) && refOf(one.spec.entity) === ref.toLowerCase())?.metadata?.name;
}

type Named = Parameters<typeof refOf>[0];

function isNamed(entity: unknown): entity is Named {
    const { kind, metadata } = (entity ?? {}) as Partial<Named>;
    return typeof kind === "string" && typeof metadata?.name === "string";
}

/** As long as nobody has looked, nobody knows. */
export function useEntityObject(kind: string, namespace: string, name: string): string | undefined {
    return objectNameOf(useList(CATALOG_ENTITIES).items, `${kind}:${namespace}/${name}`);
}
