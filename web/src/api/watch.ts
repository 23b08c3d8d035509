// One watch: list, then follow, for ever; a lost stream is tried again with growing pauses, and a history that was dropped is listed again.

import { ApiError, asApiError } from "./errors";
import type { KubernetesObject, Resource } from "./kinds";
import { collectionPath, COMPACT, type List, type Selection } from "./kubernetes";
import { request, withQuery, json } from "./request";
import { noteStream } from "./streams";
import { LineCutter, backoff, parseEvent, slim, type WatchEvent } from "./watchlines";

export interface Listener<T> {
    /** The whole list: at the beginning, and after history was lost. */
    onList(items: T[]): void;
    onEvent(type: "ADDED" | "MODIFIED" | "DELETED", object: T): void;
    /** Live, interrupted (with the reason), or refused for good. */
    onState(state: "live" | "lost" | "failed", error?: ApiError): void;
}

/** Asked anew this often, so that a dead connection is noticed. */
const WATCH_SECONDS = 290;
/** A watch sends bookmarks every minute or so; silence for longer means that the connection is dead. */
const SILENCE_MS = 330_000;

/** Objects in an answer. Large ones have ten kilobytes: with all of a thousand at once the tab would hold the text, its pieces and what is left out. */
const AT_ONCE = 250;

/** Answers that trying again does not change. */
function isFinal(error: ApiError): boolean {
    return error.status === 400 || error.status === 401 || error.status === 403 || error.status === 404 || error.status === 405;
}

export function watch<T extends KubernetesObject>(resource: Resource<T>, selection: Selection, listener: Listener<T>): () => void {
    const abort = new AbortController();
    const me = {};
    const path = collectionPath(resource, selection.namespace, selection.workspace);
    const bulk = selection.fieldSelector?.startsWith("metadata.name=") ? undefined : resource.bulk;
    const selectors = { labelSelector: selection.labelSelector, fieldSelector: selection.fieldSelector };

    async function listAll(): Promise<string> {
        const items: T[] = [];
        let next: string | undefined;
        let version: string;
        do {
            const page: List<T> = await json<List<T>>(path, { query: { ...COMPACT, ...selectors, limit: AT_ONCE, continue: next }, signal: abort.signal });
            for (const item of page.items) items.push(slim(item, bulk));
            version = page.metadata.resourceVersion ?? "";
            next = page.metadata.continue || undefined;
        } while (next);
        listener.onList(items);
        return version;
    }

    /** Follows from a version; returns the last one seen. Throws when the stream breaks. */
    async function follow(from: string, onAlive: () => void): Promise<string> {
        const query = { ...selectors, watch: true, allowWatchBookmarks: true, resourceVersion: from, timeoutSeconds: WATCH_SECONDS };
        const answer = await request(withQuery(path, query), { signal: abort.signal });
        onAlive();
        const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
        if (!reader) throw new ApiError(-1, "the watch has no body");
        const cutter = new LineCutter();
        let version = from;
        let silence: ReturnType<typeof setTimeout> | undefined;
        try {
            for (;;) {
                clearTimeout(silence);
                silence = setTimeout(() => void reader.cancel().catch(() => undefined), SILENCE_MS);
                const { done, value } = await reader.read();
                if (done) return version;
                for (const line of cutter.push(value)) version = take(parseEvent<T>(line), version);
            }
        } finally {
            clearTimeout(silence);
            void reader.cancel().catch(() => undefined);
        }
    }

    function take(event: WatchEvent<T>, version: string): string {
        if (event.type === "ERROR") throw new ApiError(event.object.code ?? 500, event.object.message ?? "", event.object.reason);
        const seen = event.object.metadata?.resourceVersion ?? version;
        if (event.type !== "BOOKMARK") listener.onEvent(event.type, slim(event.object, bulk));
        return seen;
    }

    async function run(): Promise<void> {
        let version = "";
        let attempt = 0;
        while (!abort.signal.aborted) {
            try {
                if (version === "") version = await listAll();
                const began = Date.now();
                version = await follow(version, () => {
                    noteStream(me, false);
                    listener.onState("live");
                });
                // A stream that ended at once is no better than one that broke.
                attempt = Date.now() - began > 5000 ? 0 : attempt + 1;
                if (attempt === 0) continue;
            } catch (thrown) {
                if (abort.signal.aborted) break;
                const error = asApiError(thrown);
                if (error.status === 410) {
                    version = "";
                    continue;
                }
                if (isFinal(error)) {
                    noteStream(me, false);
                    listener.onState("failed", error);
                    return;
                }
                noteStream(me, true);
                listener.onState("lost", error);
                attempt += 1;
                await pause(Math.max(backoff(attempt, Math.random()), error.retryAfter * 1000), abort.signal);
                continue;
            }
            await pause(backoff(attempt, Math.random()), abort.signal);
        }
    }

    void run();
    return () => {
        abort.abort();
        noteStream(me, false);
    };
}

/** Waits; a browser that comes back online, or a tab that is looked at again, does not wait. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
        const done = (): void => {
            clearTimeout(timer);
            window.removeEventListener("online", done);
            signal.removeEventListener("abort", done);
            resolve();
        };
        const timer = setTimeout(done, ms);
        window.addEventListener("online", done);
        signal.addEventListener("abort", done);
    });
}
