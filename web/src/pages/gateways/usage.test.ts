import { describe, expect, it } from "vitest";
import type { RateLimitPolicy } from "../../api";
import { grants, identifierOf, known, readKey, secondsOf, usedUp } from "./usage";

describe("a counter's key", () => {
    it.each([
        ["root|shop/web|limit.free__0a|86400", { route: "shop/web", limit: "limit.free__0a", seconds: 86400, values: [] }],
        ["root:a|shop/web|limit.l__0a|60|5:alice|3:b|c", { route: "shop/web", limit: "limit.l__0a", seconds: 60, values: ["alice", "b|c"] }],
        ["r|s/w|l|60|0:|5:żółw", undefined],
        ["r|s/w|l|60|0:|7:żółw|1:x", { route: "s/w", limit: "l", seconds: 60, values: ["", "żółw", "x"] }],
        [`r|s/w|l|60|300:${"x".repeat(256)}|1:y`, { route: "s/w", limit: "l", seconds: 60, values: [`${"x".repeat(256)}…`, "y"] }],
        ["something else", undefined],
    ])("%s", (key, expected) => {
        expect(readKey(key)).toEqual(expected);
    });
});

it.each([["24h", 86400], ["1h30m", 5400], ["10s500ms", 10], ["", 0]])("%s is %d s", (window, seconds) => {
    expect(secondsOf(window)).toBe(seconds);
});

it("a limit has the gateway's name", async () => {
    // As `printf shop/plans/free | sha256sum` begins.
    expect(await identifierOf("shop", "plans", "free")).toBe("limit.free__9d0566ac");
    expect(await identifierOf("shop", "plans", "a b/ż")).toMatch(/^limit\.a_b_ż__[0-9a-f]{8}$/);
});

it("counters are told with their plan, who used them, and how much there is", async () => {
    const policy = (name: string, spec: unknown, owner?: string): RateLimitPolicy => ({ metadata: { namespace: "shop", name, ownerReferences: owner ? [{ kind: owner }] : undefined }, spec }) as unknown as RateLimitPolicy;
    const limits = await known([
        policy("plans", { limits: { free: { rates: [{ limit: 50, window: "24h" }, { limit: 10, window: "24h" }, { limit: 100, window: "730h" }] } } }, "PlanPolicy"),
        policy("mine", { defaults: { limits: { l: { rates: [{ limit: 4, window: "1m" }], counters: [{ expression: "auth.identity.userid" }] } } } }),
    ]);
    const [free, mine] = [await identifierOf("shop", "plans", "free"), await identifierOf("shop", "mine", "l")];
    const rows = usedUp([
        { key: `root|shop/web|${free}|86400`, count: 5, reset: 60 }, { key: `root|shop/web|${mine}|60|5:alice`, count: 3 }, { key: "root|shop/web|limit.gone__00|60", count: 7 }, { key: "other", count: 1 },
    ], limits);
    expect(rows.map(it => [it.policy, it.limit, it.isPlan, it.consumer, it.used, it.most, it.reset])).toEqual([
        ["mine", "l", false, "auth.identity.userid = alice", 3, 4, undefined],
        ["plans", "free", true, "", 5, 10, 60],
        ["", "other", false, "", 1, undefined, undefined],
        ["", "limit.gone__00", false, "", 7, undefined, undefined],
    ]);
});

it("a plan grants what its limits say", () => {
    expect(grants({ tier: "a", predicate: "true", limits: { monthly: 100, daily: 0, custom: [{ limit: 5, window: "1m" }] } })).toEqual([{ limit: 0, window: "daily" }, { limit: 100, window: "monthly" }, { limit: 5, window: "1m" }]);
    expect(grants({ tier: "a", predicate: "true" })).toEqual([]);
});
