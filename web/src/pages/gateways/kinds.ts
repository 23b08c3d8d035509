// Kinds of gateways that only these pages use. Routes and policies are alike enough to be shown by what they have in common.

import type { KubernetesObject, Resource } from "../../api";
import type { Status } from "./model";

export interface Attached extends KubernetesObject {
    spec?: { hostnames?: string[]; parentRefs?: { kind?: string; namespace?: string; name?: string; sectionName?: string }[]; targetRef?: { kind?: string; namespace?: string; name?: string; sectionName?: string } };
    status?: Status;
}

const of = (group: string, version: string, kind: string, plural: string): Resource<Attached> => ({ group, version, plural, kind, namespaced: true });

export const GRPC_ROUTES = of("gateway.networking.k8s.io", "v1", "GRPCRoute", "grpcroutes");
export const TLS_ROUTES = of("gateway.networking.k8s.io", "v1alpha3", "TLSRoute", "tlsroutes");
export const TCP_ROUTES = of("gateway.networking.k8s.io", "v1alpha2", "TCPRoute", "tcproutes");
export const TLS_POLICIES = of("kuadrant.io", "v1", "TLSPolicy", "tlspolicies");
export const DNS_POLICIES = of("kuadrant.io", "v1", "DNSPolicy", "dnspolicies");

/** They have pages like the others. */
export const MORE = [GRPC_ROUTES, TLS_ROUTES, TCP_ROUTES, TLS_POLICIES, DNS_POLICIES];
