// One Application: its tree, what can be done with it, and what one of its objects is.

import { Alert, AlertActionLink } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { type ReactNode, useState } from "react";
import { useNavigate, useParams, useSearchParams } from "react-router";
import { APPLICATIONS, type Application, LIVE_MS, patch, remove, subresource, useAction, useAnswer, useObject } from "../../api";
import type { Tree as Answer } from "../../api/rest/argo";
import { t } from "../../text/applications";
import { Age, CommandHint, Conditions, Confirm, ConfirmByName, Events, Failed, Loading, NotFound, PageHeader, sh, Stale, StatusLabel, Why, YamlView } from "../../widgets";
import { locale } from "../../text/t";
import { AddressTabs, Facts, Problem } from "../pieces/parts";
import { AutoSync } from "./AutoSync";
import { Commit, StatusPanel } from "./StatusPanel";
import { ObjectPanel } from "./ObjectPanel";
import { Resources } from "./Resources";
import { SyncDialog } from "./SyncDialog";
import { Tree } from "./Tree";
import { healthOf, idOf, syncOf, type TreeNode, waitingApproval, withMissing } from "./model";
import { isAutomated } from "./sync";

const CASCADE = "resources-finalizer.argocd.argoproj.io";

export function Details(): ReactNode {
    const { namespace = "", name = "" } = useParams();
    const found = useObject(APPLICATIONS, namespace, name);
    if (found.state === "absent") return <NotFound />;
    if (!found.object) return found.error ? <Failed isPage error={found.error} /> : <Loading isPage />;
    return <Shown app={found.object} namespace={namespace} name={name} />;
}

function Shown(props: { app: Application; namespace: string; name: string }): ReactNode {
    const { app, namespace, name } = props;
    const navigate = useNavigate();
    const [params, setParams] = useSearchParams();
    const [dialog, setDialog] = useState<"sync" | "delete" | "approve" | "terminate">();
    // The tree is asked for again when the Application says that something of it has changed, and by the clock: what grew out of its objects
    // changes without a word of the Application.
    const tree = useAnswer(`tree ${namespace}/${name} ${app.metadata.resourceVersion}`, signal =>
        subresource<Answer>(APPLICATIONS, namespace, name, "tree", { signal }), LIVE_MS);
    const [kept, setKept] = useState<TreeNode[]>();
    if (tree.answer?.nodes && tree.answer.nodes !== kept) setKept(tree.answer.nodes);
    const nodes = withMissing(kept, app);
    const annotate = useAction((key: string, value: string) => patch(APPLICATIONS, namespace, name, { metadata: { annotations: { [key]: value } } }), t("requested", { what: t("refresh"), name }));
    const digest = waitingApproval(app);
    const isRunning = app.status?.operationState?.phase === "Running";
    const chosenId = params.get("object");
    const chosen = nodes.find(node => idOf(node) === chosenId);
    const choose = (id: string): void => setParams(before => {
        if (id === "") before.delete("object");
        else before.set("object", id);
        return before;
    });
    const toSummary = (): void => setParams(before => {
        before.delete("object");
        before.set("tab", "summary");
        return before;
    });
    const resources = (
        <Resources nodes={nodes} chosen={chosen && <ObjectPanel app={app} node={chosen} onClose={() => choose("")} />} onChoose={choose}>
            {shown => <Tree name={name} health={healthOf(app)} sync={syncOf(app)} nodes={shown} chosen={chosenId ?? undefined} onChoose={choose} onRoot={toSummary} />}
        </Resources>
    );
    return (
        <>
            <PageHeader
                title={name} above={[{ to: "/applications", label: t("title") }]} here={name}
                actions={<>
                    <Button onClick={() => setDialog("sync")}>{t("doSync")}</Button>
                    <Button variant="secondary" isLoading={annotate.isRunning} onClick={() => void annotate.run("argocd.argoproj.io/refresh", "normal")}>{t("refresh")}</Button>
                    <Button variant="secondary" onClick={() => void annotate.run("argocd.argoproj.io/refresh", "hard")}>{t("hardRefresh")}</Button>
                    {isRunning && <Button variant="secondary" onClick={() => setDialog("terminate")}>{t("terminate")}</Button>}
                    <Button variant="secondary" isDanger onClick={() => setDialog("delete")}>{t("remove")}</Button>
                </>}
            >
                <StatusPanel app={app} />
            </PageHeader>
            <PageSection className="fw-stack">
                <Problem error={annotate.error ?? (kept ? undefined : tree.error)} />
                <Stale of={{ ...tree, answer: kept }} />
                {digest && (
                    <Alert
                        variant="warning" isInline title={t("waits")}
                        actionLinks={<AlertActionLink onClick={() => setDialog("approve")}>{t("approve")}</AlertActionLink>}
                    >
                        <span className="fw-wrap">{app.status?.operationState?.message}</span>
                    </Alert>
                )}
                <AddressTabs label={name} tabs={[
                    ["tree", t("resources"), () => resources],
                    ["summary", t("summary"), () => <Summary app={app} />],
                    ["history", t("history"), () => <History app={app} />],
                    ["events", t("events"), () => <Events kind="Application" namespace={namespace} name={name} uid={app.metadata.uid} />],
                    ["why", t("why"), () => <Why kind="Application" namespace={namespace} name={name} />],
                    ["yaml", t("yaml"), () => <YamlView value={app} name={`${name}.yaml`} />],
                ]} />
                <CommandHint commands={[sh`fairway app get ${name}`, sh`fairway app sync ${name}`, sh`fairway app diff ${name}`, sh`kubectl get application ${name} -n ${namespace} -o yaml`]} />
            </PageSection>
            {dialog === "sync" && <SyncDialog app={app} onClose={() => setDialog(undefined)} />}
            {dialog === "approve" && digest && (
                <ConfirmByName title={t("approveTitle", { name })} name={name} action={t("approve")} onClose={() => setDialog(undefined)} told={t("deletionsApproved", { name })}
                    onConfirm={() => patch(APPLICATIONS, namespace, name, { metadata: { annotations: { "fairway.dev/approve-sync": digest } } })}>
                    <p>{t("approveWhat")}</p>
                    <p className="fw-wrap">{app.status?.operationState?.message}</p>
                </ConfirmByName>
            )}
            {dialog === "terminate" && (
                <Confirm title={t("terminateTitle", { name })} action={t("terminate")} onClose={() => setDialog(undefined)} told={t("terminationRequested", { name })}
                    onConfirm={() => subresource(APPLICATIONS, namespace, name, "terminate", { method: "POST", body: {} })}>
                    <p>{t("terminateWhat")}</p>
                    <p className="fw-wrap">{app.status?.operationState?.message}</p>
                </Confirm>
            )}
            {dialog === "delete" && (
                <ConfirmByName title={t("deleteTitle", { name })} name={name} action={t("remove")} onClose={() => setDialog(undefined)} told={t("deletionRequested", { name })}
                    onConfirm={async () => { await destroy(app); void navigate("/applications"); }}>
                    <p>{t("deleteWhat", { n: app.status?.resources?.length ?? 0 })}</p>
                    <ul className="fw-long-list" tabIndex={0} aria-label={t("resources")}>{(app.status?.resources ?? []).map(it => <li key={`${it.kind} ${it.namespace} ${it.name}`} className="fw-wrap">{[it.kind, it.namespace, it.name].filter(Boolean).join(" ")}</li>)}</ul>
                </ConfirmByName>
            )}
        </>
    );
}

