import { describe, expect, it } from "vitest";
import { ApiError, Refusals } from "../../api/errors";
import { type Place, withEach } from "./act";

const places = (count: number): Place[] => Array.from({ length: count }, (_, at) => ({ namespace: "a", name: `m${at}` }));

describe("the same with many machines", () => {
    it("is done with all of them, a few at a time", async () => {
        let [running, most] = [0, 0];
        const done: string[] = [];
        await withEach(places(300), async place => {
            running += 1;
            most = Math.max(most, running);
            await new Promise(resolve => { setTimeout(resolve, 1); });
            running -= 1;
            done.push(place.name);
        });
        expect(new Set(done).size).toBe(300);
        expect(most).toBe(8);
    });
    it("names every one that was refused, after all were tried", async () => {
        const tried: string[] = [];
        const thrown = await withEach(places(20), place => {
            tried.push(place.name);
            return ["m3", "m17"].includes(place.name) ? Promise.reject(new ApiError(409, `no ${place.name}`)) : Promise.resolve();
        }).then(() => undefined, (error: unknown) => error);
        expect(tried).toHaveLength(20);
        expect(thrown).toBeInstanceOf(Refusals);
        const { status, message, each } = thrown as Refusals;
        expect([status, message, each]).toEqual([409, "2 of 20 were refused", ["a/m3: no m3", "a/m17: no m17"]]);
    });
    it("says a single refusal as it is", async () => {
        await expect(withEach(places(1), () => Promise.reject(new ApiError(403, "you may not")))).rejects.toMatchObject({ status: 403, message: "you may not" });
    });
});
