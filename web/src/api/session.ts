// Who is signed in, and in which workspace the page works. The server keeps the token; the browser has a cookie that scripts cannot read.

export interface Session {
    user: { name: string; displayName?: string; email?: string; groups?: string[] };
    workspace: string;
    csrf: string;
    expires?: string;
    domain?: string;
    version?: string;
    apiServer?: string;
    gitUrl?: string;
}

let current: Session | undefined;
let chosenWorkspace = "root";

export function session(): Session {
    if (!current) throw new Error("the session is asked for before it was read");
    return current;
}

/** The workspace in the address: everything on a page is asked there. */
export function workspace(): string {
    return chosenWorkspace;
}

export function beginSession(read: Session, place: string): void {
    current = read;
    chosenWorkspace = place;
    try {
        localStorage.setItem(HOME, read.workspace);
    } catch {
        // Then it is not remembered.
    }
}

const WORKSPACE_PATH = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(:[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;

/** The workspace that an address names (`/w/root:acme/...`), if it names one. */
export function workspaceOfPath(path: string): string | undefined {
    const [, w, encoded] = path.split("/");
    if (w !== "w" || !encoded) return undefined;
    let name: string;
    try {
        name = decodeURIComponent(encoded);
    } catch {
        return undefined;
    }
    return WORKSPACE_PATH.test(name) ? name : undefined;
}

/** The page that an address leads to, with or without a workspace in it. */
export function pageOfPath(path: string): string {
    const words = path.split("/");
    return words[words[1] === "w" ? 3 : 1] || "home";
}

/** The address of a page in a workspace. */
export function pathIn(place: string, path: string): string {
    return `/w/${place}${path.startsWith("/") ? path : `/${path}`}`;
}

/** The workspace where somebody who uses this browser was at home the last time. */
const HOME = "fairway-home";

function remembered(): string | undefined {
    try {
        return localStorage.getItem(HOME) ?? undefined;
    } catch {
        // Storage may be forbidden; the address tells then.
        return undefined;
    }
}

/** Which workspace says where to sign in: that of whoever was signed in, else that of the address. */
export function homeFor(path: string, last: string | undefined): string | undefined {
    return last !== undefined && WORKSPACE_PATH.test(last) ? last : workspaceOfPath(path);
}

/** Where the browser goes to sign in, and comes back from. */
export function loginPath(): string {
    const home = homeFor(location.pathname, current?.workspace ?? remembered());
    const asked = new URLSearchParams({ return: location.pathname + location.search, ...(home ? { workspace: home } : {}) });
    return `/auth/login?${asked.toString()}`;
}
