import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ApiError } from "./errors";
import { json, request } from "./request";

/** What a server may do to those who ask. */
const WAYS: Record<string, (answer: ServerResponse) => void> = {
    "/good": answer => answer.end('{"a": "ä"}'),
    "/silent": () => undefined,
    "/stalls": answer => { answer.write('{"a":'); },
    "/slow": answer => { ['{"a"', ":", '"slow"', "}"].forEach((piece, at) => setTimeout(() => (at === 3 ? answer.end(piece) : answer.write(piece)), at * 500)); },
    "/breaks": answer => { answer.write("{"); setTimeout(() => answer.destroy(), 20); },
    "/text": answer => answer.end("<html>"),
    "/stream": answer => { answer.write("first"); setTimeout(() => answer.end("last"), 1_500); },
};

let server: Server;
let base = "";
beforeAll(async () => {
    server = createServer((asked, answer) => WAYS[asked.url ?? ""]?.(answer));
    await new Promise<void>(resolve => { server.listen(0, "127.0.0.1", resolve); });
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => { server.closeAllConnections(); server.close(); });

describe.concurrent("a server that keeps people waiting", () => {
    it.each([
        ["/good", undefined, ""], ["/slow", undefined, ""],
        ["/silent", 0, "no answer within"], ["/stalls", 0, "stopped halfway"], ["/breaks", 0, ""], ["/text", -1, "not JSON"],
    ])("%s", async (path, status, message) => {
        const asked = json<{ a: string }>(base + path, { patienceMs: 1_000 });
        if (status === undefined) {
            expect((await asked).a).toMatch(/ä|slow/);
            return;
        }
        const error = await asked.then(() => undefined, (thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(ApiError);
        expect((error as ApiError).status).toBe(status);
        expect((error as ApiError).message).toContain(message);
    });
    it.concurrent("a stream may be silent for as long as its reader likes", async () => {
        const answer = await request(`${base}/stream`, { patienceMs: 1_000 });
        expect(await answer.text()).toBe("firstlast");
    });
    it("whoever gives up is told nothing", async () => {
        const abort = new AbortController();
        setTimeout(() => abort.abort(), 20);
        await expect(json(`${base}/silent`, { signal: abort.signal })).rejects.not.toBeInstanceOf(ApiError);
    });
});
