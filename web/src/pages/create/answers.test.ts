import { describe, expect, it } from "vitest";
import { answerText } from "./answers";

const PAGES = [
    { properties: { size: { type: "string", enum: ["small", "large"], enumNames: ["1 CPU and 128 MiB", "2 CPU and 2 GiB"] }, publish: { type: "boolean", title: "Publish" }, keep: { type: "boolean", oneOf: [{ const: true, title: "Keep it" }, { const: false, title: "Throw it away" }] } } },
    {
        properties: { packages: { type: "array", items: { type: "string" } }, days: { type: "array", items: { enum: ["mo", "tu"], enumNames: ["Monday", "Tuesday"] } } },
        dependencies: { publish: { oneOf: [{ properties: { publish: { const: true }, plan: { type: "string", enum: ["free"], "ui:enumNames": ["100 requests a day"] } } }] } },
    },
];

describe("an answer in the words of its form", () => {
    it.each([
        ["size", "small", "1 CPU and 128 MiB"], ["size", "other", "other"], ["publish", true, "yes"], ["publish", false, "no"], ["keep", false, "Throw it away"],
        ["packages", [], "none"], ["packages", ["git", "curl"], "git, curl"], ["days", ["tu", "mo"], "Tuesday, Monday"], ["plan", "free", "100 requests a day"],
        ["name", "", "none"], ["name", undefined, "none"], ["port", 0, "0"], ["nested", { a: 1 }, '{"a":1}'],
    ])("%s %j: %s", (question, value, expected) => {
        expect(answerText(PAGES, question, value)).toBe(expected);
    });
});
