// The workspaces of the tree: those on the way to where somebody is and to where he is at home, and what was found below those that he opened.
// Nothing is asked of a workspace before somebody opens it: many would refuse.

/** A workspace and all above it, the outermost first. */
export function wayTo(place: string): string[] {
    const parts = place.split(":");
    return parts.map((_, at) => parts.slice(0, at + 1).join(":"));
}

/** All that is shown, each after the one that it is in. `found` has the names below each place that was opened. */
export function placesOf(here: string, home: string, found: ReadonlyMap<string, readonly string[]>): string[] {
    const all = new Set([...wayTo(here), ...wayTo(home)]);
    for (const [place, names] of found) for (const name of names) all.add(`${place}:${name}`);
    // By its parts, as `a-b` would stand between `a` and `a:c`.
    return [...all].map(place => place.split(":")).sort(byParts).map(parts => parts.join(":"));
}

function byParts(a: readonly string[], b: readonly string[]): number {
    const at = a.findIndex((part, n) => part !== b[n]);
    return at === -1 ? a.length - b.length : b[at] === undefined ? 1 : (a[at] ?? "").localeCompare(b[at]);
}

export const depthOf = (place: string): number => place.split(":").length - 1;
