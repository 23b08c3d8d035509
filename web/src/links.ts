// Which page of the portal an object has, by its kind or by its path in the API.

import { ownerOf } from "./pages/repositories/gitea";

interface Home { group: string; kind: string; plural: string; at: string }

const under = (at: string, group: string, kinds: [string, string][]): Home[] => kinds.map(([kind, plural]) => ({ group, kind, plural, at: at.replace("*", plural) }));

/** Every kind that has a page. */
export const HOMES: readonly Home[] = [
    ...under("/applications", "argoproj.io", [["Application", "applications"]]),
    ...under("/machines", "kubevirt.io", [["VirtualMachine", "virtualmachines"], ["VirtualMachineInstance", "virtualmachineinstances"]]),
    ...under("/voyages", "fairway.dev", [["Voyage", "voyages"]]),
    ...under("/repositories", "fairway.dev", [["Repository", "repositories"]]),
    ...under("/gateways/*", "", [["Service", "services"]]),
    ...under("/gateways/*", "gateway.networking.k8s.io", [["Gateway", "gateways"], ["HTTPRoute", "httproutes"], ["GRPCRoute", "grpcroutes"], ["TLSRoute", "tlsroutes"], ["TCPRoute", "tcproutes"]]),
    ...under("/gateways/*", "route.openshift.io", [["Route", "routes"]]),
    ...under("/gateways/*", "kuadrant.io", [["AuthPolicy", "authpolicies"], ["RateLimitPolicy", "ratelimitpolicies"], ["TLSPolicy", "tlspolicies"], ["DNSPolicy", "dnspolicies"]]),
    ...under("/gateways/*", "extensions.kuadrant.io", [["PlanPolicy", "planpolicies"]]),
    ...under("/gateways/*", "devportal.kuadrant.io", [["APIProduct", "apiproducts"], ["APIKey", "apikeys"]]),
];

function page(home: Home, namespace: string | undefined, name: string): string {
    // Repositories have no namespace; their owner stands for the workspace.
    const within = home.kind === "Repository" ? ownerOf() : (namespace ?? "");
    return `${home.at}/${encodeURIComponent(within)}/${encodeURIComponent(name)}`;
}

/** The page of an object, if its kind has one. Without a group every group will do. */
export function pageOf(object: { group?: string; kind: string; namespace?: string; name: string }, isExact = true): string | undefined {
    const home = HOMES.find(it => it.kind === object.kind && (!isExact || it.group === (object.group ?? "")));
    return home && page(home, object.namespace, object.name);
}

/** The page of an object by the word for its kind in paths of the API; what is done to it there may be of a group of its own. */
export function pageAt(object: { group: string; plural: string; namespace?: string; name: string }): string | undefined {
    const home = HOMES.find(it => it.plural === object.plural && it.group === object.group.replace(/^subresources\./, ""));
    return home && page(home, object.namespace, object.name);
}

export interface Thing { kind: string; namespace?: string; name: string; to: string }

/** What is at a path of the API, if that has a page. */
export function thingAt(path: string): Thing | undefined {
    const [, group = "", namespace, plural, name] = /^\/(?:api|apis\/([^/]+))\/[^/]+\/(?:namespaces\/([^/]+)\/)?([^/]+)\/([^/]+)$/.exec(path) ?? [];
    const home = HOMES.find(it => it.plural === plural && it.group === group);
    if (!home || name === undefined) return undefined;
    return { kind: home.kind, namespace, name, to: page(home, namespace, name) };
}
