import { expect, it, vi } from "vitest";
import { leaver } from "./leave";

/** `+Control` is down, `-Control` is up; a browser tells with each which modifiers are down then. */
function typed(keys: string): number {
    const left = vi.fn();
    const hear = leaver(left);
    const down = new Set<string>();
    for (const [sign, ...rest] of keys.split(" ")) {
        const key = rest.join("");
        if (sign === "+") down.add(key);
        else down.delete(key);
        hear({ type: sign === "+" ? "keydown" : "keyup", key, ctrlKey: down.has("Control"), altKey: down.has("Alt"), shiftKey: down.has("Shift") });
    }
    return left.mock.calls.length;
}

it.each([
    ["all three leave, once all are up", "+Control +Alt +Shift -Shift -Alt -Control", 1],
    ["in any order", "+Shift +Control +Alt -Control -Shift -Alt", 1],
    ["not before all are up", "+Control +Alt +Shift -Shift -Alt", 0],
    ["two are the guest's", "+Control +Alt -Alt -Control", 0],
    ["with another key they are the guest's", "+Control +Alt +Shift +F2 -F2 -Shift -Alt -Control", 0],
    ["also if that key came first", "+a +Control +Alt -a -Alt -Control", 0],
    ["Tab and Escape are the guest's", "+Tab -Tab +Shift +Tab -Tab -Shift +Escape -Escape", 0],
    ["twice is twice", "+Control +Alt +Shift -Shift -Alt -Control +Control +Alt +Shift -Shift -Alt -Control", 2],
])("%s", (_why, keys, times) => expect(typed(keys)).toBe(times));
