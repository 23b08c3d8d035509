import { expect, it } from "vitest";
import { ownerOf, textOf, type Entry } from "./gitea";

it.each([["root", "root"], ["root:acme", "acme"], ["root:acme:team", "acme.team"]])("the repositories of %s are %s's", (path, owner) => {
    expect(ownerOf(path)).toBe(owner);
});

const entry = (content: string): Entry => ({ name: "a", path: "a", type: "file", encoding: "base64", content });

it.each([[btoa("hello\n"), "hello\n"], [`${btoa("a")}\n`, "a"], [btoa("a\0b"), undefined], ["w6Q=", "ä"]])("%j is %j", (content, text) => {
    expect(textOf(entry(content))).toBe(text);
});
