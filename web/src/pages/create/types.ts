// What the scaffolder answers, where it is Backstage's API and therefore in no OpenAPI document of ours.

import { titlesOf } from "../../form/schema";

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

/** Whether answers decide which pages are asked. */
export function isConditional(schema: ParameterSchema): boolean {
    return schema.steps.some(step => step.when !== undefined);
}

/** Of each page whether it is asked. */
export function shownOf(schema: ParameterSchema): boolean[] {
    return schema.steps.map(step => step.isShown !== false);
}

/** The next page that is asked; behind the last one is the review. */
export function after(shown: boolean[], at: number): number {
    const next = shown.indexOf(true, at + 1);
    return next < 0 ? shown.length : next;
}

/** The page before this one that is asked, if there is one. */
export function before(shown: boolean[], at: number): number | undefined {
    const earlier = at > 0 ? shown.lastIndexOf(true, at - 1) : -1;
    return earlier < 0 ? undefined : earlier;
}

/** The answers that are taken: what was answered on a page that is not asked any more counts for nothing. */
export function taken(schema: ParameterSchema, shown: boolean[], answers: Record<string, unknown>): Record<string, unknown> {
    const asked = titlesOf(schema.steps.filter((_, n) => shown[n]).map(step => step.schema));
    const left = titlesOf(schema.steps.filter((_, n) => !shown[n]).map(step => step.schema));
    return Object.fromEntries(Object.entries(answers).filter(([name]) => asked.has(name) || !left.has(name)));
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

/** Only what was foreseen and would be accepted is created: as long as nobody has looked, nobody knows what would happen. */
export function mayCreate(asked: { answer?: DryRun; error?: unknown; isLoading: boolean }): boolean {
    return !asked.isLoading && !asked.error && asked.answer?.foreseen?.succeeds === true;
}
