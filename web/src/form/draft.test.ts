import { describe, expect, it } from "vitest";
import { type Draft, draftKey, dropDrafts, readDraft, resumed, type Shelf, writeDraft } from "./draft";

const SECRET = "ui:field";
const PAGES = [
    { properties: { name: { type: "string" }, open: { type: "boolean" } } },
    {
        properties: {
            token: { type: "string", [SECRET]: "Secret" }, pin: { type: "string", "ui:widget": "password" }, zone: { type: "string" }, phrase: { type: "string", "ui:options": { field: "Secret" } }, pass: { type: "string", format: "password" },
            login: { type: "object", properties: { user: { type: "string" }, password: { type: "string", [SECRET]: "Secret" } } },
            keys: { type: "array", items: { type: "object", properties: { key: { type: "string", [SECRET]: "Secret" }, id: { type: "string" } } } },
        },
        dependencies: { open: { oneOf: [{ properties: { open: { const: true }, branch: { type: "string", [SECRET]: "Secret" } } }] } },
    },
];
const HIDDEN = "s3cret";
const ANSWERS = { name: "web", open: true, token: HIDDEN, pin: HIDDEN, phrase: HIDDEN, pass: HIDDEN, branch: HIDDEN, zone: "z", login: { user: "ann", password: HIDDEN }, keys: [{ id: "1", key: HIDDEN }] };
const SAFE = { name: "web", open: true, zone: "z", login: { user: "ann" }, keys: [{ id: "1" }] };
const draft = (more: Partial<Draft> = {}): Draft => ({ answers: ANSWERS, pages: [true, true], reached: 2, ...more });

function memory(): Shelf & { all: Map<string, string> } {
    const all = new Map<string, string>();
    return {
        all, getItem: key => all.get(key) ?? null, setItem: (key, text) => void all.set(key, text), removeItem: key => void all.delete(key), key: at => [...all.keys()][at] ?? null,
        get length() { return all.size; },
    };
}

describe("a draft", () => {
    const key = draftKey("ann", "root", "template:default/vm");

    it("has no answer to a secret question, however deep it is asked", () => {
        const shelf = memory();
        writeDraft(shelf, key, PAGES, draft());
        expect([...shelf.all.values()].join()).not.toContain(HIDDEN);
        expect(readDraft(shelf, key, PAGES)).toEqual({ answers: SAFE, pages: [true, true], reached: 1 });
    });

    it("that somebody has written into the storage brings no secret back either", () => {
        expect(resumed(PAGES, draft())?.answers).toEqual(SAFE);
    });

    it.each([
        ["secrets are given again on their page", draft(), 1],
        ["a page that is not asked has none to give", draft({ pages: [true, false] }), 2],
        ["no further than one had come", draft({ reached: 0 }), 0],
        ["nor further than there are pages", draft({ reached: 9, pages: [true, false] }), 2],
    ])("%s", (_why, kept, reached) => {
        expect(resumed(PAGES, kept)?.reached).toBe(reached);
    });

    it.each([
        ["nothing", null], ["a text", "x"], ["a form of other pages", draft({ pages: [true] })], ["answers to questions that are gone", draft({ answers: { old: 1 } })],
        ["answers that are none", { answers: [], pages: [true, true], reached: 0 }], ["pages that are none", { answers: SAFE, pages: [1, 2], reached: 0 }], ["a place that is none", { answers: SAFE, pages: [true, true], reached: "1" }],
    ])("%s is none", (_why, kept) => {
        expect(resumed(PAGES, kept)).toBeUndefined();
    });

    it("is that of one user, workspace and template; those of others go", () => {
        const shelf = memory();
        const mine = ["root", "root:acme"].map(place => draftKey("ann", place, "t"));
        const others = ["ann b", "bob"].map(user => draftKey(user, "root", "t"));
        for (const one of [...mine, ...others]) writeDraft(shelf, one, PAGES, draft());
        shelf.setItem("other", "kept");
        expect(new Set(shelf.all.keys()).size).toBe(5);
        dropDrafts(shelf, { butOf: "ann" });
        expect([...shelf.all.keys()]).toEqual([...mine, "other"]);
        dropDrafts(shelf, { key: mine[0] ?? "" });
        expect([...shelf.all.keys()]).toEqual([mine[1], "other"]);
        dropDrafts(shelf, "all");
        expect([...shelf.all.keys()]).toEqual(["other"]);
    });

    it("is not missed where nothing can be kept", () => {
        const forbidden: Shelf = { length: 1, getItem: () => { throw new Error("no"); }, setItem: () => { throw new Error("no"); }, removeItem: () => { throw new Error("no"); }, key: () => { throw new Error("no"); } };
        for (const shelf of [undefined, forbidden]) {
            writeDraft(shelf, key, PAGES, draft());
            dropDrafts(shelf, { butOf: "ann" });
            expect(readDraft(shelf, key, PAGES)).toBeUndefined();
        }
    });
});
