import { expect, it } from "vitest";
import { titleAt } from "./title";

it.each([
    ["/", undefined, "Fairway"],
    ["/home", "Welcome, Ann", "Home · Fairway"],
    ["/applications", "Applications", "Applications · Fairway"],
    ["/applications/openshift-gitops/shop", undefined, "shop · Applications · Fairway"],
    ["/catalog/component/default/shop", "The shop", "The shop · Catalog · Fairway"],
    ["/repositories/root/web/pulls/3", "#3 More", "#3 More · Repositories · Fairway"],
    ["/machines/a%20b/100%25", undefined, "100% · VirtualMachines · Fairway"],
    ["/machines/team/100%", undefined, "100% · VirtualMachines · Fairway"],
    ["/nowhere", undefined, "Fairway"],
])("%s with %s is called %s", (path, name, title) => expect(titleAt(path, name)).toBe(title));
