// How long ago something happened; counts on by itself. One clock serves all ages of a page.

import { useSyncExternalStore } from "react";
import { locale } from "../text/t";
import { shortAge } from "./age";

let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
    listeners.add(listener);
    timer ??= setInterval(() => {
        now = Date.now();
        listeners.forEach(one => one());
    }, 5000);
    return () => {
        listeners.delete(listener);
        if (listeners.size === 0) {
            clearInterval(timer);
            timer = undefined;
        }
    };
}

/** The time, every five seconds. */
export function useNow(): number {
    return useSyncExternalStore(subscribe, () => now, () => now);
}

export function Age({ of }: { of: string | undefined }) {
    const text = shortAge(of, Math.max(useNow(), of ? Date.parse(of) : 0));
    if (!of || !text) return null;
    return <time dateTime={of} title={new Date(of).toLocaleString(locale())}>{text}</time>;
}
