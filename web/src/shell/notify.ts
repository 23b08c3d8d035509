// What the user's own actions came to: shown for a moment, and kept in the drawer until the page is left.

import { useSyncExternalStore } from "react";

export interface Notification {
    id: number;
    variant: "success" | "danger" | "warning" | "info";
    title: string;
    body?: string;
    at: number;
}

const KEPT = 50;
let all: Notification[] = [];
let next = 1;
const listeners = new Set<() => void>();

export function notify(variant: Notification["variant"], title: string, body?: string): void {
    all = [{ id: next++, variant, title, body, at: Date.now() }, ...all].slice(0, KEPT);
    listeners.forEach(listener => listener());
}

function subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

export function useNotifications(): Notification[] {
    return useSyncExternalStore(subscribe, () => all, () => all);
}
