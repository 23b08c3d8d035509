import { describe, expect, it } from "vitest";
import { fill, plurals } from "../text/t";
import { hostedRepository, safeAddress } from "./address";
import { shortAge } from "./age";
import { pieces } from "./highlight";
import { conditionTone, signOf, toneOf } from "./status";
import { visibleRange } from "./window";

describe("addresses from objects", () => {
    it.each([
        ["https://example.com/a", "https://example.com/a"],
        ["/catalog", "/catalog"],
        ["javascript:alert(1)", undefined],
        ["JaVaScRiPt:alert(1)", undefined],
        ["data:text/html,x", undefined],
        ["//evil.example", undefined],
        ["/\\evil.example", undefined],
        [" vbscript:x", undefined],
        ["", undefined],
    ])("%s", (text, expected) => expect(safeAddress(text)).toBe(expected));
});

describe("ages as kubectl writes them", () => {
    const now = Date.parse("2026-01-10T00:00:00Z");
    it.each([
        ["2026-01-09T23:59:30Z", "30s"],
        ["2026-01-09T23:55:30Z", "4m30s"],
        ["2026-01-09T22:00:00Z", "120m"],
        ["2026-01-09T19:30:00Z", "4h30m"],
        ["2026-01-01T00:00:00Z", "9d"],
        ["nonsense", ""],
    ])("%s", (from, expected) => expect(shortAge(from, now)).toBe(expected));
});

describe("long lists", () => {
    it("draw what is seen, and a little more", () => {
        expect(visibleRange(0, 440, 44, 10_000)).toEqual({ first: 0, last: 18 });
        expect(visibleRange(44_000, 440, 44, 10_000)).toEqual({ first: 992, last: 1018 });
        expect(visibleRange(1e9, 440, 44, 3)).toEqual({ first: 3, last: 3 });
    });
});

describe("words and colours", () => {
    it("are the originals'", () => {
        expect(["Healthy", "OutOfSync", "Degraded", "Running", "whatever", "ComparisonError"].map(toneOf)).toEqual(["green", "yellow", "red", "green", "grey", "red"]);
        expect(conditionTone("Ready", "False")).toBe("red");
        expect(conditionTone("DataVolumesError", "False")).toBe("green");
        expect(conditionTone("Conflicted", "False")).toBe("green");
        expect(conditionTone("Conflicted", "True")).toBe("red");
    });
    it.each([
        ["Running", "good"], ["Failed", "bad"], ["OutOfSync", "warning"], ["Starting", "busy"], ["Unknown", "unknown"], ["Stopped", "off"], ["Suspended", "paused"], ["Paused", "paused"], ["Pending", "pending"],
        ["Cancelled", "ended"], ["Decommissioned", "ended"], ["skipped", undefined], ["private", undefined], ["Merged", undefined],
    ])("%s has the sign %s", (word, sign) => expect(signOf(word, toneOf(word))).toBe(sign));
    it("YAML is coloured without losing a character", () => {
        for (const line of ["a: 1", "  - name: x", "# c", "- b", "'q': \"z\"", "url: http://x:80/", ""]) {
            expect(pieces(line).map(piece => piece.text).join("")).toBe(line);
        }
    });
    it("texts are filled and counted", () => {
        expect(fill("a {n} {m}", { n: 1 })).toBe("a 1 {m}");
        const counted = plurals("test", { files: { one: "{n} file", other: "{n} files" } });
        expect([counted("files", 1), counted("files", 2)]).toEqual(["1 file", "2 files"]);
    });
});

describe("addresses of the Git host", () => {
    const host = "https://git.example:7443";
    it.each([
        [`${host}/root/web.git`, "/repositories/root/web"],
        [`${host}/root/web/src/branch/main/catalog-info.yaml`, "/repositories/root/web"],
        [`${host}/root`, undefined],
        ["https://git.example:74433/root/web.git", undefined],
        ["https://elsewhere.example/root/web.git", undefined],
    ])("%s leads to %s", (address, path) => {
        expect(hostedRepository(address, host)).toBe(path);
    });
    it("are not looked for where there is none", () => {
        expect(hostedRepository("https://git.example/root/web.git", undefined)).toBeUndefined();
    });
});
