import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const SOURCES = join(import.meta.dirname, "..");

/** What each sheet lays out, without what it says of narrow or wide windows. */
function selectors(sheet: string): string[] {
    const text = readFileSync(join(SOURCES, sheet), "utf8").replace(/\/\*[\s\S]*?\*\//g, "").replace(/@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}/g, "");
    return [...text.matchAll(/([^{}]+)\{[^{}]*\}/g)].flatMap(([, list = ""]) => list.split(",").map(one => one.trim()));
}

const sheets = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter(name => name.endsWith(".css"));

it("a selector is in one sheet alone: which of two is loaded last depends on where somebody has been", () => {
    const homes = new Map<string, Set<string>>();
    for (const sheet of sheets) for (const one of selectors(sheet)) homes.set(one, (homes.get(one) ?? new Set()).add(sheet));
    expect(homes.size).toBeGreaterThan(50);
    expect([...homes].filter(([, found]) => found.size > 1).map(([one]) => one)).toEqual([]);
});
