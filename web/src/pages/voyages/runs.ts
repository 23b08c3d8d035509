// What a list of runs says of each, and how one is found.

import type { Voyage } from "../../api/kinds";

/** Templates ask for the name of what they make under this name. */
export function madeName(one: Voyage): string {
    const name = one.spec.values?.name;
    return typeof name === "string" ? name : "";
}

/** Whether a run is meant by words: its name, that of what it makes, its template, who started it. */
export function isMeant(one: Voyage, words: string): boolean {
    const told = [one.metadata?.name, madeName(one), one.spec.template, one.spec.requestedBy?.username];
    return told.filter(Boolean).join(" ").toLowerCase().includes(words.trim().toLowerCase());
}
