// Which Applications a repository is the source of.

import type { Application } from "../../api";

/** An address as two that mean the same are equal: without a password, `.git` and a slash at its end. */
export function sameAddress(text: string): string {
    return text.trim().replace(/^[a-z]+:\/\/(?:[^@/]*@)?/i, "").replace(/\/+$/, "").replace(/\.git$/, "").toLowerCase();
}

/** The Applications that are synced out of a repository, in the order of their names. */
export function followers(applications: readonly Application[], url: string): Application[] {
    const wanted = sameAddress(url);
    const sources = (app: Application): { repoURL: string }[] => [...(app.spec.sources ?? []), ...(app.spec.source ? [app.spec.source] : [])];
    return applications
        .filter(app => sources(app).some(source => sameAddress(source.repoURL) === wanted))
        .sort((a, b) => (a.metadata.name ?? "").localeCompare(b.metadata.name ?? ""));
}

