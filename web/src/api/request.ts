// Every request of the portal goes through here: CSRF header, workspace header, JSON, patience, errors that say what to do.

import { t } from "../text/requests";
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
    /** How long the server may say nothing. */
    patienceMs?: number;
}

/** What is read is there at once or not at all; what is done may take its time. */
export const PATIENCE_MS = { reading: 30_000, doing: 120_000 };

/** Ends a request whose server says nothing for too long: a page that waits for ever tells nobody what is wrong. */
class Patience {
    private readonly abort = new AbortController();
    private timer: ReturnType<typeof setTimeout> | undefined;
    isOver = false;

    constructor(private readonly ms: number, private readonly outer: AbortSignal | undefined) {
        if (outer?.aborted) this.end();
        outer?.addEventListener("abort", this.end);
        this.anew();
    }

    get signal(): AbortSignal {
        return this.abort.signal;
    }

    private readonly end = (): void => this.abort.abort();

    /** Something was heard. */
    anew(): void {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => {
            this.isOver = true;
            this.abort.abort();
        }, this.ms);
    }

    /** No longer waits for words of the server; whoever asked may still give up. */
    stop(): void {
        clearTimeout(this.timer);
    }

    done(): void {
        this.stop();
        this.outer?.removeEventListener("abort", this.end);
    }

    /** Why nothing came, for whoever asked; his own giving up is no error of the server. */
    explain(thrown: unknown, what: "noAnswer" | "stalled"): unknown {
        if (this.isOver) return new ApiError(0, t(what, { seconds: Math.round(this.ms / 1000) }));
        if (this.outer?.aborted || thrown instanceof ApiError) return thrown;
        return new ApiError(0, thrown instanceof Error ? thrown.message : String(thrown));
    }
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

function patienceOf(options: Options): Patience {
    const usual = (options.method ?? "GET") === "GET" ? PATIENCE_MS.reading : PATIENCE_MS.doing;
    return new Patience(options.patienceMs ?? usual, options.signal);
}

async function begin(path: string, options: Options, patience: Patience): Promise<Response> {
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
            signal: patience.signal,
            credentials: "same-origin",
        });
    } catch (thrown) {
        throw patience.explain(thrown, "noAnswer");
    }
    patience.anew();
    if (answer.ok) return answer;
    throw await failure(answer);
}

/** The answer to a request, if it is a good one. Its body may go on for ever: whoever reads it decides how long he waits. */
export async function request(path: string, options: Options = {}): Promise<Response> {
    const patience = patienceOf(options);
    try {
        return await begin(path, options, patience);
    } finally {
        patience.stop();
    }
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

/** The whole text of an answer, as long as it goes on coming. */
async function textOf(answer: Response, patience: Patience): Promise<string> {
    const reader = answer.body?.getReader();
    if (!reader) return answer.text();
    const decoder = new TextDecoder();
    const pieces: string[] = [];
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return pieces.join("") + decoder.decode();
        patience.anew();
        pieces.push(decoder.decode(value, { stream: true }));
    }
}

/** The JSON of an answer. */
export async function json<T>(path: string, options: Options = {}): Promise<T> {
    const patience = patienceOf(options);
    try {
        const answer = await begin(path, options, patience);
        if (answer.status === 204) return undefined as T;
        const text = await textOf(answer, patience).catch((thrown: unknown) => {
            throw patience.explain(thrown, "stalled");
        });
        if (!text) return undefined as T;
        try {
            return JSON.parse(text) as T;
        } catch {
            throw new ApiError(-1, t("notJson", { path }));
        }
    } finally {
        patience.done();
    }
}
