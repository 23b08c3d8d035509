// One object of a gateway or an API: what it is, how it stands and who says so, its events, its YAML, and why.

import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import type { ReactNode } from "react";
import { Link, useParams } from "react-router";
import { API_KEYS, API_PRODUCTS, AUTH_POLICIES, GATEWAYS, HTTP_ROUTES, type KubernetesObject, PLAN_POLICIES, RATE_LIMIT_POLICIES, type Resource, ROUTES, type Service, SERVICES, useObject } from "../../api";
import { Age, CommandHint, Conditions, Events, EXPLAINED, Failed, Loading, NotFound, PageHeader, sh, StatusLabel, WhyOf, YamlView } from "../../widgets";
import { AddressTabs, Facts, Tags } from "../pieces/parts";
import { MORE } from "./kinds";
import { conditionsOf, PAGES, pathOf, portsOf, standing } from "./model";
import { Endpoints } from "./Services";
import { t } from "./text";

const RESOURCES = new Map([GATEWAYS, HTTP_ROUTES, ROUTES, AUTH_POLICIES, RATE_LIMIT_POLICIES, PLAN_POLICIES, API_PRODUCTS, API_KEYS, SERVICES, ...MORE].map(it => [it.plural, it as Resource]));
/** The tab of the list where the kind is. */
const TABS: Record<string, string> = { gateways: "gateways", httproutes: "routes", routes: "routes", authpolicies: "policies", ratelimitpolicies: "policies", planpolicies: "policies", apiproducts: "products", apikeys: "keys", services: "services",
    grpcroutes: "routes", tlsroutes: "routes", tcproutes: "routes", tlspolicies: "policies", dnspolicies: "policies",
};
/** What says that it works, of each kind's conditions. */
const GOOD = ["Accepted", "ResolvedRefs", "Programmed", "Enforced", "Admitted", "Ready", "Approved"];

interface Ref { kind?: string; namespace?: string; name?: string; sectionName?: string }
/** What the kinds have in common, and what they have for themselves. */
interface Shape extends KubernetesObject {
    spec?: {
        gatewayClassName?: string; hostnames?: string[]; host?: string; parentRefs?: Ref[]; targetRef?: Ref; to?: Ref; rules?: { backendRefs?: Ref[] }[] | object; apiProductRef?: Ref; planTier?: string; useCase?: string; requestedBy?: { userId?: string };
        displayName?: string; approvalMode?: string; publishStatus?: string; listeners?: { name: string; port?: number; protocol?: string; hostname?: string }[];
    };
    status?: Parameters<typeof conditionsOf>[0] & { addresses?: { value?: string }[] };
}

export function ObjectPage(): ReactNode {
    const { plural = "", namespace = "", name = "" } = useParams();
    const resource = RESOURCES.get(plural);
    if (!resource) return <NotFound>{t("noSuch")}</NotFound>;
    return <Found key={`${plural} ${namespace}/${name}`} resource={resource} namespace={namespace} name={name} />;
}

function Found(props: { resource: Resource; namespace: string; name: string }): ReactNode {
    const { resource, namespace, name } = props;
    const found = useObject(resource, namespace, name);
    if (found.state === "absent") return <NotFound />;
    if (!found.object) return found.error ? <Failed error={found.error} /> : <Loading />;
    const object = found.object as Shape;
    const { kind } = resource;
    const groups = conditionsOf(object.status);
    const state = standing(groups.flatMap(it => it.conditions), GOOD);
    const whole = { apiVersion: [resource.group, resource.version].filter(Boolean).join("/"), kind, ...object };
    return (
        <>
            <PageHeader
                title={object.spec?.displayName || name} description={`${kind} ${namespace}/${name}`}
                above={[{ to: `/gateways?tab=${TABS[resource.plural]}`, label: t("title") }]} here={name}
            >
                {/* A Service has no conditions: how it stands is what stands behind it. */}
                {kind !== "Service" && <StatusLabel word={state.word} tone={state.isGood ? "green" : "orange"} title={state.message} />}
            </PageHeader>
            <PageSection className="fw-stack">
                <AddressTabs label={name} tabs={[
                    ["summary", t("summary"), () => (kind === "Service" ? <ServiceSummary object={object as Service} /> : <Summary object={object} groups={groups} />)],
                    ["events", t("events"), () => <Events kind={kind} namespace={namespace} name={name} uid={object.metadata?.uid} />],
                    ["why", t("why"), () => <WhyOf kind={kind} namespace={namespace} name={name} />],
                    ["yaml", t("yaml"), () => <YamlView value={whole} name={`${name}.yaml`} />],
                ]} />
                <CommandHint commands={[sh`kubectl get ${[resource.plural, resource.group].filter(Boolean).join(".")} ${name} -n ${namespace} -o yaml`, ...(EXPLAINED.has(kind) ? [sh`fairway why ${`${kind.toLowerCase()}/${name}`} -n ${namespace}`] : [])]} />
            </PageSection>
        </>
    );
}

