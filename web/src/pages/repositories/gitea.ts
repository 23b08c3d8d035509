// Hosted repositories through Gitea's API.

import { json, request, workspace } from "../../api";
import type { Branch, Comment, Commit, Entry, Pull, Repo, Status } from "../../api/rest/gitea";

const BASE = "/api/gitea/v1";

/** The owner that a workspace's repositories have. */
export function ownerOf(path: string = workspace()): string {
    return path === "root" ? "root" : path.replace(/^root:/, "").replaceAll(":", ".");
}


export function repoPath(owner: string, name: string, rest = ""): string {
    return `${BASE}/repos/${encodeURIComponent(owner)}/${encodeURIComponent(name)}${rest}`;
}

const pathOf = (path: string): string => path.split("/").map(encodeURIComponent).join("/");

/** The host hands out at most fifty at once. */
const AT_ONCE = 50;
export const PULLS_AT_ONCE = AT_ONCE;
export const COMMITS_AT_ONCE = 30;
/** More branches than these are not listed. */
export const MOST_BRANCHES = 500;

/** Page after page, until one is not full or there are enough. */
export async function pageByPage<A>(read: (page: number) => Promise<A[]>, most: number, atOnce: number): Promise<A[]> {
    const all: A[] = [];
    for (let page = 1; all.length < most; page += 1) {
        const found = await read(page);
        all.push(...found);
        if (found.length < atOnce) break;
    }
    return all.slice(0, most);
}

export const gitea = {
    repo: (owner: string, name: string, signal: AbortSignal) => json<Repo>(repoPath(owner, name), { signal }),
    contents: (owner: string, name: string, path: string, ref: string, signal: AbortSignal) =>
        json<Entry | Entry[]>(repoPath(owner, name, `/contents${path ? `/${pathOf(path)}` : ""}`), { query: { ref }, signal }),
    branches: (owner: string, name: string, signal: AbortSignal) => pageByPage(page => json<Branch[]>(repoPath(owner, name, "/branches"), { query: { page, limit: AT_ONCE }, signal }), MOST_BRANCHES, AT_ONCE),
    commits: (owner: string, name: string, sha: string, page: number, signal: AbortSignal) => json<Commit[]>(repoPath(owner, name, "/commits"), { query: { sha, page, limit: COMMITS_AT_ONCE, stat: false }, signal }),
    commit: (owner: string, name: string, sha: string, signal: AbortSignal) => json<Commit>(repoPath(owner, name, `/git/commits/${encodeURIComponent(sha)}`), { signal }),
    pulls: (owner: string, name: string, state: string, page: number, signal: AbortSignal) => json<Pull[]>(repoPath(owner, name, "/pulls"), { query: { state, page, limit: PULLS_AT_ONCE }, signal }),
    pull: (owner: string, name: string, number: number, signal: AbortSignal) => json<Pull>(repoPath(owner, name, `/pulls/${number}`), { signal }),
    comments: (owner: string, name: string, number: number, signal: AbortSignal) => json<Comment[]>(repoPath(owner, name, `/issues/${number}/comments`), { signal }),
    statuses: (owner: string, name: string, sha: string, signal: AbortSignal) => json<Status[]>(repoPath(owner, name, `/commits/${sha}/statuses`), { signal }),
    propose: (owner: string, name: string, body: { title: string; head: string; base: string; body: string }) => json<Pull>(repoPath(owner, name, "/pulls"), { method: "POST", body }),
    merge: (owner: string, name: string, number: number, how: string) => json<unknown>(repoPath(owner, name, `/pulls/${number}/merge`), { method: "POST", body: { Do: how } }),
    /** Closes a pull request, or opens it again. */
    turn: (owner: string, name: string, number: number, state: "open" | "closed") => json<unknown>(repoPath(owner, name, `/pulls/${number}`), { method: "PATCH", body: { state } }),
};

/** A difference as text, at most this much of it. */
export const MAX_DIFF = 1_000_000;

/** What is at `pulls/3.diff` or `git/commits/SHA.diff`. */
export async function patchOf(owner: string, name: string, what: string, signal: AbortSignal): Promise<string> {
    const answer = await request(repoPath(owner, name, `/${what}`), { signal });
    return beginning(answer, MAX_DIFF);
}

/** The first of an answer's text. The rest is not taken from the server: a difference can have hundreds of megabytes. */
async function beginning(answer: Response, most: number): Promise<string> {
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (reader && text.length < most) {
        const { done, value } = await reader.read();
        if (done) return text;
        text += value;
    }
    await reader?.cancel();
    return text.slice(0, most);
}

/** The text of a file, or nothing if it is not text. */
export function textOf(entry: Entry): string | undefined {
    if (entry.encoding !== "base64" || entry.content === undefined || entry.content === null) return entry.content ?? undefined;
    const bytes = Uint8Array.from(atob(entry.content.replace(/\s/g, "")), letter => letter.charCodeAt(0));
    if (bytes.includes(0)) return undefined;
    return new TextDecoder().decode(bytes);
}
