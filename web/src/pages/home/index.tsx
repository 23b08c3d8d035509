// Home: what needs attention, what is mine, and how things are.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Card, CardBody, CardTitle } from "@patternfly/react-core/dist/dynamic/components/Card";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { useMemo } from "react";
import { Link } from "react-router";
import type { components as Authorization } from "../../api/generated/authorization";
import { useAnswer, useList } from "../../api/hooks";
import { API_KEY_APPROVALS, API_KEY_REQUESTS, type APIKeyRequest, APPLICATIONS, GATEWAYS, NODES, VIRTUAL_MACHINES, type Voyage, VOYAGES } from "../../api/kinds";
import { clusterPath } from "../../api/kubernetes";
import { json } from "../../api/request";
import { session, workspace } from "../../api/session";
import type { Snapshot } from "../../api/store";
import { entities } from "../../catalog/client";
import { entityPath, refOf, titleOf } from "../../catalog/entity";
import type { Thing } from "../../links";
import { hasPage } from "../../pages";
import { t } from "../../text/home";
import { Age, CommandHint, Loading, PageHeader, StatusLabel, useNow } from "../../widgets";
import { decided } from "../gateways/model";
import { runTitle } from "../voyages/runs";
import { thingsOf } from "../voyages/steps";
import { concernsOf, ifMine, sightOf } from "./attention";

type SelfSubjectAccessReview = Authorization["schemas"]["io.k8s.api.authorization.v1.SelfSubjectAccessReview"];

const SHOWN = 8;
/** Namespaces that are asked about rights in. */
const MOST_ASKED = 20;

export default function Home() {
    const { user } = session();
    const [applications, machines, voyages] = [useList(APPLICATIONS), useList(VIRTUAL_MACHINES), useList(VOYAGES)];
    const [gateways, nodes, requests] = [useList(GATEWAYS), useList(NODES), useList(API_KEY_REQUESTS)];
    const answerable = useAnswerable(requests.items);
    const now = useNow();
    const hour = Math.floor(now / 3_600_000);
    const concerns = useMemo(
        () => concernsOf({ applications: applications.items, machines: machines.items, voyages: voyages.items, gateways: gateways.items, nodes: nodes.items, requests: answerable }, hour * 3_600_000),
        [applications.items, machines.items, voyages.items, gateways.items, nodes.items, answerable, hour],
    );
    const { isWhole, isLoading, blind } = sightOf({
        [t("applications")]: applications, [t("machines")]: machines, [t("runs")]: voyages,
        [t("gateways")]: ifMine(gateways), [t("nodes")]: ifMine(nodes), [t("requests")]: ifMine(requests),
    });
    const runs = useMemo(
        () => voyages.items.filter(one => one.spec.requestedBy?.username === user.name).sort((a, b) => String(b.metadata?.creationTimestamp).localeCompare(String(a.metadata?.creationTimestamp))),
        [voyages.items, user.name],
    );
    const healthy = applications.items.filter(one => one.status?.health?.status === "Healthy").length;
    const running = machines.items.filter(one => one.status?.printableStatus === "Running").length;
    return (
        <>
            <PageHeader
                title={t("title", { name: user.displayName || user.name })}
                description={t("description", { workspace: workspace() })}
                actions={<Link to="/create" className="pf-v6-c-button pf-m-primary">{t("start")}</Link>}
            />
            <PageSection isFilled>
                <div className="fw-split main">
                    <div className="fw-stack">
                        <Card>
                            <CardTitle component="h2">{t("attention")}</CardTitle>
                            <CardBody>
                                {isLoading && <Loading />}
                                {blind.length > 0 && (
                                    <Alert variant="warning" isInline title={t("blind")}>
                                        <ul>{blind.map(({ what, error }) => <li key={what}>{what}: {error.status === 403 ? t("forbidden") : `${error.message}. ${error.advice}`}</li>)}</ul>
                                    </Alert>
                                )}
                                {isWhole && concerns.length === 0 && <p><StatusLabel word={t("allWell")} tone="green" /> {t("allWellBody")}</p>}
                                <ul className="fw-events" aria-live="polite">
                                    {concerns.slice(0, SHOWN).map(one => (
                                        <li key={one.key}>
                                            <span className="fw-row-gap"><StatusLabel word={one.word} tone={one.tone} /> {one.kind} {one.to ? <Link to={one.to}>{one.name}</Link> : one.name}</span>
                                            <div className="fw-detail">{one.message.slice(0, 300)}</div>
                                        </li>
                                    ))}
                                </ul>
                                {concerns.length > SHOWN && <p className="fw-muted">{t("more", { n: concerns.length - SHOWN })}</p>}
                            </CardBody>
                        </Card>
                        <Mine runs={runs} />
                    </div>
                    <div className="fw-stack">
                        <Card>
                            <CardTitle component="h2">{t("overview")}</CardTitle>
                            <CardBody>
                                <Count label={t("applications")} to="/applications" of={applications} text={t("healthy", { good: healthy, all: applications.items.length })} />
                                <Count label={t("machines")} to="/machines" of={machines} text={t("running", { good: running, all: machines.items.length })} />
                            </CardBody>
                        </Card>
                        <Card>
                            <CardTitle component="h2">{t("myRuns")}</CardTitle>
                            <CardBody>
                                {runs.length === 0 && voyages.state === "live" && <p className="fw-muted">{t("noRuns")}</p>}
                                <ul className="fw-events">
                                    {runs.slice(0, 5).map(one => (
                                        <li key={one.metadata?.uid} className="fw-row-gap">
                                            <StatusLabel word={one.status?.phase ?? "Pending"} />
                                            <Link to={`/voyages/${one.metadata?.namespace}/${one.metadata?.name}`}>{runTitle(one)}</Link>
                                            <span className="fw-muted"><Age of={one.metadata?.creationTimestamp} /></span>
                                        </li>
                                    ))}
                                </ul>
                                {runs.length > 5 && <Link to="/voyages">{t("seeAll")}</Link>}
                            </CardBody>
                        </Card>
                    </div>
                </div>
                <CommandHint commands={["kubectl get applications,vms,voyages -A", "fairway status"]} />
            </PageSection>
        </>
    );
}

