import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Clock, TICK_MS } from "./clock";

beforeEach(() => { vi.useFakeTimers({ now: 1_000_000 }); });
afterEach(() => { vi.useRealTimers(); });

it("ticks for those who listen, and for nobody else", () => {
    const clock = new Clock();
    const heard = vi.fn();
    const leave = clock.subscribe(heard);
    vi.advanceTimersByTime(2 * TICK_MS);
    expect(heard).toHaveBeenCalledTimes(2);
    expect(clock.now()).toBe(1_000_000 + 2 * TICK_MS);
    leave();
    expect(vi.getTimerCount()).toBe(0);
});

it("is right for who comes after it has stood still, before and after he listens", () => {
    const clock = new Clock();
    clock.subscribe(() => undefined)();
    vi.advanceTimersByTime(60_000);
    expect(clock.now()).toBe(1_060_000);
    vi.advanceTimersByTime(TICK_MS - 1);
    clock.subscribe(() => undefined);
    expect(clock.now()).toBe(1_060_000 + TICK_MS - 1);
});

it("says the same between two ticks, as whoever draws needs it", () => {
    const clock = new Clock();
    clock.subscribe(() => undefined);
    const before = clock.now();
    vi.advanceTimersByTime(TICK_MS - 1);
    expect(clock.now()).toBe(before);
});
