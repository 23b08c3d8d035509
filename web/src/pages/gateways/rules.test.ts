import { describe, expect, it } from "vitest";
import { conditionText, rulesTold } from "./rules";

const lines = (kind: string, spec: unknown): string[][] | undefined => rulesTold(kind, { spec })?.lines;

describe("what a policy says", () => {
    it("tiers, with what they grant and whose they are", () => {
        expect(lines("PlanPolicy", { plans: [{ tier: "gold", predicate: "auth.gold", limits: { daily: 10, custom: [{ limit: 5, window: "1m" }] } }, { tier: "free", predicate: "true" }] })).toEqual([
            ["gold", "10 a day, 5 in 1m", "auth.gold"], ["free", "without limit", "true"],
        ]);
    });
    it("limits, also of defaults and overrides", () => {
        const limit = { rates: [{ limit: 5, window: "10s" }, { limit: 9, window: "1m" }], counters: [{ expression: "auth.identity.userid" }], when: [{ predicate: "request.path == '/'" }] };
        expect(lines("RateLimitPolicy", { limits: { each: limit }, overrides: { limits: { all: { rates: [{ limit: 1, window: "1s" }] } } } })).toEqual([
            ["each", "5 in 10s, 9 in 1m", "auth.identity.userid", "request.path == '/'"], ["overrides: all", "1 in 1s", "everybody together", ""],
        ]);
    });
    it("the steps of letting somebody through, in the order in which they are gone", () => {
        const rules = {
            authorization: { admins: { opa: { rego: "x" }, when: [{ selector: "request.method", operator: "eq", value: "POST" }] } },
            authentication: { keys: { apiKey: { selector: {} }, credentials: { queryString: {} }, priority: 1 } },
            response: { success: { headers: { who: { plain: { value: "x" }, key: "X-Who" } } } },
        };
        expect(lines("AuthPolicy", { rules, defaults: { rules: { authentication: { nobody: { anonymous: {} } } } } })).toEqual([
            ["authentication", "keys", "apiKey", ""], ["authorization", "admins", "opa", "request.method eq POST"], ["response", "who", "plain", ""], ["defaults: authentication", "nobody", "anonymous", ""],
        ]);
    });
    it.each([["AuthPolicy", undefined], ["RateLimitPolicy", {}], ["PlanPolicy", undefined]])("%s that says %j says nothing", (kind, spec) => expect(lines(kind, spec)).toEqual([]));
    it("of other kinds there is none", () => expect(rulesTold("TLSPolicy", {})).toBeUndefined());
});

it.each([
    [{ predicate: "a == 1" }, "a == 1"], [{ patternRef: "admins" }, "admins"], [{ selector: "a.b", operator: "neq", value: 0 }, "a.b neq 0"], [{ any: [{ predicate: "x" }] }, '{"any":[{"predicate":"x"}]}'],
])("the condition %j reads %s", (condition, text) => expect(conditionText(condition)).toBe(text));
