// What asks for attention, worst first. Pure, so that it can be tested by tables.

import type { ApiError } from "../../api/errors";
import type { APIKeyRequest, Application, GatewayObject, Node, VirtualMachine, Voyage } from "../../api/kinds";
import { t } from "../../text/home";
import { type Tone, toneOf } from "../../widgets/status";
import { waitingApproval } from "../applications/model";
import { decided, pathOf, standing } from "../gateways/model";
import { runTitle } from "../voyages/runs";

export interface Concern {
    key: string;
    kind: string;
    name: string;
    /** Its page, if its kind has one. */
    to?: string;
    word: string;
    /** The colour of a word that has none of its own. */
    tone?: Tone;
    message: string;
    weight: number;
}

interface Looked {
    state: "loading" | "live" | "lost" | "failed";
    error?: ApiError;
}

/** Whether all lists are known to be whole, and which of them are not: of things that nobody could look at nobody can say that they are well. */
export function sightOf(lists: Record<string, Looked>): { isWhole: boolean; isLoading: boolean; blind: { what: string; error: ApiError }[] } {
    const all = Object.entries(lists);
    return {
        isWhole: all.every(([, one]) => one.state === "live"),
        isLoading: all.some(([, one]) => one.state === "loading" && !one.error),
        blind: all.flatMap(([what, one]) => (one.state !== "live" && one.error ? [{ what, error: one.error }] : [])),
    };
}

/** A list of those things that are not everybody's: who may not see them is not the one whom they wait for, and where there are none they are well. */
export function ifMine<L extends Looked>(looked: L): Looked {
    return looked.error?.status === 403 || looked.error?.status === 404 ? { state: "live" } : looked;
}

export interface Things {
    applications: readonly Application[];
    machines: readonly VirtualMachine[];
    voyages: readonly Voyage[];
    gateways: readonly GatewayObject[];
    nodes: readonly Node[];
    /** Requests for keys that somebody may answer who looks at this. */
    requests: readonly APIKeyRequest[];
}

export function concernsOf(things: Things, now: number): Concern[] {
    const found = [
        ...things.applications.flatMap(ofApplication), ...things.machines.flatMap(ofMachine), ...things.voyages.flatMap(run => ofRun(run, now)),
        ...things.gateways.flatMap(ofGateway), ...things.nodes.flatMap(ofNode), ...things.requests.flatMap(ofRequest),
    ];
    return found.sort((a, b) => b.weight - a.weight || a.key.localeCompare(b.key));
}

function ofApplication(app: Application): Concern[] {
    const { namespace = "", name = "" } = app.metadata ?? {};
    const health = app.status?.health?.status ?? "";
    const sync = app.status?.sync?.status ?? "";
    const operation = app.status?.operationState;
    // `ComparisonError`, `InvalidSpecError`, `SyncError`: nobody knows then whether the rest is true.
    const wrong = app.status?.conditions?.find(one => one.type?.endsWith("Error"));
    const message = wrong?.message ?? app.status?.conditions?.[0]?.message ?? operation?.message ?? app.status?.health?.message ?? "";
    const at = { key: `a ${namespace}/${name}`, kind: "Application", name, to: `/applications/${namespace}/${name}`, message };
    // The guard waits for a person, and nothing of the sync goes on before.
    if (waitingApproval(app)) return [{ ...at, message: operation?.message ?? "", word: t("waitsForApproval"), tone: "orange", weight: 4 }];
    if (health === "Degraded" || operation?.phase === "Failed" || operation?.phase === "Error") return [{ ...at, word: health === "Degraded" ? health : "Failed", weight: 3 }];
    if (wrong || sync === "Unknown") return [{ ...at, word: wrong?.type ?? "Unknown", weight: 2 }];
    if (health === "Missing" || sync === "OutOfSync") return [{ ...at, word: sync === "OutOfSync" ? sync : health, weight: 1 }];
    return [];
}

function ofMachine(machine: VirtualMachine): Concern[] {
    const { namespace = "", name = "" } = machine.metadata ?? {};
    const word = machine.status?.printableStatus ?? "";
    if (toneOf(word) !== "red") return [];
    const bad = machine.status?.conditions?.find(one => (one.type === "Ready" && one.status === "False") || one.type === "Failure");
    return [{ key: `m ${namespace}/${name}`, kind: "VirtualMachine", name, to: `/machines/${namespace}/${name}`, word, message: bad?.message ?? "", weight: 3 }];
}

function ofRun(run: Voyage, now: number): Concern[] {
    if (run.status?.phase !== "Failed" || now - Date.parse(run.status.endedAt ?? "") > 7 * 86_400_000) return [];
    const { namespace = "", name = "" } = run.metadata ?? {};
    return [{ key: `v ${namespace}/${name}`, kind: "Voyage", name: runTitle(run), to: `/voyages/${namespace}/${name}`, word: "Failed", message: run.status.message ?? "", weight: 2 }];
}

/** One that nobody has looked at yet says nothing of itself. */
function ofGateway(gateway: GatewayObject): Concern[] {
    const conditions = gateway.status?.conditions;
    const { isGood, word, message } = standing(conditions, ["Accepted", "Programmed"]);
    if (isGood || !conditions?.length) return [];
    const { namespace = "", name = "" } = gateway.metadata ?? {};
    return [{ key: `g ${namespace}/${name}`, kind: "Gateway", name, to: pathOf("Gateway", namespace, name), word, tone: "orange", message, weight: 3 }];
}

function ofNode(node: Node): Concern[] {
    const ready = node.status?.conditions?.find(one => one.type === "Ready");
    if (!ready || ready.status === "True") return [];
    return [{ key: `n ${node.metadata?.name}`, kind: "Node", name: node.metadata?.name ?? "", word: "NotReady", message: ready.message ?? "", weight: 4 }];
}

function ofRequest(request: APIKeyRequest): Concern[] {
    if (decided(request) !== "Pending") return [];
    const { namespace = "", name = "" } = request.metadata ?? {};
    const { requestedBy, useCase = "", apiProductRef, planTier = "" } = request.spec ?? {};
    const message = t("wantsKey", { who: requestedBy?.userId ?? "", plan: planTier, use: useCase });
    return [{ key: `k ${namespace}/${name}`, kind: "APIKeyRequest", name: apiProductRef?.name ?? name, to: "/gateways?tab=keys", word: t("waitsForApproval"), tone: "orange", message, weight: 2 }];
}
