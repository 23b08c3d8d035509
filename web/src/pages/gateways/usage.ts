// How far limits are used up: counters as the gateway names them, and the policies that they belong to.

import type { PlanPolicy, RateLimitPolicy } from "../../api/kinds";
import type { Counter } from "../../api/rest/gateway";


/** What a counter's key says: `WORKSPACE|NAMESPACE/ROUTE|LIMIT|SECONDS`, and `|LENGTH:VALUE` for each value that is counted apart. */
export interface Key { route: string; limit: string; seconds: number; values: string[] }

/** Of a longer value the gateway keeps this many bytes, and its whole length. */
const MOST_BYTES = 256;

export function readKey(key: string): Key | undefined {
    const found = /^[^|]*\|([^|]*)\|([^|]*)\|(\d+)/.exec(key);
    if (!found) return undefined;
    const [head, route = "", limit = "", seconds = ""] = found;
    const values: string[] = [];
    // Lengths are of bytes, and a value may hold anything.
    let rest = new TextEncoder().encode(key.slice(head.length));
    const decoder = new TextDecoder();
    while (rest.length > 0) {
        const length = /^\|(\d+):/.exec(decoder.decode(rest.slice(0, 24)));
        if (!length) return undefined;
        const from = length[0].length;
        const whole = Number(length[1]);
        let to = Math.min(from + Math.min(whole, MOST_BYTES), rest.length);
        // One that was cut off ends with a whole character.
        while (whole > MOST_BYTES && to < rest.length && rest[to] !== 0x7c && to > from) to -= 1;
        values.push(decoder.decode(rest.slice(from, to)) + (whole > MOST_BYTES ? "…" : ""));
        rest = rest.slice(to);
    }
    return { route, limit, seconds: Number(seconds), values };
}

const UNITS: Record<string, number> = { h: 3600, m: 60, s: 1, ms: 0.001 };

/** Seconds of a duration such as `1h30m`. */
export function secondsOf(window: string): number {
    let sum = 0;
    for (const [, count, unit] of window.matchAll(/(\d+)(ms|h|m|s)/g)) sum += Number(count) * (UNITS[unit ?? ""] ?? 0);
    return Math.floor(sum);
}

/** What the gateway calls a limit of a policy: upstream's name for it. */
export async function identifierOf(namespace: string, policy: string, limit: string): Promise<string> {
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`${namespace}/${policy}/${limit}`));
    const hash = [...new Uint8Array(digest).slice(0, 4)].map(byte => byte.toString(16).padStart(2, "0")).join("");
    return `limit.${[...limit].map(sign => (/[\p{Alphabetic}\p{N}_]/u.test(sign) ? sign : "_")).join("")}__${hash}`;
}

type Limit = NonNullable<NonNullable<RateLimitPolicy["spec"]>["limits"]>[string];
type Rate = NonNullable<Limit["rates"]>[number];
export interface Known { namespace: string; policy: string; limit: string; isPlan: boolean; rates: Rate[]; counters: string[] }

/** All limits of policies, by the name that the gateway has for them. */
export async function known(policies: readonly RateLimitPolicy[]): Promise<Map<string, Known>> {
    const found = new Map<string, Known>();
    for (const policy of policies) {
        const { namespace = "", name = "", ownerReferences } = policy.metadata ?? {};
        const isPlan = ownerReferences?.some(it => it.kind === "PlanPolicy") ?? false;
        const all = [policy.spec?.limits, policy.spec?.defaults?.limits, policy.spec?.overrides?.limits];
        for (const limits of all) {
            for (const [limit, spec] of Object.entries(limits ?? {})) {
                const one = { namespace, policy: name, limit, isPlan, rates: spec.rates ?? [], counters: (spec.counters ?? []).map(it => it.expression) };
                found.set(await identifierOf(namespace, name, limit), one);
            }
        }
    }
    return found;
}

export interface Used { key: string; namespace: string; policy: string; limit: string; isPlan: boolean; route: string; consumer: string; most?: number; seconds: number; used: number; reset?: number }

/** Counters as rows, the most used up first; a key that says nothing is shown as it is. */
export function usedUp(counters: readonly Counter[], limits: Map<string, Known>): Used[] {
    const rows = counters.map(counter => {
        const key = readKey(counter.key);
        const limit = key && limits.get(key.limit);
        // Rates of one window have one counter: the smallest is used up first.
        const most = limit?.rates.filter(rate => secondsOf(rate.window) === key?.seconds).map(rate => rate.limit).sort((a, b) => a - b)[0];
        const consumer = (key?.values ?? []).map((value, at) => [limit?.counters[at], value].filter(Boolean).join(" = ")).join(", ");
        return {
            key: counter.key, namespace: limit?.namespace ?? "", policy: limit?.policy ?? "", limit: limit?.limit ?? key?.limit ?? counter.key, isPlan: limit?.isPlan ?? false, route: key?.route ?? "",
            consumer, most, seconds: key?.seconds ?? 0, used: counter.count, reset: counter.reset,
        };
    });
    const share = (row: Used): number => (row.most ? row.used / row.most : -1);
    return rows.sort((a, b) => share(b) - share(a) || a.key.localeCompare(b.key));
}

export type Plan = NonNullable<PlanPolicy["spec"]>["plans"][number];
export type Window = "daily" | "weekly" | "monthly" | "yearly";
export const WINDOWS: Window[] = ["daily", "weekly", "monthly", "yearly"];

export const isWindow = (word: string): word is Window => (WINDOWS as string[]).includes(word);

/** What a plan grants: how many, and in which time. */
export function grants(plan: Plan): { limit: number; window: string }[] {
    const limits = plan.limits ?? {};
    return [
        ...WINDOWS.flatMap(window => { const limit = limits[window]; return limit === undefined ? [] : [{ limit, window }]; }),
        ...(limits.custom ?? []).map(({ limit, window }) => ({ limit, window })),
    ];
}
