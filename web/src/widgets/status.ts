// The words that Argo CD, KubeVirt and Backstage use for states, and the colours in which their users know them.

export type Tone = "green" | "red" | "orange" | "yellow" | "blue" | "teal" | "purple" | "grey";

const TONES: Record<string, Tone> = {
    // Argo CD: health
    Healthy: "green", Progressing: "blue", Degraded: "red", Suspended: "grey", Missing: "yellow",
    // Argo CD: sync
    Synced: "green", OutOfSync: "yellow", Unknown: "grey",
    // KubeVirt
    Running: "green", Stopped: "grey", Starting: "blue", Stopping: "blue", Provisioning: "blue", Paused: "yellow", Migrating: "blue",
    Terminating: "orange", CrashLoopBackOff: "red", ErrorUnschedulable: "red", ErrorPvcNotFound: "red", ErrorDataVolumeNotFound: "red",
    ErrImagePull: "red", ImagePullBackOff: "red", DataVolumeError: "red", WaitingForVolumeBinding: "blue", WaitingForReceiver: "blue",
    // Runs and operations
    Succeeded: "green", Failed: "red", Error: "red", Pending: "grey", Undoing: "orange", Cancelled: "grey", Decommissioning: "orange", Decommissioned: "grey",
    completed: "green", failed: "red", processing: "blue", open: "grey", cancelled: "grey", skipped: "grey", undone: "orange", pending: "grey", running: "blue",
    // Gateways, keys, repositories, workspaces
    Programmed: "green", Accepted: "green", Enforced: "green", Ready: "green", NotReady: "red", Approved: "green", Rejected: "red", Denied: "red", Open: "blue", Merged: "purple", Closed: "grey",
    // Backstage: lifecycle
    production: "green", experimental: "purple", deprecated: "orange", development: "blue",
};

export function toneOf(word: string): Tone {
    // Argo CD's conditions: `ComparisonError`, `InvalidSpecError`, `SyncError`, ...
    return TONES[word] ?? (word.endsWith("Error") ? "red" : "grey");
}

/** What an icon says. */
export type Sign = "good" | "bad" | "warning" | "busy" | "off" | "paused" | "pending" | "ended" | "unknown";

const SIGNS: Partial<Record<Tone, Sign>> = { green: "good", red: "bad", orange: "warning", yellow: "warning", blue: "busy" };
/** Grey is for what is over, has not begun, or rests: all of it is known. Of what is not known alone there is a question. */
const GREY: Record<string, Sign> = {
    Unknown: "unknown", unknown: "unknown", Stopped: "off", Halted: "off", Suspended: "paused", Pending: "pending", pending: "pending", open: "pending",
    Cancelled: "ended", cancelled: "ended", Decommissioned: "ended",
};

export function signOf(word: string, tone: Tone): Sign | undefined {
    if (word === "Paused") return "paused";
    return tone === "grey" ? GREY[word] : SIGNS[tone];
}

/** The tone of a condition: `True` is good, except for those whose name says that something is wrong. */
export function conditionTone(type: string, status: string): Tone {
    if (status === "Unknown") return "grey";
    const isBadWhenTrue = /(Error|Failed|Failure|Pressure|Conflict|Degraded|Paused|Unavailable|OverriddenBy|Overridden|Conflicted|OverlappingTLSConfig)$/.test(type);
    return (status === "True") !== isBadWhenTrue ? "green" : "red";
}
