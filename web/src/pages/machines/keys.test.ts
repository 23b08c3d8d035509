import { describe, expect, it } from "vitest";
import { pressed, TOGETHER, typed } from "./keys";

const told = (presses: { code: string; down: boolean }[]): string => presses.map(one => `${one.down ? "+" : "-"}${one.code}`).join(" ");

describe("keys that are pressed together", () => {
    it("go up the other way round", () => {
        expect(told(pressed(TOGETHER[0]?.[1] ?? []))).toBe("+ControlLeft +AltLeft +Delete -Delete -AltLeft -ControlLeft");
    });
    it("are Ctrl+Alt with Del and each key of a function", () => {
        expect(TOGETHER.map(([name]) => name).slice(0, 3)).toEqual(["Ctrl+Alt+Del", "Ctrl+Alt+F1", "Ctrl+Alt+F2"]);
        expect(TOGETHER.at(-1)?.[1].at(-1)).toEqual({ keysym: 0xffc9, code: "F12" });
    });
});

describe("a text as keystrokes", () => {
    it.each([
        ["a", "+KeyA -KeyA"], ["A", "+ShiftLeft +KeyA -KeyA -ShiftLeft"], ["1", "+Digit1 -Digit1"], ["|", "+ShiftLeft +Backslash -Backslash -ShiftLeft"],
        ["\r\n", "+Enter -Enter"], ["\t ", "+Tab -Tab +Space -Space"], ["\"'", "+ShiftLeft +Quote -Quote -ShiftLeft +Quote -Quote"],
    ])("%j", (text, expected) => {
        expect(told(typed(text).strokes.flat())).toBe(expected);
    });
    it("has every sign of ASCII", () => {
        const all = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at)).join("");
        expect(typed(all).missing).toEqual([]);
        expect(typed(all).strokes).toHaveLength(95);
    });
    it("says what such a keyboard does not have, and sends no escape sequence", () => {
        expect(typed("ä€aä\u001b")).toEqual({ strokes: [pressed([{ keysym: 0x61, code: "KeyA" }])], missing: ["ä", "€", "\u001b"] });
    });
});
