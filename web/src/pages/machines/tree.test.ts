import { describe, expect, it } from "vitest";
import type { Branch } from "./model";
import { fewOf, linesOf, searched, trimmed } from "./tree";

const branch = (namespace: string, ...folders: string[]): Branch => ({ namespace, count: 1, folders: folders.map(name => ({ name, count: 1 })) });
const FEW = [branch("db", "old", "new"), branch("web"), branch("web-dev", "old")];
const MANY = Array.from({ length: 5_000 }, (_, n) => branch(`ns-${String(n).padStart(4, "0")}`, "a", "b"));
const NONE = { namespace: "", folder: "" };
const words = (branches: Branch[]): string => branches.map(it => [it.namespace, ...it.folders.map(folder => folder.name)].join("/")).join(" ");

describe("the tree of machines", () => {
    it.each([
        ["all", "", "db/old/new web web-dev/old"], ["a namespace with its folders", "DB", "db/old/new"], ["a folder with its namespaces", "old", "db/old web-dev/old"],
        ["both", "dev old", "web-dev/old"], ["nothing", "xyz", ""], ["words of which one is nowhere", "db xyz", ""],
    ])("searched: %s", (_why, typed, expected) => {
        expect(words(searched(FEW, typed))).toBe(expected);
    });

    it.each([
        ["all fit", 10, NONE, "db/old/new web web-dev/old", 0], ["the first lines", 2, NONE, "db/old", 4], ["a line for the namespace alone", 1, NONE, "db", 5],
        ["what is chosen, wherever it is", 1, { namespace: "web-dev", folder: "" }, "db web-dev", 4], ["and its folder", 1, { namespace: "web-dev", folder: "old" }, "db web-dev/old", 3],
    ])("trimmed: %s", (_why, most, chosen, expected, more) => {
        const found = trimmed(FEW, chosen, most);
        expect([words(found.branches), found.more]).toEqual([expected, more]);
    });

    it("of fifteen thousand lines a hundred are drawn, and the chosen one", () => {
        const { branches, more } = trimmed(MANY, { namespace: "ns-4999", folder: "b" }, 100);
        expect(linesOf(branches)).toBeLessThanOrEqual(102);
        expect(linesOf(branches) + more).toBe(15_000);
        expect(words(branches)).toMatch(/ ns-4999\/b$/);
    });

    it("of many workspaces the way to where one is stays", () => {
        const places = ["root", ...Array.from({ length: 1_000 }, (_, n) => `root:w${n}`)];
        const { shown, more } = fewOf(places, new Set(["root", "root:w999"]), 3);
        expect(shown).toEqual(["root", "root:w0", "root:w1", "root:w2", "root:w999"]);
        expect(more).toBe(996);
    });
});
