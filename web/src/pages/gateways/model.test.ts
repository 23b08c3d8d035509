import { describe, expect, it } from "vitest";
import { readHeaders, standing } from "./model";

describe("how something stands", () => {
    it.each([
        [undefined, "Pending", false],
        [[{ type: "Accepted", status: "True" }, { type: "Programmed", status: "True" }], "Programmed", true],
        [[{ type: "Accepted", status: "False", reason: "InvalidParameters" }, { type: "Programmed", status: "True" }], "InvalidParameters", false],
        [[{ type: "Accepted", status: "True" }], "Accepted", true],
        [[{ type: "Programmed", status: "Unknown" }], "NotProgrammed", false],
    ])("%j", (conditions, word, isGood) => {
        expect(standing(conditions, ["Accepted", "Programmed"])).toMatchObject({ word, isGood });
    });
});

describe("headers", () => {
    it.each([
        ["Authorization: APIKEY a:b\n\nX-A: 1", { Authorization: "APIKEY a:b", "X-A": "1" }, undefined],
        ["", {}, undefined], ["no colon", {}, "no colon"], [": x", {}, ": x"], ["a b: c", {}, "a b: c"],
    ])("%j", (text, headers, wrong) => {
        expect(readHeaders(text)).toEqual(wrong === undefined ? { headers } : { headers, wrong });
    });
});
