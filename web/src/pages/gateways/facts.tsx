// What of an object of each kind is worth telling, in the kind's own fields.

import type { ReactNode } from "react";
import { Link } from "react-router";
import type { APIKey, APIProduct, GatewayObject, HTTPRoute, RouteObject } from "../../api";
import { t } from "../../text/gateways";
import type { Attached, GRPCRoute, Policy, Ref, Shown, TLSRoute } from "./kinds";
import { PAGES, pathOf } from "./model";

export type Fact = [string, ReactNode];

/** A link to what is meant, if that has a page. */
function To(props: { of: Ref; within: Shown; kind?: string }): ReactNode {
    const kind = props.of.kind ?? props.kind ?? "";
    const namespace = props.of.namespace ?? props.within.metadata?.namespace;
    const text = [kind, `${namespace}/${props.of.name}`, props.of.sectionName].filter(Boolean).join(" ");
    return Object.values(PAGES).includes(kind) ? <Link to={pathOf(kind, namespace, props.of.name)}>{text}</Link> : text;
}

function several(refs: readonly Ref[], within: Shown, kind: string): ReactNode {
    if (refs.length === 0) return undefined;
    return <span className="fw-row-gap">{refs.map((it, at) => <To key={at} of={it} within={within} kind={kind} />)}</span>;
}

const gateway = ({ spec, status }: GatewayObject): Fact[] => [
    [t("className"), spec?.gatewayClassName],
    [t("address"), status?.addresses?.map(it => it.value).join(", ")],
    [t("listeners"), spec?.listeners?.map(it => `${it.name} ${it.protocol} ${it.port} ${it.hostname ?? "*"}`).join("; ")],
];

function attached(route: Attached): Fact[] {
    const backends: Ref[] = (route.spec?.rules ?? []).flatMap(it => it.backendRefs ?? []);
    const different = new Map(backends.map(it => [`${it.kind} ${it.namespace}/${it.name}`, it]));
    return [[t("parents"), several(route.spec?.parentRefs ?? [], route, "Gateway")], [t("backendsOf"), several([...different.values()], route, "Service")]];
}

const named = (route: HTTPRoute | GRPCRoute | TLSRoute): Fact[] => [[t("hosts"), route.spec?.hostnames?.join(", ")], ...attached(route)];

const openShiftRoute = (route: RouteObject): Fact[] => [[t("hosts"), route.spec.host], [t("target"), <To key="to" of={route.spec.to} within={route} kind="Service" />]];

const policy = (it: Policy | APIProduct): Fact[] => [[t("target"), it.spec?.targetRef && <To key="to" of={it.spec.targetRef} within={it} />]];

const product = (it: APIProduct): Fact[] => [...policy(it), [t("approvalMode"), it.spec?.approvalMode], [t("published"), it.spec?.publishStatus]];

const key = (it: APIKey): Fact[] => [
    [t("product"), it.spec?.apiProductRef && <To key="to" of={it.spec.apiProductRef} within={it} kind="APIProduct" />],
    [t("plan"), it.spec?.planTier], [t("useCase"), it.spec?.useCase], [t("requestedBy"), it.spec?.requestedBy.userId],
];

/** By kind; each is given objects of its kind alone. */
const OF: Record<string, (object: never) => Fact[]> = {
    Gateway: gateway, HTTPRoute: named, GRPCRoute: named, TLSRoute: named, TCPRoute: attached, Route: openShiftRoute,
    AuthPolicy: policy, RateLimitPolicy: policy, PlanPolicy: policy, TLSPolicy: policy, DNSPolicy: policy, APIProduct: product, APIKey: key,
};

/** What there is to tell; what an object does not say is left out. */
export function factsOf(kind: string, object: Shown): Fact[] {
    return (OF[kind]?.(object as never) ?? []).filter(([, what]) => what !== undefined && what !== "");
}
