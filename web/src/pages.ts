// The pages that there are: each `pages/<name>/index.tsx` is a chunk of its own and is loaded when it is first visited (or hovered).

import { type ComponentType, lazy } from "react";

type PageModule = { default: ComponentType };
const modules = import.meta.glob<PageModule>("./pages/*/index.tsx");

interface Page {
    load: () => Promise<PageModule>;
    Page: ComponentType;
    /** Without waiting, once it was loaded. React shows what stands in for something that has to be waited for 300 ms at least. */
    loaded?: ComponentType;
}

const pages = new Map<string, Page>();
for (const [file, load] of Object.entries(modules)) {
    const name = file.split("/")[2];
    if (!name) continue;
    const loading = async (): Promise<PageModule> => {
        const module = await load();
        page.loaded = module.default;
        return module;
    };
    const page: Page = { load: loading, Page: lazy(loading) };
    pages.set(name, page);
}

/** What a page is drawn with. Whoever draws it asks once: another answer would be another page, and what was typed into the first one lost. */
export function componentOf(name: string): ComponentType | undefined {
    const page = pages.get(name);
    return page?.loaded ?? page?.Page;
}

/** Whether there is a page of this name. */
export function hasPage(name: string): boolean {
    return pages.has(name);
}

/** Loads a page before it is asked for. What goes wrong is told when it is. */
export async function preload(name: string): Promise<void> {
    await pages.get(name)?.load().catch(() => undefined);
}
