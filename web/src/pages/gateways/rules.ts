// What policies say, line by line: tiers of plans, limits, and the steps by which somebody is let through.

import type { AuthPolicy, PlanPolicy, RateLimitPolicy } from "../../api/kinds";
import { t } from "../../text/gateways";
import { grants, isWindow, type Plan } from "./usage";

/** What is told of a policy: the heads of its columns, and its lines. */
export interface Told { heads: string[]; lines: string[][] }

/** What a plan grants, in words. */
export function grantsText(plan: Plan): string {
    const limits = grants(plan).map(({ limit, window }) => (isWindow(window) ? t(window, { limit }) : t("inTime", { limit, time: window })));
    return limits.join(", ") || t("unlimited");
}

export function plansTold({ spec }: PlanPolicy): Told {
    return { heads: [t("tier"), t("limits"), t("whoseTier")], lines: (spec?.plans ?? []).map(plan => [plan.tier, grantsText(plan), plan.predicate]) };
}

interface Condition { predicate?: string; selector?: string; operator?: string; value?: unknown; patternRef?: string; all?: unknown; any?: unknown }

/** A condition as a line: an expression of CEL, or a pattern in its parts. */
export function conditionText(one: Condition): string {
    if (one.predicate) return one.predicate;
    if (one.patternRef) return one.patternRef;
    if (one.selector) return [one.selector, one.operator, one.value].filter(it => it !== undefined).join(" ");
    return JSON.stringify(one);
}

const whenText = (when: unknown): string => (Array.isArray(when) ? (when as Condition[]).map(conditionText).join("; ") : "");

/** The parts of a policy that have rules; those of defaults and overrides hold where the policy's target says nothing, or whatever it says. */
const PARTS = ["", "defaults", "overrides"] as const;
const partsOf = <T>(spec: (T & { defaults?: T; overrides?: T }) | undefined): [string, T | undefined][] => PARTS.map(part => [part, part === "" ? spec : spec?.[part]]);
const named = (part: string, name: string): string => (part === "" ? name : `${part}: ${name}`);

export function limitsTold({ spec }: RateLimitPolicy): Told {
    const lines = partsOf<Pick<NonNullable<RateLimitPolicy["spec"]>, "limits">>(spec).flatMap(([part, it]) => Object.entries(it?.limits ?? {}).map(([name, limit]) => [
        named(part, name), (limit.rates ?? []).map(rate => t("inTime", { limit: rate.limit, time: rate.window })).join(", "),
        (limit.counters ?? []).map(counter => counter.expression).join(", ") || t("allTogether"), whenText(limit.when),
    ]));
    return { heads: [t("limit"), t("rates"), t("countedBy"), t("onlyIf")], lines };
}

const PHASES = ["authentication", "metadata", "authorization", "response", "callbacks"] as const;
/** What a rule of any method may say beside it. */
const BESIDE = new Set(["when", "priority", "metrics", "cache", "credentials", "defaults", "overrides", "key"]);

const methodOf = (rule: Record<string, unknown>): string => Object.keys(rule).filter(key => !BESIDE.has(key)).join(", ");

type Rules = NonNullable<NonNullable<AuthPolicy["spec"]>["rules"]>;

/** What is answered with is said of each place that it is put in. */
function rulesIn(rules: Rules, phase: (typeof PHASES)[number]): [string, Record<string, unknown>][] {
    if (phase !== "response") return Object.entries(rules[phase] ?? {});
    return Object.values(rules.response?.success ?? {}).flatMap(place => Object.entries((place ?? {}) as Record<string, Record<string, unknown>>));
}

export function stepsTold({ spec }: AuthPolicy): Told {
    const lines = partsOf<{ rules?: Rules }>(spec).flatMap(([part, it]) => PHASES.flatMap(phase => rulesIn(it?.rules ?? {}, phase).map(([name, rule]) => [
        named(part, phase), name, methodOf(rule), whenText(rule.when),
    ])));
    return { heads: [t("phase"), t("name"), t("method"), t("onlyIf")], lines };
}

/** Nothing, if the kind has no rules of its own. */
export function rulesTold(kind: string, object: unknown): Told | undefined {
    if (kind === "PlanPolicy") return plansTold(object as PlanPolicy);
    if (kind === "RateLimitPolicy") return limitsTold(object as RateLimitPolicy);
    if (kind === "AuthPolicy") return stepsTold(object as AuthPolicy);
    return undefined;
}
