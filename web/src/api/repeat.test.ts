import { afterEach, describe, expect, it, vi } from "vitest";
import { pause, repeat } from "./repeat";

describe("what has no watch is asked again", () => {
    it.each([
        ["after each answer", [true, true, true], [10, 10, 10]],
        ["more rarely where it fails, up to a bound, and as before where it answers again", [false, false, false, false, false, true, false], [20, 40, 80, 160, 160, 10, 20]],
    ])("%s", async (_what, answers, expected) => {
        const [abort, waited] = [new AbortController(), [] as number[]];
        const left = [...answers];
        await repeat(() => Promise.resolve(left.shift() ?? true), 10, abort.signal, ms => {
            waited.push(ms);
            if (left.length === 0) abort.abort();
            return Promise.resolve();
        });
        expect(waited).toEqual(expected);
    });
    it("only once, if nobody said how often", async () => {
        const once = vi.fn(() => Promise.resolve(true));
        await repeat(once, undefined, new AbortController().signal);
        expect(once).toHaveBeenCalledTimes(1);
    });
});

describe("the pause", () => {
    afterEach(() => { vi.useRealTimers(); vi.unstubAllGlobals(); });
    it("lasts until the page is looked at, and ends with the page", async () => {
        vi.useFakeTimers();
        const page = Object.assign(new EventTarget(), { visibilityState: "hidden" });
        vi.stubGlobal("document", page);
        const ended = vi.fn();
        void pause(100, new AbortController().signal).then(ended);
        await vi.advanceTimersByTimeAsync(1000);
        expect(ended).not.toHaveBeenCalled();
        page.visibilityState = "visible";
        page.dispatchEvent(new Event("visibilitychange"));
        await vi.advanceTimersByTimeAsync(0);
        expect(ended).toHaveBeenCalledTimes(1);
        const abort = new AbortController();
        void pause(1_000_000, abort.signal).then(ended);
        abort.abort();
        await vi.advanceTimersByTimeAsync(0);
        expect(ended).toHaveBeenCalledTimes(2);
    });
});
