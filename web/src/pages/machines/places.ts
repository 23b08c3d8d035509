// The workspaces that somebody may see: those on the way to where he is and to where he is at home, and everything below them.

/** More are not looked for: each is a request. */
export const MOST = 200;
const AT_ONCE = 6;

/** A workspace and all above it, the outermost first. */
export function wayTo(place: string): string[] {
    const parts = place.split(":");
    return parts.map((_, at) => parts.slice(0, at + 1).join(":"));
}

/** All that can be seen, sorted. `below` tells the names below a place, and refuses where one may not look; a place of which nobody may hear is left out. */
export async function seen(here: string, home: string, below: (place: string) => Promise<string[]>): Promise<string[]> {
    const waiting = [...new Set([...wayTo(here), ...wayTo(home)])];
    const asked = new Set(waiting);
    const found = new Set([here, home]);
    const work = async (): Promise<void> => {
        for (let place = waiting.shift(); place !== undefined; place = waiting.shift()) {
            const names = await below(place).catch(() => undefined);
            if (!names) continue;
            found.add(place);
            for (const name of names) {
                const inner = `${place}:${name}`;
                found.add(inner);
                if (asked.has(inner) || asked.size >= MOST) continue;
                asked.add(inner);
                waiting.push(inner);
            }
        }
    };
    // In turns, as those who have nothing to do would leave before others have found something.
    while (waiting.length > 0) await Promise.all(Array.from({ length: Math.min(AT_ONCE, waiting.length) }, work));
    return [...found].sort();
}

/** How deep a workspace is drawn, among those that are shown. */
export function depthOf(place: string, all: readonly string[]): number {
    return wayTo(place).filter(it => it !== place && all.includes(it)).length;
}
