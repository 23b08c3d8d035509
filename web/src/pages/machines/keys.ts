// Keys that a browser keeps for itself, and texts as keystrokes: what is sent to the screen of a machine beside what somebody types there.

/** A key as the protocol has it: what it means, and where it is on a keyboard. */
export interface Key { keysym: number; code: string }

const CONTROL: Key = { keysym: 0xffe3, code: "ControlLeft" };
const ALT: Key = { keysym: 0xffe9, code: "AltLeft" };
const SHIFT: Key = { keysym: 0xffe1, code: "ShiftLeft" };

/** What is pressed together, by what people call it. */
export const TOGETHER: [string, Key[]][] = [
    ["Ctrl+Alt+Del", [CONTROL, ALT, { keysym: 0xffff, code: "Delete" }]],
    ...Array.from({ length: 12 }, (_, at): [string, Key[]] => [`Ctrl+Alt+F${at + 1}`, [CONTROL, ALT, { keysym: 0xffbe + at, code: `F${at + 1}` }]]),
];

export type Press = Key & { down: boolean };

/** Down one after the other, and up the other way round. */
export function pressed(keys: readonly Key[]): Press[] {
    return [...keys.map(key => ({ ...key, down: true })), ...[...keys].reverse().map(key => ({ ...key, down: false }))];
}

/** Where signs are on an American keyboard: without and with Shift. */
const SIGNS: [string, string][] = [
    ["`~", "Backquote"], ["1!", "Digit1"], ["2@", "Digit2"], ["3#", "Digit3"], ["4$", "Digit4"], ["5%", "Digit5"], ["6^", "Digit6"], ["7&", "Digit7"], ["8*", "Digit8"], ["9(", "Digit9"], ["0)", "Digit0"],
    ["-_", "Minus"], ["=+", "Equal"], ["[{", "BracketLeft"], ["]}", "BracketRight"], ["\\|", "Backslash"], [";:", "Semicolon"], ["'\"", "Quote"], [",<", "Comma"], [".>", "Period"], ["/?", "Slash"],
    ...Array.from("abcdefghijklmnopqrstuvwxyz", (letter): [string, string] => [letter + letter.toUpperCase(), `Key${letter.toUpperCase()}`]),
];

const KEYS = new Map<string, Key[]>([[" ", [{ keysym: 0x20, code: "Space" }]], ["\n", [{ keysym: 0xff0d, code: "Enter" }]], ["\t", [{ keysym: 0xff09, code: "Tab" }]]]);
for (const [[plain = "", shifted = ""], code] of SIGNS) {
    KEYS.set(plain, [{ keysym: plain.charCodeAt(0), code }]);
    KEYS.set(shifted, [SHIFT, { keysym: shifted.charCodeAt(0), code }]);
}

/** More than this takes a minute, and nobody would find out what became of it. */
export const MOST_TYPED = 1_000;

/** A text as it is typed on an American keyboard, sign by sign; what such a keyboard does not have is told and left out. */
export function typed(text: string): { strokes: Press[][]; missing: string[] } {
    const signs = Array.from(text.replace(/\r\n?/g, "\n"));
    const strokes = signs.flatMap(sign => {
        const keys = KEYS.get(sign);
        return keys ? [pressed(keys)] : [];
    });
    return { strokes, missing: [...new Set(signs.filter(sign => !KEYS.has(sign)))] };
}
