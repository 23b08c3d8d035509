import { describe, expect, it } from "vitest";
import { adviceFor, ApiError, messageOf } from "./errors";
import { workspaceOfPath } from "./session";

describe("errors", () => {
    it.each([0, 401, 403, 404, 409, 429, 500, 503, 422])("%i says what to do", status => {
        expect(adviceFor(status, 3)).toMatch(/\.$/);
    });

    it.each([
        [409, "AlreadyExists", 'workspaces "a" already exists', /another name/], [409, "Conflict", "the object has been modified", /changed it meanwhile/],
        [403, "Forbidden", "exceeded quota: small, requested: cpu=2", /quota/], [403, "Forbidden", 'User "a" cannot create resource', /role/],
        [410, "Expired", "too old resource version", /Reload/], [504, "Timeout", "timed out", /too long/], [404, "NotFound", "not found", /does not exist/],
    ])("%i %s: %s", (status, reason, message, advice) => {
        expect(new ApiError(status, message, reason).advice).toMatch(advice);
    });

    it.each([
        { name: "Kubernetes", body: { kind: "Status", message: "no", reason: "Forbidden" }, message: "no", reason: "Forbidden" },
        { name: "Backstage", body: { error: { name: "NotFoundError", message: "gone" } }, message: "gone", reason: "NotFoundError" },
        { name: "the scaffolder's form", body: { errors: [{ stack: "a is wrong" }, { message: "b" }] }, message: "a is wrong; b", reason: "" },
        { name: "text", body: "broken\n", message: "broken", reason: "" },
        { name: "nothing", body: undefined, message: "HTTP 500", reason: "" },
    ])("reads $name", ({ body, message, reason }) => {
        expect(messageOf(body, "HTTP 500")).toEqual({ message, reason });
    });
});

describe("the workspace of an address", () => {
    it.each([
        ["/w/root/home", "root"],
        ["/w/root:acme/catalog", "root:acme"],
        ["/w/root%3Aacme/", "root:acme"],
        ["/home", undefined],
        ["/w/../x", undefined],
        ["/w/%2e%2e%2f", undefined],
        ["/w/%zz", undefined],
    ])("%s", (path, expected) => {
        expect(workspaceOfPath(path)).toBe(expected);
    });
});
