// What is asked of machines: KubeVirt's subresources, as virtctl calls them.

import { type ApiError, asApiError, clusterPath, json, patch, Refusals, remove, VIRTUAL_MACHINES } from "../../api";
import { type Action, FOLDER } from "./model";

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

/** Into a folder; without a name out of any. */
export function moveTo(folder: string, namespace: string, name: string): Promise<unknown> {
    return patch(VIRTUAL_MACHINES, namespace, name, { metadata: { labels: { [FOLDER]: folder || null } } });
}

export interface Place { namespace: string; name: string }

/** Requests at once: a session has a bound, and its pages need some for themselves. */
const AT_ONCE = 8;

/** The same with each, all of them even if some are refused; who was refused is thrown, by name. */
export async function withEach(places: Place[], run: (place: Place) => Promise<unknown>): Promise<void> {
    const refused: { name: string; error: ApiError; at: number }[] = [];
    let next = 0;
    const work = async (): Promise<void> => {
        for (let at = next++; at < places.length; at = next++) {
            const place = places[at];
            if (!place) return;
            await run(place).catch((thrown: unknown) => refused.push({ name: `${place.namespace}/${place.name}`, error: asApiError(thrown), at }));
        }
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, places.length) }, work));
    if (places.length === 1 && refused[0]) throw refused[0].error;
    if (refused.length > 0) throw new Refusals(refused.sort((a, b) => a.at - b.at), places.length);
}

/** The address of a stream to a machine. */
export function streamAddress(namespace: string, name: string, door: "console" | "vnc"): string {
    const url = new URL(subresourcePath("virtualmachineinstances", namespace, name, door), location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url.href;
}

/** KubeVirt's word for a stream of bytes. */
export const SUBPROTOCOL = "plain.kubevirt.io";