/** A link to what is meant, if that has a page. */
function To(props: { of: Ref; namespace: string; kind?: string }): ReactNode {
    const kind = props.of.kind ?? props.kind ?? "";
    const namespace = props.of.namespace ?? props.namespace;
    const text = [kind, `${namespace}/${props.of.name}`, props.of.sectionName].filter(Boolean).join(" ");
    return Object.values(PAGES).includes(kind) ? <Link to={pathOf(kind, namespace, props.of.name)}>{text}</Link> : text;
}

function ServiceSummary(props: { object: Service }): ReactNode {
    const { metadata, spec } = props.object;
    return (
        <>
            <Facts of={[
                [t("namespace"), metadata?.namespace], [t("type"), spec?.type], [t("address"), spec?.externalName ?? spec?.clusterIP], [t("ports"), portsOf(props.object)],
                [t("selector"), <Tags key="selector" of={spec?.selector} />], [t("created"), <Age key="age" of={metadata?.creationTimestamp} />], [t("labels"), <Tags key="labels" of={metadata?.labels} />],
            ]} />
            <Endpoints namespace={metadata?.namespace ?? ""} name={metadata?.name ?? ""} />
        </>
    );
}

function Summary(props: { object: Shape; groups: ReturnType<typeof conditionsOf> }): ReactNode {
    const { metadata, spec, status } = props.object;
    const namespace = metadata?.namespace ?? "";
    const hosts = spec?.hostnames ?? (spec?.host ? [spec.host] : []);
    // A policy has rules, too, which are no list.
    const rules: { backendRefs?: Ref[] }[] = Array.isArray(spec?.rules) ? spec.rules : [];
    const backends = [...new Map(rules.flatMap(it => it.backendRefs ?? []).map(it => [`${it.kind} ${it.namespace}/${it.name}`, it])).values()];
    const facts: [string, ReactNode][] = [
        [t("namespace"), namespace],
        [t("className"), spec?.gatewayClassName],
        [t("address"), status?.addresses?.map(it => it.value).join(", ")],
        [t("listeners"), spec?.listeners?.map(it => `${it.name} ${it.protocol} ${it.port} ${it.hostname ?? "*"}`).join("; ")],
        [t("hosts"), hosts.join(", ")],
        [t("parents"), spec?.parentRefs?.length ? <span className="fw-row-gap">{spec.parentRefs.map((it, at) => <To key={at} of={it} namespace={namespace} kind="Gateway" />)}</span> : undefined],
        [t("target"), spec?.targetRef ? <To of={spec.targetRef} namespace={namespace} /> : spec?.to ? <To of={spec.to} namespace={namespace} kind="Service" /> : undefined],
        [t("backendsOf"), backends.length ? <span className="fw-row-gap">{backends.map((it, at) => <To key={at} of={it} namespace={namespace} kind="Service" />)}</span> : undefined],
        [t("product"), spec?.apiProductRef ? <To of={spec.apiProductRef} namespace={namespace} kind="APIProduct" /> : undefined],
        [t("plan"), spec?.planTier], [t("useCase"), spec?.useCase], [t("requestedBy"), spec?.requestedBy?.userId],
        [t("approvalMode"), spec?.approvalMode], [t("published"), spec?.publishStatus],
        [t("created"), <Age key="age" of={metadata?.creationTimestamp} />],
        [t("labels"), <Tags key="labels" of={metadata?.labels} />],
    ];
    return (
        <>
            <Facts of={facts.filter(([, what]) => what !== undefined && what !== "")} />
            <h2>{t("conditions")}</h2>
            {props.groups.length === 0 && <Conditions conditions={undefined} />}
            {props.groups.map((group, at) => <section key={at} aria-label={group.of || t("conditions")}>{group.of && <h3>{group.of}</h3>}<Conditions conditions={group.conditions} /></section>)}
        </>
    );
}
