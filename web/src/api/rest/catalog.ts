// What the catalog answers at /api/catalog: Backstage's API, which has no OpenAPI document here.

/** An entity; Fairway's own kind CatalogEntity is where it is kept. */
export interface Entity {
    apiVersion: string;
    kind: string;
    metadata: {
        uid?: string;
        name: string;
        namespace?: string;
        title?: string;
        description?: string;
        tags?: string[];
        annotations?: Record<string, string>;
        labels?: Record<string, string>;
        links?: { url: string; title?: string }[];
    };
    spec?: Record<string, unknown>;
    relations?: { type: string; targetRef: string }[];
}

/** `entities/by-query` */
export interface Page {
    items: Entity[];
    totalItems: number;
    pageInfo?: { nextCursor?: string };
}

/** `entities/by-refs`: what is not there is null. */
export interface ByRefs {
    items: (Entity | null)[];
}

/** `entities/by-name/KIND/NAMESPACE/NAME/live` */
export interface Live {
    applications: { name: string; namespace: string; sync: string | null; health: string | null; message: string | null }[];
    objects: { kind: string; name: string; namespace: string; status: string | null; ready: boolean | null; message: string | null }[];
    hidden: string[];
}

/** `entity-facets`: for each field that was asked for, its values and how many entities have them. */
export interface Facets {
    facets: Record<string, { value: string; count: number }[]>;
}
