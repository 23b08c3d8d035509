// What an Application's own paths of argoproj.io/v1alpha1 answer: its OpenAPI document has the kinds, and no schemas for these.

/** A node of Argo CD's ApplicationTree. */
export interface Node {
    group?: string;
    version?: string;
    kind: string;
    namespace?: string;
    name: string;
    uid?: string;
    parentRefs?: { uid?: string; kind?: string; name?: string; namespace?: string }[];
    health?: { status?: string; message?: string };
    createdAt?: string;
}

/** `tree` */
export interface Tree {
    nodes?: Node[];
}
