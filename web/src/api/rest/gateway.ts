// What gateway.fairway.dev/v1alpha1 answers: its OpenAPI document has paths, and no schemas.

/** A step on the way of a request; `passes` is null where nobody can tell. */
export interface Stage {
    kind: string;
    what?: string;
    seen?: string;
    passes?: boolean | null;
}

/** `explanations` */
export interface Explanation {
    status?: { stages?: Stage[]; code?: number | null; message?: string };
}

/** One of `publishedrules` */
export interface Rule {
    scheme: string;
    host: string;
    port: number;
    path: string;
    kind: string;
    namespace: string;
    name: string;
    backends: string[];
}

/** One of `counters` */
export interface Counter {
    key: string;
    count: number;
    reset?: number;
}

export interface Items<T> {
    items: T[];
}
