import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { ownerInstead, ownerText } from "./owner";
import { withCode } from "./words";

const KNOWN = ["group:default/ops", "group:default/web", "user:default/ann"];

describe("the owner that a template proposes", () => {
    it.each([
        ["is there", "ops", ["group:default/web"], undefined],
        ["is nobody: a group of mine", "platform", ["user:default/ann", "group:default/none", "group:default/web"], "web"],
        ["is nobody, and I am in no group that is there", "platform", ["user:default/ann", "group:default/none"], "user:ann"],
        ["is a user who is there", "user:ann", ["group:default/web"], undefined],
        ["is nobody, and nobody is signed in", "platform", [], undefined],
    ])("%s", (_what, value, mine, expected) => {
        expect(ownerInstead(value, value, KNOWN, mine)).toBe(expected);
    });
    it("is not touched once it was written", () => {
        expect(ownerInstead("somebody", "platform", KNOWN, ["group:default/web"])).toBeUndefined();
        expect(ownerInstead(undefined, undefined, KNOWN, ["group:default/web"])).toBeUndefined();
    });
    it.each([["group:default/web", "web"], ["group:other/web", "other/web"], ["user:default/ann", "user:ann"], ["user:other/ann", "user:other/ann"]])("%s is written %s", (ref, text) => {
        expect(ownerText(ref)).toBe(text);
    });
});

describe("help", () => {
    it.each([
        ["no code", "no code"],
        ["`openssl passwd -6` makes one", "<code>openssl passwd -6</code> makes one"],
        ["a ` alone", "a ` alone"],
        ["`<b>`", "<code>&lt;b&gt;</code>"],
    ])("%s", (text, html) => {
        expect(renderToStaticMarkup(<>{withCode(text)}</>)).toBe(html);
    });
});
