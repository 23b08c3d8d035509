// What merging would change, Application by Application, asked of Fairway itself: what stands in comments anybody may have written.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { APPLICATIONS, type Application, json, PATIENCE_MS, session, useAnswer, useList, workspace } from "../../api";
import type { Pull } from "../../api/rest/gitea";
import type { ApplicationPlan } from "../../api/rest/portal";
import { t } from "../../text/repositories";
import { Failed, Loading, maskedTogether, StatusLabel, toYaml } from "../../widgets";
import { DiffView } from "../pieces/DiffView";
import { Live } from "../pieces/parts";
import { followers } from "./followers";

/** Plans at once: each renders manifests on the server. */
const AT_ONCE = 4;

interface Planned { app: Application; plan?: ApplicationPlan; failure?: string }

async function plansOf(apps: Application[], repoURL: string, pull: number, signal: AbortSignal): Promise<Planned[]> {
    const planned: Planned[] = [];
    for (let at = 0; at < apps.length; at += AT_ONCE) {
        planned.push(...await Promise.all(apps.slice(at, at + AT_ONCE).map(async app => {
            const query = { workspace: workspace(), namespace: app.metadata.namespace, name: app.metadata.name, repoURL, pull };
            try {
                return { app, plan: await json<ApplicationPlan>("/api/fairway/applications/plan", { query, signal, patienceMs: PATIENCE_MS.doing }) };
            } catch (thrown) {
                if (signal.aborted) throw thrown;
                return { app, failure: thrown instanceof Error ? thrown.message : String(thrown) };
            }
        })));
    }
    return planned;
}

export function Plan(props: { owner: string; name: string; pull: Pull }): ReactNode {
    const url = `${session().gitUrl ?? ""}/${props.owner}/${props.name}.git`;
    const found = useList(APPLICATIONS);
    const apps = followers(found.items, url);
    // What cannot be merged changes nothing; every plan would only say so.
    if (props.pull.mergeable === false) return <Alert variant="warning" isInline title={t("conflicts", { head: props.pull.head.ref, base: props.pull.base.ref })} />;
    return (
        <Live of={found}>
            {apps.length === 0 ? <p className="fw-muted">{t("noFollower")}</p> : <Plans apps={apps} url={url} pull={props.pull} />}
        </Live>
    );
}

function Plans(props: { apps: Application[]; url: string; pull: Pull }): ReactNode {
    const { apps, url, pull } = props;
    const key = apps.map(app => `${app.metadata.namespace}/${app.metadata.name}`).join(" ");
    const found = useAnswer(`plan ${url} ${pull.number} ${pull.head.sha} ${key}`, signal => plansOf(apps, url, pull.number, signal));
    if (found.error) return <Failed error={found.error} again={found.again} />;
    if (!found.answer) return <Loading />;
    const told = found.answer.filter(it => it.failure !== undefined || it.plan?.touched);
    return (
        <>
            <p className="fw-muted">{t("planNote")}</p>
            {told.length === 0 && <p>{t("untouched", { n: apps.length })}</p>}
            {told.map(it => <Planned key={`${it.app.metadata.namespace}/${it.app.metadata.name}`} of={it} />)}
        </>
    );
}

const impactTone = (impact: string | undefined): "red" | "green" | "orange" => (impact === "data loss" ? "red" : impact === "none" ? "green" : "orange");

function Planned(props: { of: Planned }): ReactNode {
    const { app, plan, failure = plan?.failure } = props.of;
    const { namespace, name = "" } = app.metadata;
    const changes = plan?.changes ?? [];
    return (
        <section aria-label={name} className="fw-stack">
            <h2 className="fw-row-gap"><Link to={`/applications/${namespace}/${name}`}>{name}</Link> {plan?.impact && !failure && <StatusLabel word={`${t("impact")}: ${plan.impact}`} tone={impactTone(plan.impact)} />}</h2>
            {failure && <Alert variant="danger" isInline title={t("planFailed", { why: failure })} />}
            {plan?.approval !== undefined && <Alert variant="warning" isInline title={t("approval")} />}
            {changes.length === 0 && !failure && <p className="fw-muted">{t("noEffect")}</p>}
            {changes.map(change => ({ change, texts: maskedTogether([change.live, change.target]).map(it => (it ? toYaml(it) : "")) })).map(({ change, texts: [before = "", after = ""] }) => (
                <section key={`${change.group} ${change.kind} ${change.namespace}/${change.name}`} aria-label={`${change.kind} ${change.name}`}>
                    <h3 className="fw-row-gap"><StatusLabel word={change.action} tone="purple" /> {change.kind} {[change.namespace, change.name].filter(Boolean).join("/")} <StatusLabel word={change.impact} tone={impactTone(change.impact)} /></h3>
                    <DiffView before={before} after={after} label={`${change.kind} ${change.name}`} />
                </section>
            ))}
        </section>
    );
}
