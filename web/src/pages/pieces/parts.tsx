// Small parts that several pages of the platform share.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Label } from "@patternfly/react-core/dist/dynamic/components/Label";
import { Tab, TabTitleText, Tabs } from "@patternfly/react-core/dist/dynamic/components/Tabs";
import { type ReactNode, useId } from "react";
import { useSearchParams } from "react-router";
import type { ApiError } from "../../api";
import { parts as t } from "../../text/pieces";
import { Failed, Loading, Problem } from "../../widgets";

export { Problem };

/** Terms and what they are. */
export function Facts(props: { of: [string, ReactNode][] }): ReactNode {
    return <dl className="fw-facts">{props.of.map(([term, what]) => [<dt key={term}>{term}</dt>, <dd key={`${term} is`}>{what === undefined || what === "" ? "-" : what}</dd>])}</dl>;
}

export function Tags(props: { of: Record<string, string> | undefined }): ReactNode {
    const all = Object.entries(props.of ?? {});
    return all.length === 0 ? "-" : <span className="fw-row-gap">{all.map(([key, value]) => <Label isCompact key={key}>{value ? `${key}=${value}` : key}</Label>)}</span>;
}

export interface Looked { state: string; error?: ApiError; items?: readonly unknown[] }

/** What of several lists could not be read: the rest is shown, and nobody takes it for the whole. */
export function Unread(props: { of: [string, Looked][] }): ReactNode {
    return props.of.map(([what, { state, error }]) => state !== "live" && error && (
        <Alert key={what} variant="warning" isInline title={t("unread", { what, why: error.message })}>{error.advice}</Alert>
    ));
}

/** Children as soon as there is a list, else what is the matter with it. */
export function Live(props: { of: Looked; children: ReactNode }): ReactNode {
    const { state, error, items } = props.of;
    if (error && (state === "failed" || !items?.length)) return <Failed error={error} />;
    if (state === "loading") return <Loading />;
    return props.children;
}

/** Tabs whose choice is in the address. */
export function AddressTabs(props: { label: string; tabs: [string, string, () => ReactNode][]; parameter?: string }): ReactNode {
    const [params, setParams] = useSearchParams();
    const id = useId();
    const parameter = props.parameter ?? "tab";
    const asked = params.get(parameter);
    const chosen = props.tabs.find(([key]) => key === asked) ?? props.tabs[0];
    if (!chosen) return null;
    return (
        <>
            <Tabs
                activeKey={chosen[0]} aria-label={props.label}
                onSelect={(_event, key) => setParams(before => { before.set(parameter, String(key)); return before; })}
            >
                {props.tabs.map(([key, title]) => <Tab key={key} eventKey={key} tabContentId={`${id}-${key}`} title={<TabTitleText>{title}</TabTitleText>} aria-label={title} />)}
            </Tabs>
            <section id={`${id}-${chosen[0]}`} role="tabpanel" aria-label={chosen[1]} className="fw-stack fw-tab">{chosen[2]()}</section>
        </>
    );
}
