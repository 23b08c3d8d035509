import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { isDarkIn, themeOf } from "./theme";

const EARLY = readFileSync(join(import.meta.dirname, "early.js"), "utf8");

/** What the script in the head makes of a browser: whether the page is dark. */
function early(kept: string | null | Error, isSystemDark: boolean): boolean | undefined {
    let isDark: boolean | undefined;
    runInNewContext(EARLY, {
        localStorage: { getItem: (key: string) => {
            if (kept instanceof Error) throw kept;
            return key === "fairway-theme" ? kept : null;
        } },
        matchMedia: (query: string) => ({ matches: query.includes("dark") && isSystemDark }),
        document: { documentElement: { classList: { toggle: (name: string, is: boolean) => { if (name === "pf-v6-theme-dark") isDark = is; } } } },
    });
    return isDark;
}

describe("light or dark", () => {
    it.each<[string, string | null, boolean, boolean]>([
        ["nothing is chosen, the system is light", null, false, false], ["nothing is chosen, the system is dark", null, true, true], ["dark on a light system", "dark", false, true],
        ["light on a dark system", "light", true, false], ["something that nobody offers", "pink", true, true],
    ])("%s", (_why, kept, isSystemDark, expected) => {
        expect(isDarkIn(themeOf(kept), isSystemDark)).toBe(expected);
        expect(early(kept, isSystemDark), "before the first paint").toBe(expected);
    });
    it("where nothing may be kept the system's choice holds", () => {
        expect(early(new Error("forbidden"), true)).toBe(true);
    });
});
