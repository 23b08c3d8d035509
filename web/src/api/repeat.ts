// Asks again and again, as long as somebody looks: for what has no watch.

/** How often what has no watch is read again. */
export const LIVE_MS = 5000;
/** After failures it is asked this many times more rarely at most. */
const MOST_PATIENCE = 16;

/** Asks once, and again some time after each answer. Whoever fails is asked more and more rarely, so that a server in need is left alone. */
export async function repeat(once: () => Promise<boolean>, everyMs: number | undefined, signal: AbortSignal, wait: typeof pause = pause): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
        failures = (await once()) ? 0 : failures + 1;
        if (everyMs === undefined) return;
        await wait(everyMs * Math.min(2 ** failures, MOST_PATIENCE), signal);
    }
}

/** Waits, and longer as long as nobody looks at the page. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
        let isOver = false;
        const look = (): void => {
            if (!signal.aborted && (!isOver || document.visibilityState !== "visible")) return;
            clearTimeout(timer);
            document.removeEventListener("visibilitychange", look);
            signal.removeEventListener("abort", look);
            resolve();
        };
        const timer = setTimeout(() => {
            isOver = true;
            look();
        }, ms);
        document.addEventListener("visibilitychange", look);
        signal.addEventListener("abort", look);
    });
}
