// Gateways and policies as the page shows them, without a page.

import type { EndpointSlice, Service } from "../../api/kinds";
import { sh } from "../../widgets/command";
import type { Condition } from "../../widgets/Conditions";
import type { Status } from "./kinds";

/** The word for how something stands, and why: the first of the conditions that is not true, else the last that is. */
export function standing(conditions: readonly Condition[] | undefined, wanted: string[]): { word: string; message: string; isGood: boolean } {
    const found = wanted.map(type => conditions?.find(it => it.type === type)).filter((it): it is Condition => it !== undefined);
    const bad = found.find(it => it.status !== "True");
    if (bad) return { word: bad.reason || `Not${bad.type}`, message: bad.message ?? "", isGood: false };
    const last = found.at(-1);
    return last ? { word: last.type ?? "", message: last.message ?? "", isGood: true } : { word: "Pending", message: "", isGood: false };
}

/** What was decided of a key, or of the request for one. */
export function decided(it: { status?: Pick<Status, "conditions"> }): string {
    return ["Approved", "Denied", "Rejected", "Failed", "Pending"].find(type => it.status?.conditions?.some(one => one.type === type && one.status === "True")) ?? "Pending";
}

/** `Name: value` lines as headers; what is not one is told. */
export function readHeaders(text: string): { headers: Record<string, string>; wrong?: string } {
    const headers: Record<string, string> = {};
    for (const line of text.split("\n")) {
        if (line.trim() === "") continue;
        const at = line.indexOf(":");
        const name = line.slice(0, at).trim();
        if (at <= 0 || !/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name)) return { headers, wrong: line };
        headers[name] = line.slice(at + 1).trim();
    }
    return { headers };
}

/** The same question in a terminal. */
export function explainCommand(method: string, url: string, headers: Record<string, string>): string {
    return [sh`fairway gateway explain ${method} ${url}`, ...Object.entries(headers).map(([name, value]) => sh`--header ${`${name}: ${value}`}`)].join(" ");
}

/** The kinds that have a page, by the word in its address. */
export const PAGES: Record<string, string> = {
    gateways: "Gateway", httproutes: "HTTPRoute", routes: "Route", authpolicies: "AuthPolicy", ratelimitpolicies: "RateLimitPolicy", planpolicies: "PlanPolicy", apiproducts: "APIProduct", apikeys: "APIKey", services: "Service",
    grpcroutes: "GRPCRoute", tlsroutes: "TLSRoute", tcproutes: "TCPRoute", tlspolicies: "TLSPolicy", dnspolicies: "DNSPolicy",
};

/** The page of an object. */
export function pathOf(kind: string, namespace: string | undefined, name: string | undefined): string {
    const plural = Object.entries(PAGES).find(([, it]) => it === kind)?.[0] ?? "";
    return `/gateways/${plural}/${encodeURIComponent(namespace ?? "")}/${encodeURIComponent(name ?? "")}`;
}

/** The label that a slice of endpoints names its Service in. */
export const SERVICE_NAME = "kubernetes.io/service-name";

export interface Endpoint { address: string; isReady: boolean; node?: string; target?: { kind: string; namespace?: string; name: string } }

/** What stands behind a Service, those that answer first. An endpoint that says nothing of itself is taken for ready, as the API has it. */
export function endpointsOf(slices: readonly EndpointSlice[]): Endpoint[] {
    const found = slices.flatMap(slice => (slice.endpoints ?? []).flatMap(one => one.addresses.map(address => ({
        address, isReady: one.conditions?.ready !== false, node: one.nodeName,
        target: one.targetRef?.kind && one.targetRef.name ? { kind: one.targetRef.kind, namespace: one.targetRef.namespace ?? slice.metadata?.namespace, name: one.targetRef.name } : undefined,
    }))));
    return found.sort((a, b) => Number(b.isReady) - Number(a.isReady) || a.address.localeCompare(b.address));
}

export function portsOf(service: Service): string {
    return (service.spec?.ports ?? []).map(it => [it.name, `${it.port}/${it.protocol ?? "TCP"}`, it.targetPort !== undefined && String(it.targetPort) !== String(it.port) && `→ ${it.targetPort}`].filter(Boolean).join(" ")).join(", ");
}

/** Namespaces of the system: nobody keeps something of his own there. */
export function isOfSystem(namespace: string): boolean {
    return /^(kube|fairway|openshift)-/.test(namespace);
}

/** All conditions of an object, by who says them: the object itself, each parent of a route, each router, each listener. */
export function conditionsOf(status: Status | undefined): { of: string; conditions: readonly Condition[] }[] {
    const groups = [
        { of: "", conditions: status?.conditions ?? [] },
        ...(status?.parents ?? []).map(it => ({ of: [it.parentRef?.namespace, it.parentRef?.name, it.parentRef?.sectionName].filter(Boolean).join("/"), conditions: it.conditions ?? [] })),
        ...(status?.ingress ?? []).map(it => ({ of: [it.routerName, it.host].filter(Boolean).join(" "), conditions: it.conditions ?? [] })),
        ...(status?.listeners ?? []).map(it => ({ of: it.name ?? "", conditions: it.conditions ?? [] })),
    ];
    return groups.filter(it => it.conditions.length > 0);
}
