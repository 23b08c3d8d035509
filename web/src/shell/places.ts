// Which workspaces a menu shows of many: those with all words that were typed, and no more than can be looked through.

export const MOST_PLACES = 50;

export interface Places {
    shown: string[];
    /** So many more match. */
    more: number;
}

export function placesWith(names: readonly string[], typed: string, most = MOST_PLACES): Places {
    const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
    const found = names.filter(name => words.every(word => name.toLowerCase().includes(word))).sort((a, b) => a.localeCompare(b));
    return { shown: found.slice(0, most), more: Math.max(0, found.length - most) };
}
