// What went wrong, in a form that tells the user what to do about it.

import { advice as t } from "../text/requests";

/** A request that failed. `message` is what the server said, `advice` what to do next. */
export class ApiError extends Error {
    readonly status: number;
    readonly reason: string;
    readonly retryAfter: number;
    /** The whole answer, where it was JSON. */
    readonly body: unknown;

    constructor(status: number, message: string, reason = "", retryAfter = 0, body: unknown = undefined) {
        super(message);
        this.name = "ApiError";
        this.status = status;
        this.reason = reason;
        this.retryAfter = retryAfter;
        this.body = body;
    }

    get advice(): string {
        return adviceFor(this.status, this.retryAfter, reasonOf(this));
    }
}

/** Several of the same that failed, each with its name. */
export class Refusals extends ApiError {
    readonly each: string[];

    constructor(all: { name: string; error: ApiError }[], tried: number) {
        super(all[0]?.error.status ?? -1, t("several", { n: all.length, all: tried }), all[0]?.error.reason, Math.max(0, ...all.map(one => one.error.retryAfter)));
        this.each = all.map(one => `${one.name}: ${one.error.message}`);
    }
}

/** The API's reason; that of a quota is Forbidden, and its message alone tells it from a right that is missing. */
function reasonOf({ reason, status, message }: ApiError): string {
    return status === 403 && message.includes("exceeded quota") ? "ExceededQuota" : reason;
}

/** The API's reasons that say more than their status. */
const BY_REASON = { AlreadyExists: "exists", ExceededQuota: "quota", Expired: "expired", Timeout: "late", ServerTimeout: "late" } as const;

export function adviceFor(status: number, retryAfter = 0, reason = ""): string {
    const known = reason in BY_REASON ? BY_REASON[reason as keyof typeof BY_REASON] : undefined;
    if (known) return t(known);
    if (status === 0) return t("silent");
    if (status === 401) return t("unauthorized");
    if (status === 403) return t("forbidden");
    if (status === 404 || status === 410) return t("notFound");
    if (status === 409) return t("conflict");
    if (status === 429) return t("tooMany", { seconds: Math.max(1, retryAfter) });
    if (status >= 500) return t("broken");
    if (status >= 400) return t("invalid");
    return t("unexpected");
}

/** Any thrown value as an ApiError. */
export function asApiError(thrown: unknown): ApiError {
    if (thrown instanceof ApiError) return thrown;
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return new ApiError(thrown instanceof TypeError ? 0 : -1, message);
}

/** The message in an answer's body: a Kubernetes Status, Backstage's error, Gitea's message, or text. */
export function messageOf(body: unknown, fallback: string): { message: string; reason: string } {
    if (typeof body === "string" && body.trim()) return { message: body.trim().slice(0, 2000), reason: "" };
    if (body && typeof body === "object") {
        const it = body as Record<string, unknown>;
        if (typeof it.message === "string" && it.message) {
            return { message: it.message, reason: typeof it.reason === "string" ? it.reason : "" };
        }
        const error = it.error;
        if (typeof error === "string" && error) return { message: error, reason: "" };
        if (error && typeof error === "object") {
            const inner = error as Record<string, unknown>;
            return { message: String(inner.message ?? fallback), reason: String(inner.name ?? "") };
        }
        if (Array.isArray(it.errors)) {
            const all = it.errors.map(one => String((one as Record<string, unknown>)?.stack ?? (one as Record<string, unknown>)?.message ?? one));
            return { message: all.join("; ").slice(0, 2000), reason: "" };
        }
    }
    return { message: fallback, reason: "" };
}
