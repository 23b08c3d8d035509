// What the scaffolder answers, read: which pages of a form are asked, and what may be created.

import type { DryRun, ParameterSchema } from "../../api/rest/scaffolder";
import { titlesOf } from "../../form/schema";

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

/** Only what was foreseen and would be accepted is created: as long as nobody has looked, nobody knows what would happen. */
export function mayCreate(asked: { answer?: DryRun; error?: unknown; isLoading: boolean }): boolean {
    return !asked.isLoading && !asked.error && asked.answer?.foreseen?.succeeds === true;
}
