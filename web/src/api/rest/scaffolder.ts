// What the scaffolder answers at /api/scaffolder: Backstage's API and `foreseen`, which is Fairway's; neither has an OpenAPI document here.

export interface Step {
    title?: string;
    description?: string;
    schema: Record<string, unknown>;
    /** A condition of the page, as Backstage's API hands it on: an expression, which only the server can work out. */
    when?: unknown;
    /** Whether the page is asked with the answers of the question. */
    isShown?: boolean;
}

export interface ParameterSchema {
    title?: string;
    description?: string;
    steps: Step[];
}

export interface Verdict {
    apiVersion?: string;
    kind?: string;
    name?: string;
    namespace?: string | null;
    allowed: boolean | null;
    message?: string | null;
}

/** What a quota has left of something, and what the run takes of it. */
export interface Share {
    namespace: string;
    name: string;
    resource: string;
    hard: string;
    used: string;
    left: string;
    takes: string;
}

/** The node of a machine, or why there is none. */
export interface Place {
    namespace: string;
    name: string;
    node: string;
    scheduled: boolean | null;
}

export interface DryRun {
    log?: { body: { stepId?: string; message?: string } }[];
    steps?: { id: string; name: string; action: string; state: string }[];
    output?: { links?: { title?: string; url?: string }[]; text?: { title?: string; content?: string }[] };
    foreseen?: {
        succeeds: boolean;
        problem?: string | null;
        repositories: { url: string; files: { path: string; size: number; executable?: boolean; content?: string | null }[] }[];
        objects: Verdict[];
        manifests: Verdict[];
        /** Where what is published will be found. */
        urls?: string[];
        quota?: Share[];
        node?: Place[];
        [key: string]: unknown;
    };
}

/** `v2/tasks`, of one that is begun: its namespace and name, joined by a dot. */
export interface Begun {
    id: string;
}
