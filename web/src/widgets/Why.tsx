// Why an object is as it is: the chain of reasons that the server finds.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Link } from "react-router";
import { json, PATIENCE_MS } from "../api/request";
import type { Why as Answer } from "../api/rest/portal";
import { useAnswer } from "../api/hooks";
import { workspace } from "../api/session";
import { t } from "../text/shell";
import { Age } from "./Age";
import { Failed, Loading } from "./States";
import type { Tone } from "./status";
import { StatusLabel } from "./StatusLabel";

/** The kinds that the server explains. */
export const EXPLAINED: ReadonlySet<string> = new Set([
    "VirtualMachine", "VirtualMachineInstance", "DataVolume", "PersistentVolumeClaim", "Voyage", "Application", "Repository", "Service", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute",
    "Gateway", "Route", "AuthPolicy", "RateLimitPolicy", "TLSPolicy", "DNSPolicy", "PlanPolicy", "APIProduct", "APIKey", "Secret", "ConfigMap",
]);

const TONES: Record<string, Tone> = { ok: "green", unused: "grey", unknown: "grey", waiting: "blue", off: "yellow", broken: "red" };

/** Why, or plainly that nobody can say it of such a thing; what declares it can be asked then. */
export function WhyOf(props: { kind: string; namespace?: string; name: string; application?: { namespace: string; name: string } }) {
    const { kind, application } = props;
    if (EXPLAINED.has(kind)) return <Why {...props} />;
    return (
        <div className="fw-stack fw-top">
            <p>{t("whyOther", { kind })}</p>
            {application && <Link to={`/applications/${application.namespace}/${application.name}?tab=why`}>{t("whyOfApplication", { name: application.name })}</Link>}
        </div>
    );
}

export function Why({ kind, namespace, name }: { kind: string; namespace?: string; name: string }) {
    const key = `why ${kind} ${namespace ?? ""} ${name}`;
    const asked = useAnswer(key, signal => json<Answer>("/api/fairway/why", { query: { workspace: workspace(), kind, namespace, name }, signal, patienceMs: PATIENCE_MS.doing }));
    // The server says whether there is no such object, or what kinds it can explain.
    if (asked.error && [400, 404, 501].includes(asked.error.status)) {
        return <Alert isInline variant="info" title={t("whyMissing")}><span className="fw-wrap">{asked.error.message}</span></Alert>;
    }
    if (asked.error) return <Failed error={asked.error} again={asked.again} />;
    if (!asked.answer) return <Loading text={t("whyLoading")} />;
    const { verdict, sound, links } = asked.answer;
    return (
        <div className="fw-stack fw-top">
            {verdict && <Alert isInline variant={sound ? "success" : "danger"} title={verdict} />}
            <ol className="fw-events">
                {links.map((one, at) => (
                    <li key={at}>
                        <span className="fw-row-gap">
                            <StatusLabel word={one.state} tone={TONES[one.state]} /> <strong>{one.link}</strong> <Age of={one.at ?? undefined} />
                        </span>
                        <div className="fw-wrap">{one.finding}</div>
                        {one.evidence?.map((seen, n) => <div key={n} className="fw-detail">{seen.seenIn}{seen.message ? `: ${seen.message}` : ""}</div>)}
                        {one.advice && <div className="fw-wrap"><strong>{one.advice}</strong></div>}
                    </li>
                ))}
            </ol>
            <div><Button variant="link" isInline onClick={asked.again}>{t("tryAgain")}</Button></div>
        </div>
    );
}
