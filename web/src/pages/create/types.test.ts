import { expect, it } from "vitest";
import { type DryRun, mayCreate } from "./types";

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
