import { expect, it } from "vitest";
import { placesWith } from "./places";

const MANY = Array.from({ length: 10_000 }, (_, n) => `tenant-${String(n).padStart(4, "0")}`);

it.each<[string, string[], string, string[], number]>([
    ["few are shown in their order", ["b", "a"], "", ["a", "b"], 0],
    ["words narrow them down", ["web-dev", "web-prod", "db"], "prod WEB", ["web-prod"], 0],
    ["nothing matches", ["a"], "x", [], 0],
    ["of ten thousand some letters find one", MANY, "7799", ["tenant-7799"], 0],
])("%s", (_why, names, typed, shown, more) => {
    expect(placesWith(names, typed)).toEqual({ shown, more });
});

it("of ten thousand no more are drawn than can be looked through", () => {
    const { shown, more } = placesWith(MANY, "");
    expect([shown.length, more]).toEqual([50, 9950]);
    expect(placesWith(MANY, "tenant-12").shown).toHaveLength(50);
});
