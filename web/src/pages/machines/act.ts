// What is asked of machines: KubeVirt's subresources, as virtctl calls them.

import { clusterPath, json, remove, VIRTUAL_MACHINES } from "../../api";
import type { Action } from "./model";

const OF_INSTANCE: Action[] = ["pause", "unpause"];

export function subresourcePath(kind: "virtualmachines" | "virtualmachineinstances", namespace: string, name: string, door: string): string {
    return `${clusterPath()}/apis/subresources.kubevirt.io/v1/namespaces/${encodeURIComponent(namespace)}/${kind}/${encodeURIComponent(name)}/${door}`;
}

export function act(action: Action, namespace: string, name: string): Promise<unknown> {
    const kind = OF_INSTANCE.includes(action) ? "virtualmachineinstances" : "virtualmachines";
    return json(subresourcePath(kind, namespace, name, action), { method: "PUT", body: {} });
}

export function destroy(namespace: string, name: string): Promise<unknown> {
    return remove(VIRTUAL_MACHINES, namespace, name);
}

export interface Place { namespace: string; name: string }

/** The same with each, all of them even if some are refused; the first refusal is thrown. */
export async function withEach(places: Place[], run: (place: Place) => Promise<unknown>): Promise<void> {
    const results = await Promise.allSettled(places.map(run));
    const refused = results.find(result => result.status === "rejected");
    if (refused) throw refused.reason;
}

/** The address of a stream to a machine. */
export function streamAddress(namespace: string, name: string, door: "console" | "vnc"): string {
    const url = new URL(subresourcePath("virtualmachineinstances", namespace, name, door), location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url.href;
}

/** KubeVirt's word for a stream of bytes. */
export const SUBPROTOCOL = "plain.kubevirt.io";
