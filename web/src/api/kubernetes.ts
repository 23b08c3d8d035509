// The Kubernetes API as the portal uses it: get, list, create, apply, patch, delete, in the workspace of the page.

import type { KubernetesObject, Resource } from "./kinds";
import { json, type Options } from "./request";
import { workspace } from "./session";

export const FIELD_MANAGER = "fairway-portal";

export interface List<T> {
    metadata: { resourceVersion?: string; continue?: string };
    items: T[];
}

/** To whoever calls himself Mozilla the API answers with indented JSON: twice as large, written anew for each, and not compressed. */
export const COMPACT = { pretty: false };

export interface Selection {
    namespace?: string;
    labelSelector?: string;
    fieldSelector?: string;
    /** Another workspace than that of the page. */
    workspace?: string;
}

/** Where the API of a workspace begins. */
export function clusterPath(place: string = workspace()): string {
    return `/k8s/clusters/${place}`;
}

function groupPath(resource: Resource): string {
    return resource.group === "" ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
}

/** The path of a kind's objects. Without a namespace: of all namespaces. */
export function collectionPath(resource: Resource, namespace?: string, place?: string): string {
    const within = resource.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
    return `${clusterPath(place)}${groupPath(resource)}${within}/${resource.plural}`;
}

export function objectPath(resource: Resource, namespace: string | undefined, name: string, place?: string): string {
    return `${collectionPath(resource, namespace, place)}/${encodeURIComponent(name)}`;
}

export function get<T extends KubernetesObject>(resource: Resource<T>, namespace: string | undefined, name: string, options?: Options): Promise<T> {
    return json<T>(objectPath(resource, namespace, name), options);
}

export function list<T extends KubernetesObject>(resource: Resource<T>, selection: Selection = {}, options?: Options): Promise<List<T>> {
    const { namespace, labelSelector, fieldSelector } = selection;
    return json<List<T>>(collectionPath(resource, namespace, selection.workspace), {
        ...options,
        query: { ...COMPACT, labelSelector, fieldSelector, ...options?.query },
    });
}

export function create<T extends KubernetesObject>(resource: Resource<T>, object: T, options?: Options): Promise<T> {
    const path = collectionPath(resource, object.metadata?.namespace);
    return json<T>(path, { ...options, method: "POST", body: object, query: { fieldManager: FIELD_MANAGER, ...options?.query } });
}

/** Server-side apply. */
export function apply<T extends KubernetesObject>(resource: Resource<T>, object: T, options?: Options & { force?: boolean }): Promise<T> {
    const path = objectPath(resource, object.metadata?.namespace, object.metadata?.name ?? "");
    return json<T>(path, {
        ...options,
        method: "PATCH",
        body: object,
        contentType: "application/apply-patch+yaml",
        query: { fieldManager: FIELD_MANAGER, force: options?.force, ...options?.query },
    });
}

/** Replaces the whole object; its resourceVersion makes sure that nobody else's change is lost. */
export function replace<T extends KubernetesObject>(resource: Resource<T>, object: T, options?: Options): Promise<T> {
    const path = objectPath(resource, object.metadata?.namespace, object.metadata?.name ?? "");
    return json<T>(path, { ...options, method: "PUT", body: object, query: { fieldManager: FIELD_MANAGER, ...options?.query } });
}

/** A JSON merge patch. */
export function patch<T extends KubernetesObject>(resource: Resource<T>, namespace: string | undefined, name: string, change: unknown, options?: Options): Promise<T> {
    return json<T>(objectPath(resource, namespace, name), {
        ...options,
        method: "PATCH",
        body: change,
        contentType: "application/merge-patch+json",
        query: { fieldManager: FIELD_MANAGER, ...options?.query },
    });
}

export function remove(resource: Resource, namespace: string | undefined, name: string, options?: Options): Promise<unknown> {
    return json(objectPath(resource, namespace, name), { ...options, method: "DELETE", body: { propagationPolicy: "Background" } });
}

/** Calls a subresource: `subresource(VIRTUAL_MACHINES, ns, name, "restart", {method: "PUT"})`. */
export function subresource<A>(resource: Resource, namespace: string | undefined, name: string, door: string, options?: Options): Promise<A> {
    return json<A>(`${objectPath(resource, namespace, name)}/${door}`, options);
}
