// Every request of the portal goes through here: CSRF header, workspace header, JSON, errors that say what to do.

import { ApiError, messageOf } from "./errors";
import { session, workspace } from "./session";
import { noteSignedOut } from "./streams";

export interface Options {
    method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
    /** Sent as JSON. */
    body?: unknown;
    contentType?: string;
    query?: Record<string, string | number | boolean | undefined>;
    headers?: Record<string, string>;
    signal?: AbortSignal;
}

export function withQuery(path: string, query: Options["query"]): string {
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries(query ?? {})) {
        if (value !== undefined && value !== "") search.set(key, String(value));
    }
    const text = search.toString();
    if (!text) return path;
    return path + (path.includes("?") ? "&" : "?") + text;
}

/** The answer to a request, if it is a good one. */
export async function request(path: string, options: Options = {}): Promise<Response> {
    const method = options.method ?? "GET";
    const headers: Record<string, string> = { Accept: "application/json", "X-Fairway-Workspace": workspace(), ...options.headers };
    if (method !== "GET") headers["X-Fairway-CSRF"] = session().csrf;
    if (options.body !== undefined) headers["Content-Type"] = options.contentType ?? "application/json";
    let answer: Response;
    try {
        answer = await fetch(withQuery(path, options.query), {
            method,
            headers,
            body: options.body === undefined ? undefined : JSON.stringify(options.body),
            signal: options.signal,
            credentials: "same-origin",
        });
    } catch (thrown) {
        if (options.signal?.aborted) throw thrown;
        throw new ApiError(0, thrown instanceof Error ? thrown.message : String(thrown));
    }
    if (answer.ok) return answer;
    throw await failure(answer);
}

export async function failure(answer: Response): Promise<ApiError> {
    const text = await answer.text().catch(() => "");
    let body: unknown = text;
    try {
        body = JSON.parse(text);
    } catch {
        // A proxy or a crash answers with text; it is shown as it is.
    }
    const { message, reason } = messageOf(body, answer.statusText || `HTTP ${answer.status}`);
    if (answer.status === 401) noteSignedOut();
    return new ApiError(answer.status, message, reason, Number(answer.headers.get("Retry-After")) || 0, body);
}

/** The JSON of an answer. */
export async function json<T>(path: string, options: Options = {}): Promise<T> {
    const answer = await request(path, options);
    if (answer.status === 204) return undefined as T;
    const text = await answer.text();
    if (!text) return undefined as T;
    try {
        return JSON.parse(text) as T;
    } catch {
        throw new ApiError(-1, `the answer to ${path} is not JSON`);
    }
}
