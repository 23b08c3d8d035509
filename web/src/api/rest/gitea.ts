// What the Git host answers at /api/gitea/v1: Gitea's API, which has no OpenAPI document here.

export interface Repo {
    name: string;
    full_name: string;
    description?: string;
    default_branch: string;
    private: boolean;
    empty?: boolean;
    clone_url?: string;
    updated_at?: string;
}

export interface Branch {
    name: string;
    commit?: { id: string };
}

/** A file or a folder; the content of a file is there when it was asked for alone. */
export interface Entry {
    name: string;
    path: string;
    type: "file" | "dir" | "symlink" | "submodule";
    size?: number;
    encoding?: string | null;
    content?: string | null;
}

export interface Commit {
    sha: string;
    commit: { message: string; author?: { name?: string; email?: string; date?: string } };
    created?: string;
    parents?: { sha: string }[];
}

export interface Pull {
    number: number;
    title: string;
    body?: string;
    state: string;
    merged?: boolean;
    user?: { login?: string };
    head: { ref: string; sha: string };
    base: { ref: string };
    created_at?: string;
    mergeable?: boolean;
}

export interface Comment {
    id: number;
    body: string;
    user?: { login?: string };
    created_at?: string;
}

export interface Status {
    status?: string;
    state?: string;
    context: string;
    description?: string;
}
