// Gateways with their routes and policies, and APIs with their keys: all of them, and a page for each.

import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import type { ReactNode } from "react";
import { Link, Route, Routes } from "react-router";
import { AUTH_POLICIES, GATEWAYS, HTTP_ROUTES, type HTTPRoute, PLAN_POLICIES, RATE_LIMIT_POLICIES, ROUTES, useList } from "../../api";
import { t } from "../../text/gateways";
import { type Column, CommandHint, Empty, Loading, NotFound, PageHeader, SafeLink, StatusLabel, VirtualTable } from "../../widgets";
import "../pieces/pieces.css";
import { AddressTabs, Live, type Looked, Unread } from "../pieces/parts";
import { Explain } from "./Explain";
import { type Attached, DNS_POLICIES, GRPC_ROUTES, type GRPCRoute, type Policy, type Ref, TCP_ROUTES, TLS_POLICIES, TLS_ROUTES, type TLSRoute } from "./kinds";
import { pathOf, standing } from "./model";
import { ObjectPage } from "./ObjectPage";
import { Keys, Products, Requests } from "./Products";
import { ServiceList } from "./Services";
import { Usage } from "./Usage";

export default function Gateways(): ReactNode {
    return (
        <Routes>
            <Route index element={<Overview />} />
            <Route path=":plural/:namespace/:name" element={<ObjectPage />} />
            <Route path="*" element={<NotFound />} />
        </Routes>
    );
}

function Overview(): ReactNode {
    return (
        <>
            <PageHeader title={t("title")} />
            <PageSection className="fw-stack">
                <AddressTabs label={t("title")} tabs={[
                    ["gateways", t("gateways"), () => <GatewayList />],
                    ["routes", t("routes"), () => <RouteList />],
                    ["services", t("services"), () => <ServiceList />],
                    ["policies", t("policies"), () => <PolicyList />],
                    ["products", t("products"), () => <Products />],
                    ["keys", t("keys"), () => <><h2>{t("requests")}</h2><Requests /><h2>{t("keys")}</h2><Keys /></>],
                    ["usage", t("usage"), () => <Usage />],
                    ["explain", t("explain"), () => <Explain />],
                ]} />
                <CommandHint commands={["kubectl get gateways,httproutes,grpcroutes,tlsroutes,tcproutes,routes.route.openshift.io,services -A", "kubectl get authpolicies,ratelimitpolicies,planpolicies,tlspolicies,dnspolicies -A", "kubectl get apiproducts,apikeys,apikeyrequests -A", "fairway gateway explain GET https://HOST/PATH"]} />
            </PageSection>
        </>
    );
}

interface Row { key: string; kind: string; namespace: string; name: string; what: ReactNode; word: string; isGood: boolean; message: string }

function Rows(props: { label: string; rows: Row[]; what: string }): ReactNode {
    if (props.rows.length === 0) return <p className="fw-muted">{t("none")}</p>;
    const columns: Column<Row>[] = [
        { key: "name", title: t("name"), render: row => <Link to={pathOf(row.kind, row.namespace, row.name)}>{row.name}</Link>, width: "1.5fr" },
        { key: "kind", title: t("kind"), render: row => row.kind, isOptional: true },
        { key: "namespace", title: t("namespace"), render: row => row.namespace, isOptional: true },
        { key: "what", title: props.what, render: row => row.what, width: "2fr" },
        { key: "status", title: t("status"), render: row => <StatusLabel word={row.word} tone={row.isGood ? "green" : "orange"} title={row.message} />, width: "9rem" },
        { key: "message", title: t("message"), render: row => (row.isGood ? "" : row.message), isOptional: true, width: "2fr" },
    ];
    return <VirtualTable label={props.label} rows={props.rows} columns={columns} rowKey={row => row.key} />;
}

interface Listener { name: string; port: string; hosts: string; attached: number; word: string; isGood: boolean; message: string }

const LISTENERS: Column<Listener>[] = [
    { key: "name", title: t("listener"), render: row => row.name },
    { key: "port", title: t("protocolAndPort"), render: row => row.port, width: "10rem" },
    { key: "hosts", title: t("hosts"), render: row => row.hosts, width: "2fr" },
    { key: "attached", title: t("attachedRoutes"), render: row => row.attached, width: "8rem", isOptional: true },
    { key: "status", title: t("status"), render: row => <StatusLabel word={row.word} tone={row.isGood ? "green" : "orange"} title={row.message} />, width: "9rem" },
    { key: "message", title: t("message"), render: row => (row.isGood ? "" : row.message), isOptional: true, width: "2fr" },
];

const place = (object: { metadata?: { namespace?: string; name?: string } }, kind: string): Pick<Row, "key" | "kind" | "namespace" | "name"> => ({
    key: `${kind} ${object.metadata?.namespace}/${object.metadata?.name}`, kind, namespace: object.metadata?.namespace ?? "", name: object.metadata?.name ?? "",
});