/** The requests for keys that the one who looks may answer: in their namespace somebody has given him that right. */
function useAnswerable(requests: APIKeyRequest[]): APIKeyRequest[] {
    const places = [...new Set(requests.filter(one => decided(one) === "Pending").map(one => one.metadata?.namespace ?? ""))].sort().slice(0, MOST_ASKED);
    const asked = useAnswer(`may approve ${places.join(" ")}`, async signal => {
        const may = await Promise.all(places.map(async namespace => {
            const spec = { resourceAttributes: { namespace, verb: "create", group: API_KEY_APPROVALS.group, resource: API_KEY_APPROVALS.plural } };
            const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec };
            const review = await json<SelfSubjectAccessReview>(`${clusterPath()}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews`, { method: "POST", body, signal });
            return review.status?.allowed === true;
        }));
        return places.filter((_, at) => may[at]);
    });
    return useMemo(() => requests.filter(one => asked.answer?.includes(one.metadata?.namespace ?? "")), [requests, asked.answer]);
}

function Count({ label, to, of, text }: { label: string; to: string; of: Snapshot<object>; text: string }) {
    const title = hasPage(to.slice(1)) ? <Link to={to}>{label}</Link> : label;
    return <p>{title}: {of.error?.status === 403 ? t("forbidden") : of.error && of.items.length === 0 ? t("unseen") : of.state === "loading" ? "…" : text}</p>;
}

/** What runs have made and is still there, each once. */
function madeBy(runs: Voyage[]): Thing[] {
    return [...new Map(runs.flatMap(thingsOf).map(one => [one.to, one])).values()];
}

function Mine({ runs }: { runs: Voyage[] }) {
    const { user } = session();
    const last = (text: string): string => (text.split(/[:/]/).pop() ?? text).toLowerCase();
    const owners = [`user:default/${last(user.name)}`, ...(user.groups ?? []).filter(group => !group.startsWith("system:")).map(group => `group:default/${last(group)}`)];
    const filter = owners.map(owner => `relations.ownedBy=${owner}`).join(",");
    const asked = useAnswer(`mine ${filter}`, signal => entities({ fields: "kind,metadata.name,metadata.namespace,metadata.title,metadata.description", orderField: "metadata.name,asc" }, [filter], signal, 100));
    const made = useMemo(() => madeBy(runs), [runs]);
    return (
        <Card>
            <CardTitle component="h2">{t("mine")}</CardTitle>
            <CardBody>
                {asked.error && <p className="fw-muted">{asked.error.status === 403 ? t("forbidden") : asked.error.advice}</p>}
                {asked.answer?.items.length === 0 && made.length === 0 && <p className="fw-muted">{t("noMine")}</p>}
                <ul className="fw-events">
                    {(asked.answer?.items ?? []).slice(0, SHOWN).map(one => (
                        <li key={refOf(one)}>
                            {one.kind} <Link to={entityPath(refOf(one))}>{titleOf(one)}</Link> <span className="fw-muted">{one.metadata.description}</span>
                        </li>
                    ))}
                </ul>
                {(asked.answer?.total ?? 0) > SHOWN && <Link to="/catalog?kind=all">{t("seeAll")}</Link>}
                {made.length > 0 && <h3>{t("ofRuns")}</h3>}
                <ul className="fw-events" aria-label={t("ofRuns")}>{made.slice(0, SHOWN).map(one => <li key={one.to}>{one.kind} <Link to={one.to}>{one.name}</Link></li>)}</ul>
                {made.length > SHOWN && <Link to="/voyages">{t("seeAll")}</Link>}
            </CardBody>
        </Card>
    );
}
