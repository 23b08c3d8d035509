// The panel beside the tree: one object of an Application, as it is and as Git declares it.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { type ReactNode, useEffect, useRef } from "react";
import { Link } from "react-router";
import { APPLICATIONS, type Application, clusterPath, json, LIVE_MS, subresource, useAnswer } from "../../api";
import type { ApplicationPlan } from "../../api/rest/portal";
import { pageOf } from "../../links";
import { t } from "../../text/applications";
import { Age, CommandHint, Events, Failed, Loading, maskedTogether, sh, Stale, StatusLabel, toYaml, WhyOf, YamlView } from "../../widgets";
import { DiffView } from "../pieces/DiffView";
import { AddressTabs, Facts } from "../pieces/parts";
import { idOf, type TreeNode } from "./model";
import { Standing } from "./Standing";

/** Where an object is read: the plural of its kind is the API's to say. */
async function read(node: TreeNode, signal: AbortSignal): Promise<unknown> {
    const base = `${clusterPath()}${node.group ? `/apis/${node.group}/${node.version ?? "v1"}` : `/api/${node.version ?? "v1"}`}`;
    const { resources } = await json<{ resources: { name: string; kind: string; namespaced: boolean }[] }>(base, { signal });
    const served = resources.find(it => it.kind === node.kind && !it.name.includes("/"));
    if (!served) return undefined;
    const within = served.namespaced && node.namespace ? `/namespaces/${node.namespace}` : "";
    return json(`${base}${within}/${served.name}/${encodeURIComponent(node.name)}`, { signal });
}

export function ObjectPanel(props: { app: Application; node: TreeNode; onClose: () => void }): ReactNode {
    const { app, node } = props;
    const get = [sh`kubectl get ${[node.kind.toLowerCase(), node.group].filter(Boolean).join(".")} ${node.name}`, ...(node.namespace ? [sh`-n ${node.namespace}`] : []), "-o yaml"].join(" ");
    const place = useRef<HTMLElement>(null);
    const id = idOf(node);
    // What was chosen may be far from where its panel is.
    useEffect(() => {
        place.current?.focus({ preventScroll: true });
        place.current?.scrollIntoView({ block: "nearest" });
    }, [id]);
    const to = pageOf(node);
    return (
        <aside ref={place} tabIndex={-1} aria-label={`${node.kind} ${node.name}`} className="fw-stack fw-beside">
            <div className="fw-page-head">
                <h2 className="fw-wrap">{node.kind} {node.name}</h2>
                <Button variant="plain" aria-label={t("close")} onClick={props.onClose}>✕</Button>
            </div>
            {to && <Link to={to}>{t("toPage")}</Link>}
            <AddressTabs label={node.name} parameter="panel" tabs={[
                ["summary", t("summary"), () => <Facts of={[
                    [t("kind"), [node.group, node.version, node.kind].filter(Boolean).join("/")], [t("namespace"), node.namespace],
                    [t("sync"), (node.sync || node.hook) && <Standing key="sync" of={node} />],
                    [t("health"), <StatusLabel key="health" word={node.health?.status} />], [t("message"), node.health?.message],
                    [t("created"), <Age key="age" of={node.createdAt} />],
                ]} />],
                ["diff", t("diff"), () => <Diff app={app} node={node} />],
                ["live", t("live"), () => <LiveManifest node={node} version={app.metadata.resourceVersion ?? ""} />],
                ["why", t("why"), () => <WhyOf kind={node.kind} namespace={node.namespace} name={node.name} application={{ namespace: app.metadata.namespace ?? "", name: app.metadata.name ?? "" }} />],
                ["events", t("events"), () => <Events kind={node.kind} namespace={node.namespace} name={node.name} />],
            ]} />
            <CommandHint commands={[get, sh`fairway app diff ${app.metadata.name}`]} />
        </aside>
    );
}

function LiveManifest(props: { node: TreeNode; version: string }): ReactNode {
    const { node } = props;
    const found = useAnswer(`live ${node.kind} ${node.namespace} ${node.name} ${props.version}`, signal => read(node, signal), LIVE_MS);
    if (found.error?.status === 404) return <p>{t("notLive")}</p>;
    if (found.answer === undefined && found.error) return <Failed error={found.error} again={found.again} />;
    if (!found.answer) return found.isLoading ? <Loading /> : <p>{t("notLive")}</p>;
    return <><Stale of={found} /><YamlView value={found.answer} name={`${node.name}.yaml`} /></>;
}

function Diff(props: { app: Application; node: TreeNode }): ReactNode {
    const { app, node } = props;
    const { namespace, name = "", resourceVersion } = app.metadata;
    const plan = useAnswer(`plan ${namespace}/${name} ${resourceVersion}`, signal =>
        subresource<ApplicationPlan>(APPLICATIONS, namespace, name, "plan", { method: "POST", body: {}, signal }));
    if (plan.error) return <Failed error={plan.error} again={plan.again} />;
    if (!plan.answer) return <Loading />;
    if (plan.answer.failure) return <p className="fw-wrap">{plan.answer.failure}</p>;
    const change = plan.answer.changes?.find(it => it.kind === node.kind && it.name === node.name && (it.namespace ?? "") === (node.namespace ?? ""));
    if (!change) return <p>{t("noDiff")}</p>;
    const [before = "", after = ""] = maskedTogether([change.live, change.target]).map(it => (it ? toYaml(it) : ""));
    return (
        <>
            <span className="fw-row-gap"><StatusLabel word={change.action} tone="purple" /><StatusLabel word={change.impact} tone={change.impact === "data loss" ? "red" : change.impact === "none" ? "green" : "orange"} /></span>
            <DiffView before={before} after={after} label={t("diff")} />
        </>
    );
}
