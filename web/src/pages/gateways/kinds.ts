// Kinds of gateways that only these pages use, and what kinds have in common, in the words of their OpenAPI schemas.

import type { APIKey, APIProduct, AuthPolicy, GatewayObject, HTTPRoute, KubernetesObject, PlanPolicy, RateLimitPolicy, Resource, RouteObject, Service } from "../../api";
import type { components as Gateway } from "../../api/generated/gateway";
import type { components as Kuadrant } from "../../api/generated/kuadrant";
import type { components as Tcp } from "../../api/generated/tcproute";
import type { components as Tls } from "../../api/generated/tlsroute";
import type { Condition } from "../../widgets/Conditions";

export type GRPCRoute = Gateway["schemas"]["io.k8s.networking.gateway.v1.GRPCRoute"];
export type TLSRoute = Tls["schemas"]["io.k8s.networking.gateway.v1alpha3.TLSRoute"];
export type TCPRoute = Tcp["schemas"]["io.k8s.networking.gateway.v1alpha2.TCPRoute"];
export type TLSPolicy = Kuadrant["schemas"]["io.kuadrant.v1.TLSPolicy"];
/** Its schema leaves the status open; it says what that of a TLSPolicy does. */
export type DNSPolicy = Omit<Kuadrant["schemas"]["io.kuadrant.v1.DNSPolicy"], "status"> & Pick<TLSPolicy, "status">;

/** Routes that hang on Gateways. */
export type Attached = HTTPRoute | GRPCRoute | TLSRoute | TCPRoute;
export type Policy = AuthPolicy | RateLimitPolicy | PlanPolicy | TLSPolicy | DNSPolicy;
/** Everything that has a page here. */
export type Shown = GatewayObject | Attached | RouteObject | Policy | APIProduct | APIKey | Service;

type Has<T, K extends keyof T> = NonNullable<T[K]>;
/** What refers to another object, in a route or in a policy. */
export type Ref = Partial<Pick<Has<Has<HTTPRoute, "spec">, "parentRefs">[number], "kind" | "namespace" | "name" | "sectionName">>;
/** Who says conditions: the object itself, parents of a route, routers, listeners. */
export interface Status {
    conditions?: readonly Condition[];
    parents?: readonly (Partial<Pick<Has<HTTPRoute, "status">["parents"][number], "parentRef">> & Pick<Status, "conditions">)[];
    ingress?: readonly (Pick<Has<Has<RouteObject, "status">, "ingress">[number], "routerName" | "host"> & Pick<Status, "conditions">)[];
    listeners?: readonly (Pick<Has<Has<GatewayObject, "status">, "listeners">[number], "name"> & Pick<Status, "conditions">)[];
}

function kind<T extends KubernetesObject>(group: string, version: string, name: string, plural: string): Resource<T> {
    return { group, version, plural, kind: name, namespaced: true };
}

export const GRPC_ROUTES = kind<GRPCRoute>("gateway.networking.k8s.io", "v1", "GRPCRoute", "grpcroutes");
export const TLS_ROUTES = kind<TLSRoute>("gateway.networking.k8s.io", "v1alpha3", "TLSRoute", "tlsroutes");
export const TCP_ROUTES = kind<TCPRoute>("gateway.networking.k8s.io", "v1alpha2", "TCPRoute", "tcproutes");
export const TLS_POLICIES = kind<TLSPolicy>("kuadrant.io", "v1", "TLSPolicy", "tlspolicies");
export const DNS_POLICIES = kind<DNSPolicy>("kuadrant.io", "v1", "DNSPolicy", "dnspolicies");

/** They have pages like the others. */
export const MORE = [GRPC_ROUTES, TLS_ROUTES, TCP_ROUTES, TLS_POLICIES, DNS_POLICIES];