function GatewayList(): ReactNode {
    const found = useList(GATEWAYS);
    return (
        <Live of={found}>
            {found.items.length === 0 && <Empty title={t("noGateways")}>{t("noGatewaysHelp")}</Empty>}
            {found.items.map(gateway => {
                const state = standing(gateway.status?.conditions, ["Accepted", "Programmed"]);
                const addresses = gateway.status?.addresses?.map(it => it.value).join(", ");
                return (
                    <section key={gateway.metadata?.uid} aria-label={gateway.metadata?.name} className="fw-stack">
                        <h2 className="fw-row-gap"><Link to={pathOf("Gateway", gateway.metadata?.namespace, gateway.metadata?.name)}>{gateway.metadata?.namespace}/{gateway.metadata?.name}</Link> <StatusLabel word={state.word} tone={state.isGood ? "green" : "orange"} title={state.message} /></h2>
                        <p className="fw-muted">{t("className")}: {gateway.spec?.gatewayClassName}; {t("address")}: {addresses || "-"} {state.isGood ? "" : state.message}</p>
                        <VirtualTable label={t("listeners")} columns={LISTENERS} rowKey={row => row.name} rows={(gateway.spec?.listeners ?? []).map(listener => {
                            const status = gateway.status?.listeners?.find(it => it.name === listener.name);
                            const stand = standing(status?.conditions, ["Accepted", "ResolvedRefs", "Programmed"]);
                            return { name: listener.name, port: `${listener.protocol} ${listener.port}`, hosts: listener.hostname ?? "*", attached: Number(status?.attachedRoutes ?? 0), ...stand };
                        })} />
                    </section>
                );
            })}
        </Live>
    );
}

/** A table out of several lists, with what is missing of it. */
function Several(props: { of: [string, Looked & { items: readonly unknown[] }][]; children: ReactNode }): ReactNode {
    if (props.of.every(([, it]) => it.state === "loading")) return <Loading />;
    const isEmpty = props.of.every(([, it]) => it.items.length === 0);
    const isUnread = props.of.some(([, it]) => it.error && it.state !== "live");
    return <><Unread of={props.of} />{!(isEmpty && isUnread) && props.children}</>;
}

function RouteList(): ReactNode {
    const http = useList(HTTP_ROUTES);
    const routes = useList(ROUTES);
    const [grpc, tls, tcp] = [useList(GRPC_ROUTES), useList(TLS_ROUTES), useList(TCP_ROUTES)];
    const attached = (route: Attached, kind: string, what: string): Row => ({ ...place(route, kind), what, ...standing(route.status?.parents?.[0]?.conditions, ["Accepted", "ResolvedRefs"]) });
    const named = (kind: string, items: readonly (HTTPRoute | GRPCRoute | TLSRoute)[]): Row[] => items.map(it => attached(it, kind, (it.spec?.hostnames ?? ["*"]).join(", ")));
    const rows: Row[] = [
        ...named("HTTPRoute", http.items),
        ...routes.items.map(route => ({ ...place(route, "Route"), what: route.spec?.host ? <SafeLink to={`https://${route.spec.host}/`}>{route.spec.host}</SafeLink> : "-", ...standing(route.status?.ingress?.[0]?.conditions, ["Admitted"]) })),
        ...named("GRPCRoute", grpc.items), ...named("TLSRoute", tls.items),
        // A TCPRoute has no host names: connections come to the port of its listener.
        ...tcp.items.map(it => attached(it, "TCPRoute", (it.spec?.parentRefs ?? []).map(to => [to.name, to.sectionName].filter(Boolean).join("/")).join(", "))),
    ];
    const others: [string, Looked & { items: readonly unknown[] }][] = [["GRPCRoute", grpc], ["TLSRoute", tls], ["TCPRoute", tcp]];
    return <Several of={[["HTTPRoute", http], ["Route", routes], ...others]}><Rows label={t("routes")} what={t("hosts")} rows={rows} /></Several>;
}

function PolicyList(): ReactNode {
    const auth = useList(AUTH_POLICIES);
    const limits = useList(RATE_LIMIT_POLICIES);
    const plans = useList(PLAN_POLICIES);
    const [tls, dns] = [useList(TLS_POLICIES), useList(DNS_POLICIES)];
    const rows = (kind: string, items: readonly Policy[]): Row[] => items.map(policy => {
        const target: Ref = policy.spec?.targetRef ?? {};
        return { ...place(policy, kind), what: [target.kind, target.name, target.sectionName].filter(Boolean).join(" "), ...standing(policy.status?.conditions, ["Accepted", "Enforced"]) };
    });
    const all = [...rows("AuthPolicy", auth.items), ...rows("RateLimitPolicy", limits.items), ...rows("PlanPolicy", plans.items), ...rows("TLSPolicy", tls.items), ...rows("DNSPolicy", dns.items)];
    return <Several of={[["AuthPolicy", auth], ["RateLimitPolicy", limits], ["PlanPolicy", plans], ["TLSPolicy", tls], ["DNSPolicy", dns]]}><Rows label={t("policies")} what={t("target")} rows={all} /></Several>;
}
