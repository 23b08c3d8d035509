// Services: where routes lead, and which machines stand behind them.

import type { ReactNode } from "react";
import { Link } from "react-router";
import { ENDPOINT_SLICES, type EndpointSlice, type Service, SERVICES, useList } from "../../api";
import { pageOf } from "../../links";
import { t } from "../../text/gateways";
import { type Column, Empty, StatusLabel, VirtualTable } from "../../widgets";
import { Live, Unread } from "../pieces/parts";
import { type Endpoint, endpointsOf, pathOf, portsOf, SERVICE_NAME } from "./model";

const keyOf = (service: Service): string => `${service.metadata?.namespace}/${service.metadata?.name}`;

/** The Service that a slice belongs to, as `keyOf` has it. */
function sliceKey(slice: EndpointSlice): string {
    return `${slice.metadata?.namespace}/${slice.metadata?.labels?.[SERVICE_NAME]}`;
}

export function ServiceList(): ReactNode {
    const found = useList(SERVICES);
    const slices = useList(ENDPOINT_SLICES);
    const byService = new Map<string, EndpointSlice[]>();
    for (const slice of slices.items) byService.set(sliceKey(slice), [...(byService.get(sliceKey(slice)) ?? []), slice]);
    const sorted = [...found.items].sort((a, b) => keyOf(a).localeCompare(keyOf(b)));
    const columns: Column<Service>[] = [
        { key: "name", title: t("name"), width: "1.5fr", render: it => <Link to={pathOf("Service", it.metadata?.namespace, it.metadata?.name)}>{it.metadata?.name}</Link> },
        { key: "namespace", title: t("namespace"), render: it => it.metadata?.namespace, isOptional: true },
        { key: "type", title: t("type"), render: it => it.spec?.type, isOptional: true },
        { key: "address", title: t("address"), render: it => it.spec?.externalName ?? it.spec?.clusterIP ?? "" },
        { key: "ports", title: t("ports"), render: portsOf },
        { key: "endpoints", title: t("endpoints"), width: "7rem", render: it => (slices.state === "live" ? endpointsOf(byService.get(keyOf(it)) ?? []).filter(one => one.isReady).length : "…") },
    ];
    return (
        <>
            <Unread of={[["EndpointSlice", slices]]} />
            <Live of={found}>
                {sorted.length === 0 ? <Empty title={t("none")} /> : <VirtualTable label={t("services")} rows={sorted} columns={columns} rowKey={keyOf} />}
            </Live>
        </>
    );
}

/** What answers behind a Service. */
export function Endpoints(props: { namespace: string; name: string }): ReactNode {
    const found = useList(ENDPOINT_SLICES, { namespace: props.namespace, labelSelector: `${SERVICE_NAME}=${props.name}` });
    const endpoints = endpointsOf(found.items);
    return (
        <>
            <h2>{t("endpoints")}</h2>
            <Live of={found}>
                {endpoints.length === 0 ? <p className="fw-muted">{t("noEndpoints")}</p> : (
                    <ul className="fw-plain-list" aria-label={t("endpoints")}>
                        {endpoints.map(one => <li key={one.address} className="fw-row-gap"><code>{one.address}</code> <StatusLabel word={one.isReady ? "Ready" : "NotReady"} /> <Target of={one} /></li>)}
                    </ul>
                )}
            </Live>
        </>
    );
}

function Target(props: { of: Endpoint }): ReactNode {
    const { target } = props.of;
    if (!target) return props.of.node;
    const to = pageOf(target, false);
    const text = `${target.kind} ${target.name}`;
    return to ? <Link to={to}>{text}</Link> : text;
}
