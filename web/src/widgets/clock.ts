// The time that ages on a page are counted from: one clock for all of them, which runs as long as somebody looks at it.

export const TICK_MS = 5000;

export class Clock {
    private time: number;
    private readonly listeners = new Set<() => void>();
    private timer: ReturnType<typeof setInterval> | undefined;

    constructor(private readonly read: () => number = Date.now) {
        this.time = read();
    }

    readonly subscribe = (listener: () => void): (() => void) => {
        this.listeners.add(listener);
        if (this.timer === undefined) {
            this.time = this.read();
            this.timer = setInterval(this.tick, TICK_MS);
        }
        return () => {
            this.listeners.delete(listener);
            if (this.listeners.size > 0) return;
            clearInterval(this.timer);
            this.timer = undefined;
        };
    };

    /** The same between two ticks. One that has stood still is set first: who comes back would see ages of when the last one left. */
    readonly now = (): number => {
        if (this.timer === undefined && this.read() - this.time >= TICK_MS) this.time = this.read();
        return this.time;
    };

    private readonly tick = (): void => {
        this.time = this.read();
        this.listeners.forEach(one => one());
    };
}
