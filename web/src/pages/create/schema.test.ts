import { expect, it } from "vitest";
import type { DryRun } from "../../api/rest/scaffolder";
import { after, before, isConditional, mayCreate, shownOf, taken } from "./schema";

const foreseen = (succeeds: boolean): DryRun => ({ foreseen: { succeeds, repositories: [], objects: [], manifests: [] } });

it.each([
    ["nobody has answered yet", { isLoading: true }, false],
    ["it would be accepted", { isLoading: false, answer: foreseen(true) }, true],
    ["it would be refused", { isLoading: false, answer: foreseen(false) }, false],
    ["the answer says nothing of it", { isLoading: false, answer: {} }, false],
    ["asking failed", { isLoading: false, error: new Error("no") }, false],
    ["asking again failed", { isLoading: false, answer: foreseen(true), error: new Error("no") }, false],
    ["it is asked again", { isLoading: true, answer: foreseen(true) }, false],
])("%s", (_what, asked, may) => {
    expect(mayCreate(asked)).toBe(may);
});

it.each([
    ["all are asked", [true, true], 0, 1, undefined],
    ["one is left out forwards", [true, false, true], 0, 2, undefined],
    ["and backwards", [true, false, true], 2, 3, 0],
    ["the last is left out", [true, true, false], 1, 3, 0],
    ["the first is left out", [false, true], 1, 2, undefined],
    ["back from the review", [true, false], 2, 2, 0],
])("pages: %s", (_what, shown, at, next, earlier) => {
    expect(after(shown, at)).toBe(next);
    expect(before(shown, at)).toBe(earlier);
});

it("takes no answers of pages that are not asked", () => {
    const page = (name: string, more = {}) => ({ schema: { properties: { [name]: {}, shared: {} } }, ...more });
    const schema = { steps: [page("name"), page("zone", { when: "${{ parameters.name }}", isShown: false })] };
    expect(isConditional(schema)).toBe(true);
    expect(isConditional({ steps: [page("name")] })).toBe(false);
    expect(shownOf(schema)).toEqual([true, false]);
    expect(taken(schema, [true, false], { name: "a", zone: "b", shared: 1, other: 2 })).toEqual({ name: "a", shared: 1, other: 2 });
    expect(taken(schema, [true, true], { name: "a", zone: "b" })).toEqual({ name: "a", zone: "b" });
});
