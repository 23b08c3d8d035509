// Live lists and objects, and one-time requests, for components.

import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { notify } from "../shell/notify";
import { type ApiError, asApiError } from "./errors";
import type { KubernetesObject, Resource } from "./kinds";
import type { Selection } from "./kubernetes";
import { repeat } from "./repeat";
import { storeOf, type Snapshot } from "./store";

/** All objects of a kind that the selection means, live. */
export function useList<T extends KubernetesObject>(resource: Resource<T>, selection: Selection = {}): Snapshot<T> {
    const { namespace, labelSelector, fieldSelector, workspace } = selection;
    const store = useMemo(
        () => storeOf(resource, { namespace, labelSelector, fieldSelector, workspace }),
        [resource, namespace, labelSelector, fieldSelector, workspace],
    );
    return useSyncExternalStore(store.subscribe, store.current, store.current);
}

export interface ObjectState<T> {
    object?: T;
    state: "loading" | "live" | "lost" | "failed" | "absent";
    error?: ApiError;
}

/** One object, live. `absent` when it does not exist (any more). */
export function useObject<T extends KubernetesObject>(resource: Resource<T>, namespace: string | undefined, name: string): ObjectState<T> {
    const found = useList(resource, { namespace, fieldSelector: `metadata.name=${name}` });
    const object = found.items[0];
    if (object) return { object, state: found.state === "loading" ? "live" : found.state, error: found.error };
    if (found.state === "live") return { state: "absent" };
    return { state: found.state, error: found.error };
}

export interface Asked<A> {
    answer?: A;
    error?: ApiError;
    isLoading: boolean;
    again: () => void;
}

/** The answer that is known already, if the new one is the same: nothing is drawn anew then, and nothing scrolls away. */
export function sameOr<A>(known: A | undefined, answer: A): A {
    return known !== undefined && JSON.stringify(known) === JSON.stringify(answer) ? known : answer;
}

/** The answer to a request that is made once, and again when `key` changes or `again` is called; with `everyMs` again and again, as long as the
 * page is looked at. If that fails, there is an error beside the answer that was there. */
export function useAnswer<A>(key: string, ask: (signal: AbortSignal) => Promise<A>, everyMs?: number): Asked<A> {
    const [turn, setTurn] = useState(0);
    const [state, setState] = useState<{ key: string; answer?: A; error?: ApiError }>({ key: "" });
    const whole = `${key}\n${turn}`;
    useEffect(() => {
        const abort = new AbortController();
        const known = (before: { key: string; answer?: A }): A | undefined => (before.key.startsWith(`${key}\n`) ? before.answer : undefined);
        const once = (): Promise<boolean> => ask(abort.signal).then(
            answer => {
                if (!abort.signal.aborted) setState(before => ({ key: whole, answer: everyMs === undefined ? answer : sameOr(known(before), answer) }));
                return true;
            },
            thrown => {
                if (!abort.signal.aborted) setState(before => ({ key: whole, answer: known(before), error: asApiError(thrown) }));
                return false;
            },
        );
        void repeat(once, everyMs, abort.signal);
        return () => abort.abort();
        // `ask` is a new function with every rendering; `key` says when the question is another.
        // eslint-disable-next-line react-hooks/exhaustive-deps
    }, [whole, everyMs]);
    const again = useCallback(() => setTurn(before => before + 1), []);
    const isCurrent = state.key === whole;
    const isSameQuestion = state.key.startsWith(`${key}\n`);
    return { answer: isSameQuestion ? state.answer : undefined, error: isCurrent ? state.error : undefined, isLoading: !isCurrent, again };
}

/** An action with its progress and error. What it came to is told when it is done, unless the page says it by itself. */
export function useAction<A extends unknown[]>(act: (...args: A) => Promise<unknown>, told?: string | ((...args: A) => string)): {
    run: (...args: A) => Promise<boolean>;
    isRunning: boolean;
    error?: ApiError;
    clear: () => void;
} {
    const [isRunning, setRunning] = useState(false);
    const [error, setError] = useState<ApiError>();
    const run = async (...args: A): Promise<boolean> => {
        setRunning(true);
        setError(undefined);
        try {
            await act(...args);
            if (told !== undefined) notify("success", typeof told === "string" ? told : told(...args));
            return true;
        } catch (thrown) {
            setError(asApiError(thrown));
            return false;
        } finally {
            setRunning(false);
        }
    };
    return { run, isRunning, error, clear: () => setError(undefined) };
}
