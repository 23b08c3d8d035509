// What a sync is asked to do, in Argo CD's words, and what of it cannot be undone.

import type { Application } from "../../api";

export const OPTIONS = ["prune", "dryRun", "applyOnly", "force", "replaceOption", "serverSide"] as const;
export type Chosen = Partial<Record<(typeof OPTIONS)[number], boolean>>;

/** Argo CD's ApplicationSyncRequest. */
export function syncBody(chosen: Chosen, revision: string): Record<string, unknown> {
    const items = [...(chosen.replaceOption ? ["Replace=true"] : []), ...(chosen.serverSide ? ["ServerSideApply=true"] : [])];
    const force = { force: Boolean(chosen.force) };
    return {
        revision, prune: Boolean(chosen.prune), dryRun: Boolean(chosen.dryRun),
        strategy: chosen.applyOnly ? { apply: force } : { hook: force }, syncOptions: { items },
    };
}

const DESTRUCTIVE = ["prune", "force", "replaceOption"] as const;

/** The chosen options that destroy something. */
export function destructive(chosen: Chosen): (typeof DESTRUCTIVE)[number][] {
    return chosen.dryRun ? [] : DESTRUCTIVE.filter(key => chosen[key]);
}

/** What a sync with Prune would delete, as far as the last comparison knows. */
export function pruned(app: Application): string[] {
    return (app.status?.resources ?? []).filter(it => it.requiresPruning).map(it => [it.kind, it.namespace, it.name].filter(Boolean).join(" "));
}

/** Whether it syncs without being asked. */
export function isAutomated(app: Application): boolean {
    const automated = app.spec.syncPolicy?.automated;
    return Boolean(automated) && automated?.enabled !== false;
}

/** What switches that on or off, as Argo CD does it: Prune and Self Heal stay as they were, and are off if they never were anything. */
export function autoSyncPatch(app: Application, isOn: boolean): unknown {
    const isNew = !app.spec.syncPolicy?.automated;
    return { spec: { syncPolicy: { automated: isOn && isNew ? { prune: false, selfHeal: false } : { enabled: isOn } } } };
}

/** What is deleted as soon as it syncs by itself again. */
export function prunedByItself(app: Application): string[] {
    return app.spec.syncPolicy?.automated?.prune ? pruned(app) : [];
}
