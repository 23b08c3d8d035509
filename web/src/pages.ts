// The pages that there are: each `pages/<name>/index.tsx` is a chunk of its own and is loaded when it is first visited (or hovered).

import { type ComponentType, lazy } from "react";

type PageModule = { default: ComponentType };
const modules = import.meta.glob<PageModule>("./pages/*/index.tsx");

export const pages = new Map<string, { load: () => Promise<PageModule>; Page: ComponentType }>();
for (const [file, load] of Object.entries(modules)) {
    const name = file.split("/")[2];
    if (name) pages.set(name, { load, Page: lazy(load) });
}

/** Whether there is a page of this name. */
export function hasPage(name: string): boolean {
    return pages.has(name);
}

/** Loads a page before it is asked for. */
export function preload(name: string): void {
    void pages.get(name)?.load().catch(() => undefined);
}
