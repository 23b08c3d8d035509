import { describe, expect, it } from "vitest";
import { isOwnHost, matching, type Offer, offerOf, press, refOfText, refText, repoOf, repoUrl } from "./offers";
import { complaint } from "./rules";

const offer = (value: string, label = value): Offer => ({ value, label });
const OFFERS = [offer("group:default/ops", "ops"), offer("group:default/web", "web"), offer("user:default/ann", "user:ann"), offer("group:default/a-web", "a-web")];

describe("offers", () => {
    it.each([
        ["nothing is typed: all", "", ["ops", "web", "user:ann", "a-web"]],
        ["what begins like it comes first", "WEB", ["web", "a-web"]],
        ["every word counts, in the answer, too", "group web", ["web", "a-web"]],
        ["nothing matches", "xyz", []],
    ])("%s", (_why, typed, labels) => {
        expect(matching(OFFERS, typed).offers.map(one => one.label)).toEqual(labels);
    });
    it("are not drawn by the thousand", () => {
        const many = Array.from({ length: 1000 }, (_, n) => offer(`component:default/c-${n}`));
        const { offers, more } = matching(many, "");
        expect([offers.length, more]).toEqual([50, 950]);
        expect(matching(many, "c-999").offers).toHaveLength(1);
    });
    it("can be typed out, in either way of writing", () => {
        expect(offerOf(OFFERS, "Web")?.value).toBe("group:default/web");
        expect(offerOf(OFFERS, "user:default/ann")?.label).toBe("user:ann");
        expect(offerOf(OFFERS, "we")).toBeUndefined();
    });
});

describe("keys", () => {
    const closed = { isOpen: false, marked: -1 };
    const open = (marked: number) => ({ isOpen: true, marked });
    it.each([
        ["down opens and marks the first", closed, "ArrowDown", 3, { isOpen: true, marked: 0, isTaken: true }],
        ["down where nothing is offered marks nothing", closed, "ArrowDown", 0, { isOpen: true, marked: -1, isTaken: true }],
        ["down goes on", open(0), "ArrowDown", 3, { isOpen: true, marked: 1, isTaken: true }],
        ["and around", open(2), "ArrowDown", 3, { isOpen: true, marked: 0, isTaken: true }],
        ["up opens at the last", closed, "ArrowUp", 3, { isOpen: true, marked: 2, isTaken: true }],
        ["up from the first is the last", open(0), "ArrowUp", 3, { isOpen: true, marked: 2, isTaken: true }],
        ["up with nothing marked is the last", open(-1), "ArrowUp", 3, { isOpen: true, marked: 2, isTaken: true }],
        ["Enter takes what is marked, and the form does not go on", open(1), "Enter", 3, { isOpen: false, marked: -1, chosen: 1, isTaken: true }],
        ["Enter without a mark is the form's", open(-1), "Enter", 3, { isOpen: false, marked: -1, isTaken: false }],
        ["Enter when it is closed is the form's", closed, "Enter", 3, { isOpen: false, marked: -1, isTaken: false }],
        ["a mark on what is no longer offered is none", open(5), "Enter", 3, { isOpen: false, marked: -1, isTaken: false }],
        ["Escape closes", open(1), "Escape", 3, { isOpen: false, marked: -1, isTaken: true }],
        ["Escape when it is closed is the page's", closed, "Escape", 3, { isOpen: false, marked: -1, isTaken: false }],
        ["Tab leaves", open(1), "Tab", 3, { isOpen: false, marked: -1, isTaken: false }],
        ["letters are letters", open(1), "a", 3, { isOpen: true, marked: 1, isTaken: false }],
    ])("%s", (_why, box, key, count, expected) => {
        expect(press(box, key, count)).toEqual(expected);
    });
});

describe("references", () => {
    it.each([
        ["group:default/web", {}, "group:web"], ["group:default/web", { kind: "Group" }, "web"], ["group:other/web", { kind: "Group" }, "other/web"], ["user:default/ann", { kind: "Group" }, "user:ann"],
        ["group:teams/web", { kind: "Group", namespace: "teams" }, "web"], ["group:default/web", { kind: "group", namespace: "teams" }, "default/web"], ["group:default/web", { kind: "group", namespace: false as const }, "default/web"], ["anything", { kind: "Group" }, "anything"],
    ])("%s with %j is read as %s, and typed so", (ref, defaults, text) => {
        expect(refText(ref, defaults)).toBe(text);
        if (ref.includes(":")) expect(refOfText(text, defaults)).toBe(ref);
    });
    it.each([
        ["web", {}, "web"], ["Web", { kind: "Component" }, "component:default/web"], ["ns/web", { kind: "Component" }, "component:ns/web"], ["web", { kind: "Component", namespace: false as const }, "web"],
        ["a b", { kind: "Component" }, "a b"], ["", { kind: "Component" }, ""], ["a/b/c", { kind: "Component" }, "a/b/c"],
    ])("typed %j with %j is %s", (text, defaults, ref) => {
        expect(refOfText(text, defaults)).toBe(ref);
    });
});

describe("repositories", () => {
    it.each([
        ["fairway?owner=acme&repo=web", { host: "fairway", owner: "acme", repo: "web" }],
        ["https://git.example.com:7443?owner=a%26b&repo=web", { host: "git.example.com:7443", owner: "a&b", repo: "web" }],
        ["", { host: "", owner: "", repo: "" }], [undefined, { host: "", owner: "", repo: "" }],
    ])("%s", (url, parts) => {
        expect(repoOf(url)).toEqual(parts);
    });
    it("an address needs a name, and nothing breaks out of its place", () => {
        expect(repoUrl({ host: "fairway", owner: "acme", repo: "" })).toBeUndefined();
        expect(repoOf(repoUrl({ host: "h", owner: "a&repo=b", repo: "c=d" }))).toEqual({ host: "h", owner: "a&repo=b", repo: "c=d" });
    });
    it.each([["fairway", true], ["git.example.com", true], ["GIT.example.com:7443", true], ["other.example.com", false]])("own host %s: %s", (host, own) => {
        expect(isOwnHost(host, "https://git.example.com:7443")).toBe(own);
    });
});

describe("rules of Backstage's fields", () => {
    it.each([
        ["EntityNamePicker", "my-name.1", true], ["EntityNamePicker", "-x", false], ["EntityNamePicker", "a".repeat(64), false], ["EntityNamePicker", undefined, true],
        ["EntityTagsPicker", ["go", "c++", "ui-kit"], true], ["EntityTagsPicker", ["Go"], false], ["EntityTagsPicker", ["a b"], false], ["EntityTagsPicker", [], true],
        ["RepoUrlPicker", "fairway?owner=a&repo=b", true], ["RepoUrlPicker", "fairway?repo=b", false], ["Secret", "anything", true],
    ])("%s %j: %s", (field, answer, isGood) => {
        expect(complaint(field, answer) === undefined).toBe(isGood);
    });
});