/** With its objects, as the dialog says: without Argo CD's finalizer they would stay. */
async function destroy(app: Application): Promise<void> {
    const { namespace, name = "", finalizers = [], deletionTimestamp } = app.metadata;
    const cascades = finalizers.some(it => it.startsWith(CASCADE));
    if (!cascades && !deletionTimestamp) await patch(APPLICATIONS, namespace, name, { metadata: { finalizers: [...finalizers, CASCADE] } });
    await remove(APPLICATIONS, namespace, name);
}

function Summary(props: { app: Application }): ReactNode {
    const { app } = props;
    const source = app.spec.source ?? app.spec.sources?.[0];
    const operation = app.status?.operationState;
    return (
        <>
            <Facts of={[
                [t("project"), app.spec.project],
                [t("source"), [source?.repoURL, source?.path ?? source?.chart, source?.targetRevision].filter(Boolean).join(" ")],
                [t("destination"), `${app.spec.destination.name ?? app.spec.destination.server ?? "in-cluster"} / ${app.spec.destination.namespace ?? "-"}`],
                [t("sync"), <StatusLabel key="sync" word={syncOf(app)} />],
                [t("revision"), app.status?.sync?.revision],
                [t("automated"), <span key="automated" className="fw-row-gap">{t(isAutomated(app) ? "on" : "off")} <AutoSync app={app} /></span>],
                [t("pruneResources"), t(app.spec.syncPolicy?.automated?.prune ? "on" : "off")],
                [t("selfHeal"), t(app.spec.syncPolicy?.automated?.selfHeal ? "on" : "off")],
                [t("operation"), <StatusLabel key="operation" word={operation?.phase} />],
                [t("message"), operation?.message],
                [t("health"), <span key="health" className="fw-row-gap"><StatusLabel word={healthOf(app)} /> {app.status?.health?.message}</span>],
            ]} />
            <h2>{t("conditions")}</h2>
            <Conditions conditions={app.status?.conditions?.map(it => ({ ...it, status: "True" }))} />
        </>
    );
}

function History(props: { app: Application }): ReactNode {
    const { metadata, spec, status } = props.app;
    const name = metadata.name ?? "";
    const [chosen, setChosen] = useState<{ id: number; revision: string; at?: string }>();
    const isOn = isAutomated(props.app);
    const entries = [...(status?.history ?? [])].reverse();
    if (entries.length === 0) return <p className="fw-muted">{t("noHistory")}</p>;
    return (
        <>
            {isOn && <Alert variant="info" isInline isPlain title={t("rollbackNote")} />}
            <div className="fw-row-gap"><AutoSync app={props.app} /></div>
            <ul className="fw-plain-list">
                {entries.map((entry, at) => (
                    <li key={String(entry.id)} className="fw-row-gap">
                        <Commit address={entry.source?.repoURL ?? spec.source?.repoURL ?? ""} revision={entry.revision ?? ""} />
                        <Age of={entry.deployedAt} />
                        <span>{entry.initiatedBy?.username ?? (entry.initiatedBy?.automated ? t("automated") : "")}</span>
                        {at > 0 && <Button variant="secondary" size="sm" isDisabled={isOn} onClick={() => setChosen({ id: Number(entry.id), revision: entry.revision ?? "", at: entry.deployedAt })}>{t("rollback")}</Button>}
                    </li>
                ))}
            </ul>
            {chosen && (
                <ConfirmByName title={t("rollbackTitle", { name })} name={name} action={t("rollback")} onClose={() => setChosen(undefined)} told={t("requested", { what: t("rollback"), name })}
                    onConfirm={() => subresource(APPLICATIONS, metadata.namespace, name, "rollback", { method: "POST", body: { id: chosen.id } })}>
                    <p className="fw-wrap">{t("rollbackWhat", { name, revision: chosen.revision, at: chosen.at ? new Date(chosen.at).toLocaleString(locale()) : "-" })}</p>
                </ConfirmByName>
            )}
        </>
    );
}
