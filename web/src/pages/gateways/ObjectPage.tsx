// One object of a gateway or an API: what it is, how it stands and who says so, its events, its YAML, and why.

import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import type { ReactNode } from "react";
import { useParams } from "react-router";
import { API_KEYS, API_PRODUCTS, type APIProduct, AUTH_POLICIES, GATEWAYS, HTTP_ROUTES, PLAN_POLICIES, RATE_LIMIT_POLICIES, type Resource, ROUTES, type Service, SERVICES, useObject } from "../../api";
import { t } from "../../text/gateways";
import { Age, CommandHint, Conditions, Events, EXPLAINED, Failed, Loading, NotFound, PageHeader, sh, StatusLabel, WhyOf, YamlView } from "../../widgets";
import { AddressTabs, Facts, Tags } from "../pieces/parts";
import { factsOf } from "./facts";
import { MORE, type Shown } from "./kinds";
import { conditionsOf, portsOf, standing } from "./model";
import { Rules } from "./Rules";
import { Endpoints } from "./Services";

const RESOURCES = new Map([GATEWAYS, HTTP_ROUTES, ROUTES, AUTH_POLICIES, RATE_LIMIT_POLICIES, PLAN_POLICIES, API_PRODUCTS, API_KEYS, SERVICES, ...MORE].map(it => [it.plural, it as Resource]));
/** The tab of the list where the kind is. */
const TABS: Record<string, string> = { gateways: "gateways", httproutes: "routes", routes: "routes", authpolicies: "policies", ratelimitpolicies: "policies", planpolicies: "policies", apiproducts: "products", apikeys: "keys", services: "services",
    grpcroutes: "routes", tlsroutes: "routes", tcproutes: "routes", tlspolicies: "policies", dnspolicies: "policies",
};
/** What says that it works, of each kind's conditions. */
const GOOD = ["Accepted", "ResolvedRefs", "Programmed", "Enforced", "Admitted", "Ready", "Approved"];

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
    if (!found.object) return found.error ? <Failed isPage error={found.error} /> : <Loading isPage />;
    const object = found.object as Shown;
    const { kind } = resource;
    const groups = conditionsOf(object.status);
    const state = standing(groups.flatMap(it => it.conditions), GOOD);
    const whole = { apiVersion: [resource.group, resource.version].filter(Boolean).join("/"), kind, ...object };
    return (
        <>
            <PageHeader
                title={(kind === "APIProduct" && (object as APIProduct).spec?.displayName) || name} description={`${kind} ${namespace}/${name}`}
                above={[{ to: `/gateways?tab=${TABS[resource.plural]}`, label: t("title") }]} here={name}
            >
                {/* A Service has no conditions: how it stands is what stands behind it. */}
                {kind !== "Service" && <StatusLabel word={state.word} tone={state.isGood ? "green" : "orange"} title={state.message} />}
            </PageHeader>
            <PageSection className="fw-stack">
                <AddressTabs label={name} tabs={[
                    ["summary", t("summary"), () => (kind === "Service" ? <ServiceSummary object={object as Service} /> : <Summary kind={kind} object={object} groups={groups} />)],
                    ["events", t("events"), () => <Events kind={kind} namespace={namespace} name={name} uid={object.metadata?.uid} />],
                    ["why", t("why"), () => <WhyOf kind={kind} namespace={namespace} name={name} />],
                    ["yaml", t("yaml"), () => <YamlView value={whole} name={`${name}.yaml`} />],
                ]} />
                <CommandHint commands={[sh`kubectl get ${[resource.plural, resource.group].filter(Boolean).join(".")} ${name} -n ${namespace} -o yaml`, ...(EXPLAINED.has(kind) ? [sh`fairway why ${`${kind.toLowerCase()}/${name}`} -n ${namespace}`] : [])]} />
            </PageSection>
        </>
    );
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

function Summary(props: { kind: string; object: Shown; groups: ReturnType<typeof conditionsOf> }): ReactNode {
    const { metadata } = props.object;
    return (
        <>
            <Facts of={[
                [t("namespace"), metadata?.namespace], ...factsOf(props.kind, props.object),
                [t("created"), <Age key="age" of={metadata?.creationTimestamp} />], [t("labels"), <Tags key="labels" of={metadata?.labels} />],
            ]} />
            <Rules kind={props.kind} object={props.object} />
            <h2>{t("conditions")}</h2>
            {props.groups.length === 0 && <Conditions conditions={undefined} />}
            {props.groups.map((group, at) => <section key={at} aria-label={group.of || t("conditions")}>{group.of && <h3>{group.of}</h3>}<Conditions conditions={group.conditions} /></section>)}
        </>
    );
}
