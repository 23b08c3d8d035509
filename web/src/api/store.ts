// Lists that several components share, kept current by one watch each. Events are gathered until the next frame, so that a thousand of them
// are one rendering.

import type { ApiError } from "./errors";
import type { KubernetesObject, Resource } from "./kinds";
import type { Selection } from "./kubernetes";
import { watch } from "./watch";
import { keyOf } from "./watchlines";

export interface Snapshot<T> {
    items: T[];
    state: "loading" | "live" | "lost" | "failed";
    error?: ApiError;
}

/** How long a list is kept after nobody looks at it: going back is then instant. */
const LINGER_MS = 30_000;

export class ListStore<T extends KubernetesObject> {
    private readonly objects = new Map<string, T>();
    private snapshot: Snapshot<T> = { items: [], state: "loading" };
    private readonly listeners = new Set<() => void>();
    private stop: (() => void) | undefined;
    private linger: ReturnType<typeof setTimeout> | undefined;
    private isScheduled = false;
    private pending: Partial<Snapshot<T>> = {};

    constructor(
        private readonly resource: Resource<T>,
        private readonly selection: Selection,
        private readonly onIdle: () => void,
        private readonly schedule: (work: () => void) => void = nextFrame,
        private readonly begin: typeof watch<T> = watch,
    ) {}

    readonly subscribe = (listener: () => void): (() => void) => {
        this.listeners.add(listener);
        clearTimeout(this.linger);
        this.stop ??= this.begin(this.resource, this.selection, {
            onList: items => {
                this.objects.clear();
                for (const item of items) this.objects.set(keyOf(item), item);
                this.change({ state: "live", error: undefined });
            },
            onEvent: (type, object) => {
                if (type === "DELETED") this.objects.delete(keyOf(object));
                else this.objects.set(keyOf(object), object);
                this.change({});
            },
            onState: (state, error) => this.change({ state, error }),
        });
        return () => {
            this.listeners.delete(listener);
            if (this.listeners.size > 0) return;
            this.linger = setTimeout(() => {
                this.stop?.();
                this.stop = undefined;
                this.onIdle();
            }, LINGER_MS);
        };
    };

    readonly current = (): Snapshot<T> => this.snapshot;

    private change(change: Partial<Snapshot<T>>): void {
        this.pending = { ...this.pending, ...change };
        if (this.isScheduled) return;
        this.isScheduled = true;
        this.schedule(() => {
            this.isScheduled = false;
            this.snapshot = { ...this.snapshot, ...this.pending, items: [...this.objects.values()] };
            this.pending = {};
            this.listeners.forEach(listener => listener());
        });
    }
}

/** Before the next frame; in a tab that is not looked at there are no frames, and a timer serves. */
function nextFrame(work: () => void): void {
    if (document.visibilityState === "visible") requestAnimationFrame(work);
    else setTimeout(work, 250);
}

const stores = new Map<string, ListStore<KubernetesObject>>();

/** The one store of a list. */
export function storeOf<T extends KubernetesObject>(resource: Resource<T>, selection: Selection): ListStore<T> {
    const key = JSON.stringify([
        resource.group, resource.version, resource.plural,
        selection.namespace ?? "", selection.labelSelector ?? "", selection.fieldSelector ?? "", selection.workspace ?? "",
    ]);
    const known = stores.get(key);
    if (known) return known as unknown as ListStore<T>;
    const made = new ListStore<T>(resource, selection, () => stores.delete(key));
    stores.set(key, made as unknown as ListStore<KubernetesObject>);
    return made;
}
