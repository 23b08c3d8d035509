import { describe, expect, it } from "vitest";
import type { KubernetesObject } from "./kinds";
import { ListStore } from "./store";
import type { Listener, watch } from "./watch";

const RESOURCE = { group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", namespaced: true };

function rig() {
    let listener: Listener<KubernetesObject> | undefined;
    const frames: (() => void)[] = [];
    const begin = ((_r: unknown, _s: unknown, l: Listener<KubernetesObject>) => {
        listener = l;
        return () => undefined;
    }) as typeof watch<KubernetesObject>;
    const store = new ListStore<KubernetesObject>(RESOURCE, {}, () => undefined, work => frames.push(work), begin);
    let renderings = 0;
    store.subscribe(() => (renderings += 1));
    return { store, frames, listener: listener as unknown as Listener<KubernetesObject>, renderings: () => renderings };
}

describe("a live list", () => {
    it("renders a thousand events once", () => {
        const { store, frames, listener, renderings } = rig();
        listener.onList([]);
        for (let n = 0; n < 1000; n += 1) listener.onEvent("ADDED", { metadata: { name: `a${n}`, namespace: "x" } });
        expect(frames).toHaveLength(1);
        frames.shift()?.();
        expect(renderings()).toBe(1);
        expect(store.current().items).toHaveLength(1000);
    });

    it("forgets what was deleted, and keeps what is old while the stream is lost", () => {
        const { store, frames, listener } = rig();
        listener.onList([{ metadata: { name: "a" } }, { metadata: { name: "b" } }]);
        listener.onEvent("DELETED", { metadata: { name: "a" } });
        listener.onState("lost");
        frames.shift()?.();
        expect(store.current().items.map(one => one.metadata?.name)).toEqual(["b"]);
        expect(store.current().state).toBe("lost");
    });

    it("replaces everything after history was lost", () => {
        const { store, frames, listener } = rig();
        listener.onList([{ metadata: { name: "a" } }]);
        listener.onList([{ metadata: { name: "b" } }]);
        frames.shift()?.();
        expect(store.current().items.map(one => one.metadata?.name)).toEqual(["b"]);
    });
});
