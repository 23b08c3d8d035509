// The catalog's REST API has no watch; entities are objects, which have. When they change, it is asked again.

import { useEffect, useRef, useState } from "react";
import { useList } from "../api/hooks";
import { CATALOG_ENTITIES } from "../api/kinds";

/** A number that grows when the catalog changes, once a second at most. */
export function useCatalogVersion(): number {
    const { items, state } = useList(CATALOG_ENTITIES);
    const [version, setVersion] = useState(0);
    const first = useRef(true);
    useEffect(() => {
        if (state === "loading") return;
        if (first.current) {
            first.current = false;
            return;
        }
        const timer = setTimeout(() => setVersion(before => before + 1), 1000);
        return () => clearTimeout(timer);
    }, [items, state]);
    return version;
}
