import { describe, expect, it } from "vitest";
import { splitSecrets, splitUi, titlesOf } from "./schema";
import { errorsOf, validator } from "./validator";

const PAGE = {
    type: "object",
    required: ["name"],
    properties: {
        name: { type: "string", pattern: "^[a-z]+$", "ui:autofocus": true },
        size: { type: "string", enum: ["s", "l"], enumNames: ["Small", "Large"] },
        token: { type: "string", "ui:field": "Secret" },
        open: { type: "boolean" },
    },
    dependencies: { open: { oneOf: [{ properties: { open: { const: false } } }, { properties: { open: { const: true }, host: { type: "string", "ui:help": "a name" } }, required: ["host"] }] } },
};

describe("titles", () => {
    it("come in the order of the questions, and a branch does not take one away", () => {
        const pages = [PAGE, { properties: { open: { const: true }, size: { title: "How large" } } }];
        expect([...titlesOf(pages)]).toEqual([["name", "name"], ["size", "How large"], ["token", "token"], ["open", "open"], ["host", "host"]]);
    });
});

describe("a page of questions", () => {
    const { schema, uiSchema } = splitUi(PAGE);

    it("has its options apart", () => {
        expect(JSON.stringify(schema)).not.toContain("ui:");
        expect(uiSchema.name).toEqual({ "ui:autofocus": true });
        expect(uiSchema.size).toEqual({ "ui:enumNames": ["Small", "Large"] });
        expect(uiSchema.host).toEqual({ "ui:help": "a name" });
    });

    it.each([
        { why: "missing", answers: {}, at: [".name"] },
        { why: "pattern", answers: { name: "A1" }, at: [".name"] },
        { why: "enum", answers: { name: "a", size: "x" }, at: [".size"] },
        { why: "good", answers: { name: "a", size: "s", open: false }, at: [] },
        { why: "undefined is not there", answers: { name: "a", size: undefined }, at: [] },
        { why: "good with a branch", answers: { name: "a", open: true, host: "h" }, at: [] },
    ])("$why", ({ answers, at }) => {
        expect(errorsOf(schema, answers).map(error => error.property)).toEqual(at);
    });

    it("chooses branches", () => {
        expect(validator.isValid({ properties: { open: { const: true } } }, { open: true }, schema)).toBe(true);
        expect(validator.isValid({ properties: { open: { const: true } } }, { open: false }, schema)).toBe(false);
    });

    it("keeps secrets apart", () => {
        expect(splitSecrets([PAGE], { name: "a", token: "s3" })).toEqual({ values: { name: "a" }, secrets: { token: "s3" } });
    });
});
