// What a list of runs says of each, and how one is found.

import type { Voyage } from "../../api/kinds";

/** Templates ask for the name of what they make under this name. */
export function madeName(one: Voyage): string {
    const name = one.spec.values?.name;
    return typeof name === "string" ? name : "";
}

/** What people call a run: by what it makes, else by its own name. */
export function runTitle(one: Voyage): string {
    return madeName(one) || (one.metadata?.name ?? "");
}

type At = string | undefined;

/** From when to when it did what it is for. That it was taken back later, or is being taken back, does not make it longer: that has its own time. */
export function spanOf(one: Voyage): { from: At; to: At } {
    const { startedAt, endedAt, phase = "" } = one.status ?? {};
    const ends = (one.status?.steps ?? []).map(step => (step as { endedAt?: unknown }).endedAt).filter((it): it is string => typeof it === "string" && it !== "").sort();
    return { from: startedAt, to: phase.startsWith("Decommission") ? ends.at(-1) ?? endedAt : endedAt };
}

/** Whether a run is meant by words: its name, that of what it makes, its template, who started it. */
export function isMeant(one: Voyage, words: string): boolean {
    const told = [one.metadata?.name, madeName(one), one.spec.template, one.spec.requestedBy?.username];
    return told.filter(Boolean).join(" ").toLowerCase().includes(words.trim().toLowerCase());
}
