import { expect, it } from "vitest";
import { homeFor, pageOfPath, workspaceOfPath } from "./session";

it.each([
    ["/w/root:acme/machines", "root:acme"], ["/w/root/home", "root"], ["/home", undefined], ["/w/", undefined], ["/w/a%2Fb/x", undefined], ["/w/%zz/x", undefined],
])("the workspace of %s is %s", (path, expected) => {
    expect(workspaceOfPath(path)).toBe(expected);
});

it.each([
    ["/w/root:acme/machines/team/web", "machines"], ["/machines", "machines"], ["/w/root", "home"], ["/w/root/", "home"], ["/", "home"],
])("%s leads to the page %s", (path, expected) => {
    expect(pageOfPath(path)).toBe(expected);
});

it.each([
    ["/w/root:acme/machines", undefined, "root:acme"],
    // An administrator of the installation who looks into an organisation is not one of its people.
    ["/w/root:acme/machines", "root", "root"],
    ["/home", "root:acme", "root:acme"],
    ["/home", undefined, undefined],
    ["/w/root:acme/x", "nonsense of/somebody", "root:acme"],
])("whoever opens %s and was last of %s signs in at %s", (path, last, expected) => {
    expect(homeFor(path, last)).toBe(expected);
});
