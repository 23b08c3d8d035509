// Types that are written by hand, because their APIs have no OpenAPI document, held against answers of a real server. The compiler refuses
// an answer that lacks what a type promises, or has null where it says nothing of it; what reads the answers is tried with them, too.

import { describe, expect, it } from "vitest";
import { refOf, titleOf } from "../../catalog/entity";
import { mayCreate, shownOf } from "../../pages/create/schema";
import { usedUp } from "../../pages/gateways/usage";
import { FIGURES, rowsOf } from "../../pages/machines/history";
import { textOf } from "../../pages/repositories/gitea";
import type { Session } from "../session";
import type { Tree } from "./argo";
import type { Live, Entity, Page } from "./catalog";
import type { Counter, Explanation, Items, Rule } from "./gateway";
import type { Branch, Comment, Commit, Entry, Pull, Repo, Status } from "./gitea";
import type { History } from "./machines";
import type { Activity, ApplicationPlan, Why } from "./portal";
import argoTree from "./recorded/argo-tree.json";
import catalogEntity from "./recorded/catalog-entity.json";
import catalogLive from "./recorded/catalog-live.json";
import catalogPage from "./recorded/catalog-page.json";
import gatewayCounters from "./recorded/gateway-counters.json";
import gatewayExplanation from "./recorded/gateway-explanation.json";
import gatewayRules from "./recorded/gateway-rules.json";
import giteaBranches from "./recorded/gitea-branches.json";
import giteaComments from "./recorded/gitea-comments.json";
import giteaCommit from "./recorded/gitea-commit.json";
import giteaCommits from "./recorded/gitea-commits.json";
import giteaContents from "./recorded/gitea-contents.json";
import giteaFile from "./recorded/gitea-file.json";
import giteaPull from "./recorded/gitea-pull.json";
import giteaRepo from "./recorded/gitea-repo.json";
import giteaStatuses from "./recorded/gitea-statuses.json";
import machinesHistory from "./recorded/machines-history.json";
import portalActivity from "./recorded/portal-activity.json";
import portalPlan from "./recorded/portal-plan.json";
import portalWhy from "./recorded/portal-why.json";
import scaffolderDryRun from "./recorded/scaffolder-dry-run.json";
import scaffolderSchema from "./recorded/scaffolder-schema.json";
import recordedSession from "./recorded/session.json";
import type { DryRun, ParameterSchema } from "./scaffolder";

/** A type as the compiler sees it in a file: one of some words is any word there, and what only some of several have is undefined in the others. */
type Said<T> = T extends string ? string : T extends readonly (infer One)[] ? Said<One>[] : T extends object ? { [K in keyof T]: string extends K ? Said<T[K]> | undefined : Said<T[K]> } : T;

/** An answer that has what its type promises. */
const held = <T>(answer: Said<T>): T => answer as T;

const session = held<Session>(recordedSession);
const [page, entity, live] = [held<Page>(catalogPage), held<Entity>(catalogEntity), held<Live>(catalogLive)];
const tree = held<Tree>(argoTree);
const [schema, dryRun] = [held<ParameterSchema>(scaffolderSchema), held<DryRun>(scaffolderDryRun)];
const [repo, branches, contents, file] = [held<Repo>(giteaRepo), held<Branch[]>(giteaBranches), held<Entry[]>(giteaContents), held<Entry>(giteaFile)];
const [commits, commit, pull] = [held<Commit[]>(giteaCommits), held<Commit>(giteaCommit), held<Pull>(giteaPull)];
const [comments, statuses] = [held<Comment[]>(giteaComments), held<Status[]>(giteaStatuses)];
const [activity, why, plan] = [held<Activity>(portalActivity), held<Why>(portalWhy), held<ApplicationPlan>(portalPlan)];
const [explanation, rules, counters] = [held<Explanation>(gatewayExplanation), held<Items<Rule>>(gatewayRules), held<Items<Counter>>(gatewayCounters)];
const history = held<History>(machinesHistory);

describe("answers of a real server", () => {
    it("say who is signed in", () => {
        expect([session.user.name, session.workspace]).toEqual(["root/admin", "root"]);
    });
    it("of the catalog", () => {
        expect(page.items.length).toBeLessThanOrEqual(page.totalItems);
        expect([refOf(entity), titleOf(entity), live.applications[0]?.name]).toEqual(["component:default/web", "web", "web"]);
    });
    it("of Applications", () => {
        expect(tree.nodes?.map(it => it.kind)).toContain("Namespace");
    });
    it("of the scaffolder", () => {
        expect(shownOf(schema).every(Boolean)).toBe(true);
        expect(mayCreate({ answer: dryRun, isLoading: false })).toBe(dryRun.foreseen?.succeeds);
        expect(dryRun.foreseen?.objects[0]).toHaveProperty("allowed");
    });
    it("of the Git host", () => {
        expect(branches.map(it => it.name)).toContain(repo.default_branch);
        expect(contents.map(it => it.type)).toContain("dir");
        expect(textOf(file)).toContain("web");
        expect(commits.map(it => it.sha)).toContain(commit.sha);
        expect([pull.state, pull.base.ref, comments[0]?.body, statuses]).toEqual(["open", "main", "Looks good", []]);
    });
    it("of the portal", () => {
        expect(activity.items[0]?.code).toBeGreaterThan(0);
        expect(why.verdict).toContain(why.firstBroken ?? "every link holds");
        expect(plan.changes?.[0]?.kind).toBe("VirtualMachine");
    });
    it("of gateways", () => {
        expect(explanation.status?.stages?.[0]?.kind).toBe("Request");
        expect(rules.items[0]?.backends.length).toBeGreaterThan(0);
        expect(usedUp(counters.items, new Map())).toHaveLength(counters.items.length);
    });
    it("of machines", () => {
        for (const figure of FIGURES) expect(history[figure]).toHaveLength(history.time.length);
        expect(rowsOf(history, "5m").length).toBeGreaterThan(0);
    });
});
