import { describe, expect, it } from "vitest";
import type { Application } from "../../api";
import { followers, sameAddress } from "./followers";

const app = (name: string, spec: Record<string, unknown>): Application => ({ metadata: { name, namespace: "a" }, spec }) as unknown as Application;
const url = "https://git.fairway.localhost:7443/root/shop.git";

describe("Applications of a repository", () => {
    it.each([
        [url, true], ["https://git.fairway.localhost:7443/root/shop", true], ["https://u:p@GIT.fairway.localhost:7443/root/shop.git/", true],
        ["https://git.fairway.localhost:7443/root/shop2.git", false], ["https://evil.example/git.fairway.localhost:7443/root/shop.git", false],
    ])("%s: %s", (repoURL, isSame) => {
        expect(sameAddress(repoURL) === sameAddress(url)).toBe(isSame);
        expect(followers([app("x", { source: { repoURL } })], url)).toHaveLength(isSame ? 1 : 0);
    });
    it("may have several sources", () => {
        const found = followers([app("b", { sources: [{ repoURL: "https://other" }, { repoURL: url }] }), app("a", { source: { repoURL: url } }), app("c", {})], url);
        expect(found.map(it => it.metadata.name)).toEqual(["a", "b"]);
    });
});
