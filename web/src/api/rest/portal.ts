// What the portal's own paths answer at /api/fairway, which have no OpenAPI document. Who is signed in is in api/session.ts.

/** `activity`: what somebody did or tried, as the audit log has it. */
export interface Deed {
    time: string;
    user: string;
    verb: string;
    group: string;
    resource: string;
    subresource?: string;
    namespace?: string;
    name?: string;
    code: number;
}

export interface Activity {
    items: Deed[];
}

/** One thing that has to hold for an object to be well. */
export interface Link {
    link: string;
    state: string;
    at: string | null;
    finding: string;
    evidence: { seenIn: string; at: string | null; message: string }[];
    advice: string | null;
}

/** `why`: what `fairway why -o json` prints. */
export interface Why {
    sound: boolean;
    firstBroken: string | null;
    verdict: string;
    links: Link[];
}

/** What a plan would do to an object. */
export interface Change {
    group?: string;
    kind: string;
    namespace?: string;
    name: string;
    action?: string;
    impact?: string;
    live?: unknown;
    target?: unknown;
}

/** `applications/plan`, and the subresource `plan` of an Application. */
export interface ApplicationPlan {
    touched?: boolean;
    failure?: string;
    impact?: string;
    changes?: Change[];
    approval?: unknown;
}
