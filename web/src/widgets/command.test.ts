import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sh, shellWord, withWorkspace } from "./command";

const HOSTILE = ["main", "a b", "$(touch x)", "`id`", "a;id", "a'b", "a\"b", "a\\b", "a\nid", "*", "~", "#x", "!x", "", "x=1", "-n", "ä", "a&b|c>d<e"];

describe("words of a shell", () => {
    it.each(HOSTILE)("%j stays what it is", text => {
        expect(execFileSync("/bin/sh", ["-c", `printf %s ${shellWord(text)}`], { encoding: "utf8" })).toBe(text);
    });
    it("are put into commands", () => {
        expect(sh`kubectl get vm ${"web"} -n ${"a;b"} -o yaml`).toBe("kubectl get vm web -n 'a;b' -o yaml");
        expect(sh`fairway status`).toBe("fairway status");
        expect(sh`${"a b"} ${undefined} ${3}`).toBe("'a b' '' 3");
    });
});

describe("commands in a workspace", () => {
    it("go there first", () => {
        expect(withWorkspace("root:acme", ["kubectl get vm -A"])).toEqual(["fairway workspace use :root:acme", "kubectl get vm -A"]);
    });
    it("stay where a terminal begins", () => {
        expect(withWorkspace("root", ["kubectl get vm -A"])).toEqual(["kubectl get vm -A"]);
    });
});

/** A command that is put together otherwise could be taken apart by a name. */
describe("commands of pages", () => {
    const files = (readdirSync(join(import.meta.dirname, ".."), { recursive: true }) as string[]).filter(name => name.endsWith(".tsx"));
    it.each(files)("%s", name => {
        const text = readFileSync(join(import.meta.dirname, "..", name), "utf8");
        expect(/(?<!sh)`(kubectl|fairway|virtctl|git|curl) [^`]*\$\{[^`]*`/.exec(text)?.[0]).toBeUndefined();
    });
});
