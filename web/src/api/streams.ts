// Whether what is on the screen is live: how many watches are interrupted, and whether the session is over. The shell's banner shows it.

import { useSyncExternalStore } from "react";

export interface StreamState {
    /** Watches that are interrupted at the moment. */
    lost: number;
    /** When the first of them was interrupted. */
    since?: number;
    signedOut: boolean;
}

let state: StreamState = { lost: 0, signedOut: false };
const lost = new Set<object>();
const listeners = new Set<() => void>();

function publish(next: StreamState): void {
    state = next;
    listeners.forEach(listener => listener());
}

/** A watch tells that it is interrupted, or live again (or not needed any more). */
export function noteStream(watch: object, isLost: boolean): void {
    const had = lost.has(watch);
    if (isLost === had) return;
    if (isLost) lost.add(watch);
    else lost.delete(watch);
    publish({ ...state, lost: lost.size, since: lost.size === 0 ? undefined : (state.since ?? Date.now()) });
}

export function noteSignedOut(): void {
    if (!state.signedOut) publish({ ...state, signedOut: true });
}

function subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

export function useStreamState(): StreamState {
    return useSyncExternalStore(subscribe, () => state, () => state);
}
