import { describe, expect, it } from "vitest";
import { depthOf, MOST, seen, wayTo } from "./places";

describe("the workspaces that somebody may see", () => {
    const tree: Record<string, string[]> = { root: ["acme", "other"], "root:acme": ["web", "db"], "root:acme:web": [], "root:acme:db": ["old"], "root:acme:db:old": [], "root:other": [] };
    const reader = (allowed: (place: string) => boolean, asked: string[] = []) => async (place: string): Promise<string[]> => {
        asked.push(place);
        if (!allowed(place)) throw new Error("403");
        return tree[place] ?? [];
    };
    it.each([
        ["everything", "root", "root", () => true, ["root", "root:acme", "root:acme:db", "root:acme:db:old", "root:acme:web", "root:other"]],
        ["what is below a place in the middle", "root:acme", "root:acme", (place: string) => place.startsWith("root:acme"), ["root:acme", "root:acme:db", "root:acme:db:old", "root:acme:web"]],
        ["where one is and where one is at home, though nothing can be listed", "root:acme:web", "root:other", () => false, ["root:acme:web", "root:other"]],
    ] as const)("are %s", async (_why, here, home, allowed, expected) => {
        expect(await seen(here, home, reader(allowed))).toEqual(expected);
    });
    it("are each asked for once, and not without end", async () => {
        const asked: string[] = [];
        await seen("root:acme", "root", reader(() => true, asked));
        expect(new Set(asked).size).toBe(asked.length);
        let count = 0;
        await seen("root", "root", () => { count += 1; return Promise.resolve(["a", "b", "c"]); });
        expect(count).toBe(MOST);
    });
    it("are drawn as deep as those above them are shown", () => {
        expect(wayTo("root:a:b")).toEqual(["root", "root:a", "root:a:b"]);
        expect([depthOf("root", ["root", "root:a"]), depthOf("root:a", ["root", "root:a"]), depthOf("root:a:b", ["root:a:b", "root:c"])]).toEqual([0, 1, 0]);
    });
});
