// The pure part of a watch: lines out of chunks, events out of lines, how long to wait before trying again.

import type { KubernetesObject } from "./kinds";

export type WatchEvent<T> =
    | { type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK"; object: T }
    | { type: "ERROR"; object: { code?: number; message?: string; reason?: string } };

/** A line that is longer than this is not an object of this API. */
export const MAX_LINE = 16 * 1024 * 1024;

/** Cuts a stream of text into lines; keeps the rest for the next chunk. */
export class LineCutter {
    private rest = "";

    push(chunk: string): string[] {
        const parts = (this.rest + chunk).split("\n");
        this.rest = parts.pop() ?? "";
        if (this.rest.length > MAX_LINE) throw new Error("a line of the watch is too long");
        return parts.filter(line => line !== "");
    }
}

export function parseEvent<T>(line: string): WatchEvent<T> {
    const event = JSON.parse(line) as WatchEvent<T>;
    if (typeof event !== "object" || event === null || typeof event.type !== "string") throw new Error("not an event of a watch");
    return event;
}

/** Milliseconds before the next attempt: doubling from half a second to thirty seconds, spread so that tabs do not come at once. */
export function backoff(attempt: number, chance: number): number {
    const base = Math.min(30_000, 500 * 2 ** Math.min(attempt, 10));
    return Math.round(base / 2 + (base / 2) * chance);
}

/** The key of an object in a list. */
export function keyOf(object: KubernetesObject): string {
    return `${object.metadata?.namespace ?? ""}/${object.metadata?.name ?? ""}`;
}

/** Objects as lists hold them: who wrote which field is half of their size, and no page shows it; nor does a list show what its kind calls bulk. */
export function slim<T extends KubernetesObject>(object: T, bulk: readonly string[] = []): T {
    for (const path of ["metadata.managedFields", ...bulk]) {
        const names = path.split(".");
        const last = names.pop() ?? "";
        const place = names.reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], object);
        if (place && typeof place === "object") delete (place as Record<string, unknown>)[last];
    }
    return object;
}
