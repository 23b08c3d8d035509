import { expect, it } from "vitest";
import { newCommand } from "./command";

const asked = { templateRef: "template:default/two-notes", values: {}, secrets: [], keep: false };

it.each([
    ["nothing was answered", {}, "fairway new two-notes -y"],
    ["answers are words of a shell", { values: { name: "a b", size: 2, tags: ["x"], left: undefined } }, "fairway new two-notes -y --set 'name=a b' --set size=2 --set 'tags=[\"x\"]'"],
    ["the template is of another namespace", { templateRef: "template:team/web" }, "fairway new template:team/web -y"],
    ["what is secret is not in it", { secrets: ["password"] }, "fairway new two-notes -y --secret-file password=password.txt"],
    ["what was made is kept", { keep: true }, "fairway new two-notes -y --keep"],
])("%s", (_why, more, expected) => expect(newCommand({ ...asked, ...more })).toBe(expected));
