import { expect, it } from "vitest";
import type { Entry } from "../../api/rest/gitea";
import { ownerOf, pageByPage, textOf } from "./gitea";

it.each([["root", "root"], ["root:acme", "acme"], ["root:acme:team", "acme.team"]])("the repositories of %s are %s's", (path, owner) => {
    expect(ownerOf(path)).toBe(owner);
});

const entry = (content: string): Entry => ({ name: "a", path: "a", type: "file", encoding: "base64", content });

it.each([[btoa("hello\n"), "hello\n"], [`${btoa("a")}\n`, "a"], [btoa("a\0b"), undefined], ["w6Q=", "ä"]])("%j is %j", (content, text) => {
    expect(textOf(entry(content))).toBe(text);
});

it.each([[0, [1]], [49, [1]], [50, [1, 2]], [120, [1, 2, 3]], [1000, [1, 2, 3, 4]]])("of %i all are read, page by page, up to a bound", async (count, pages) => {
    const asked: number[] = [];
    const found = await pageByPage(page => {
        asked.push(page);
        return Promise.resolve(Array.from({ length: Math.max(0, Math.min(50, count - (page - 1) * 50)) }, (_, at) => (page - 1) * 50 + at));
    }, 200, 50);
    expect(asked).toEqual(pages);
    expect(found).toEqual(Array.from({ length: Math.min(count, 200) }, (_, at) => at));
});
