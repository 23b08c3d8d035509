// What of the tree of machines is drawn: there may be thousands of namespaces, each with folders, and as many workspaces. What somebody has
// chosen is always among it.

import type { Branch } from "./model";

/** So many lines at first, and so many more each time somebody asks for them. */
export const STEP = 100;
/** With fewer lines nobody needs to search. */
export const WORTH_SEARCHING = 30;

export interface Chosen {
    namespace: string;
    folder: string;
}

export interface Trimmed {
    branches: Branch[];
    /** So many lines are left out. */
    more: number;
}

const linesOf = (branches: readonly Branch[]): number => branches.reduce((sum, branch) => sum + 1 + branch.folders.length, 0);

export { linesOf };

/** The namespaces and folders that have all words in their names; a folder brings its namespace along, a namespace all its folders. */
export function searched(branches: readonly Branch[], typed: string): Branch[] {
    const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return [...branches];
    return branches.flatMap(branch => {
        const namespace = branch.namespace.toLowerCase();
        const left = words.filter(word => !namespace.includes(word));
        if (left.length === 0) return [branch];
        const folders = branch.folders.filter(folder => left.every(word => folder.name.toLowerCase().includes(word)));
        return folders.length > 0 ? [{ ...branch, folders }] : [];
    });
}

/** The first lines, and what is chosen. */
export function trimmed(branches: readonly Branch[], chosen: Chosen, most: number): Trimmed {
    const kept: Branch[] = [];
    let left = most;
    for (const branch of branches) {
        const isChosen = branch.namespace === chosen.namespace && chosen.namespace !== "";
        if (left <= 0 && !isChosen) continue;
        left -= 1;
        const room = Math.max(0, left);
        const folders = branch.folders.filter((folder, at) => at < room || (isChosen && folder.name === chosen.folder));
        left -= folders.length;
        kept.push(folders.length === branch.folders.length ? branch : { ...branch, folders });
    }
    return { branches: kept, more: linesOf(branches) - linesOf(kept) };
}

/** The first of many places, and those that are needed. */
export function fewOf(places: readonly string[], needed: ReadonlySet<string>, most: number): { shown: string[]; more: number } {
    let left = most;
    const shown = places.filter(place => needed.has(place) || left-- > 0);
    return { shown, more: places.length - shown.length };
}
