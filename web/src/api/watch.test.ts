import { afterEach, expect, it, vi } from "vitest";
import { APPLICATIONS, type Application } from "./kinds";
import type { Selection } from "./kubernetes";
import { watch } from "./watch";

afterEach(() => vi.unstubAllGlobals());

const app = (name: string): object => ({ metadata: { name, managedFields: [] }, spec: {}, status: { history: [1], operationState: { phase: "Succeeded", syncResult: {}, operation: {} } } });

/** What a list comes to, and how the server was asked for it: two pieces, and then a stream in which nothing happens. */
function listed(selection: Selection): Promise<{ items: Application[]; asked: URLSearchParams[] }> {
    const asked: URLSearchParams[] = [];
    vi.stubGlobal("fetch", (path: string) => {
        const query = new URLSearchParams(path.split("?")[1]);
        if (query.get("watch") === "true") return Promise.resolve(new Response(new ReadableStream()));
        asked.push(query);
        const isFirst = query.get("continue") === null;
        return Promise.resolve(Response.json({ metadata: { resourceVersion: "7", continue: isFirst ? "more" : undefined }, items: [app(isFirst ? "a" : "b")] }));
    });
    return new Promise(resolve => {
        const stop = watch(APPLICATIONS, selection, {
            onList: items => resolve({ items, asked }),
            onEvent: () => undefined,
            onState: () => stop(),
        });
    });
}

it("lists in pieces, and asks for none of the spaces that people read", async () => {
    const { items, asked } = await listed({});
    expect(items.map(one => one.metadata.name)).toEqual(["a", "b"]);
    expect(asked.map(query => query.get("continue"))).toEqual([null, "more"]);
    expect(asked.every(query => query.get("pretty") === "false" && Number(query.get("limit")) > 0)).toBe(true);
});

it.each([
    ["a list", {}, { operationState: { phase: "Succeeded" } }],
    ["one object that is looked at", { fieldSelector: "metadata.name=a" }, { history: [1], operationState: { phase: "Succeeded", syncResult: {}, operation: {} } }],
])("%s has of an Application what is shown", async (_, selection, status) => {
    const { items } = await listed(selection);
    expect(items[0]?.status).toEqual(status);
    expect(items[0]?.metadata).toEqual({ name: "a" });
});
