// What runs for an entity: Applications and objects that its annotations mean, asked again while somebody looks.

import { Card, CardBody, CardTitle } from "@patternfly/react-core/dist/dynamic/components/Card";
import { useEffect } from "react";
import { Link } from "react-router";
import { useAnswer, useList } from "../../api/hooks";
import { APPLICATIONS } from "../../api/kinds";
import { liveOf } from "../../catalog/client";
import { t } from "../../text/catalog";
import { pageOf } from "../../links";
import { EXPLAINED, Failed, Loading, Stale, StatusLabel } from "../../widgets";

interface Named { kind?: string; namespace?: string; name?: string }

const placeOf = ({ kind = "", namespace, name = "" }: Named): string | undefined => pageOf({ kind, namespace, name }, false);

function Own({ of }: { of: Named }) {
    const to = placeOf(of);
    return to ? <Link to={to}>{of.name}</Link> : of.name;
}

/** Where it is told why it is as it is. */
function WhyLink({ kind = "", namespace, name = "" }: Named) {
    const to = EXPLAINED.has(kind) ? placeOf({ kind, namespace, name }) : undefined;
    return to ? <Link to={`${to}?tab=why`} aria-label={t("whyOf", { kind, name })}>{t("why")}</Link> : null;
}

export function LiveCard({ kind, namespace, name }: { kind: string; namespace: string; name: string }) {
    const asked = useAnswer(`live ${kind} ${namespace} ${name}`, signal => liveOf(kind, namespace, name, signal));
    const { again } = asked;
    // A change of any Application may be a change of what is shown; machines change without one, so the clock asks, too.
    const { items } = useList(APPLICATIONS);
    useEffect(() => {
        const soon = setTimeout(again, 300);
        const timer = setInterval(() => document.visibilityState === "visible" && again(), 10_000);
        return () => {
            clearTimeout(soon);
            clearInterval(timer);
        };
    }, [items, again]);
    const { applications = [], objects = [], hidden = [] } = asked.answer ?? {};
    return (
        <Card>
            <CardTitle component="h2">{t("live")}</CardTitle>
            <CardBody>
                <Stale of={asked} />
                {asked.error && !asked.answer && <Failed error={asked.error} again={again} />}
                {!asked.answer && !asked.error && <Loading />}
                {asked.answer && applications.length + objects.length === 0 && <p className="fw-muted">{t("noLive")}</p>}
                <ul className="fw-events">
                    {applications.map(one => (
                        <li key={`${one.namespace}/${one.name}`} className="fw-row-gap">
                            {APPLICATIONS.kind} <Link to={`/applications/${one.namespace}/${one.name}`}>{one.name}</Link>
                            <StatusLabel word={one.health} title={one.message} />
                            <StatusLabel word={one.sync} />
                            <WhyLink kind="Application" namespace={one.namespace} name={one.name} />
                        </li>
                    ))}
                    {objects.map(one => (
                        <li key={`${one.kind} ${one.namespace}/${one.name}`} className="fw-row-gap">
                            {one.kind} <Own of={one} />
                            <StatusLabel word={one.status ?? (one.ready === true ? "Ready" : one.ready === false ? "NotReady" : undefined)} title={one.message} />
                            <WhyLink kind={one.kind} namespace={one.namespace} name={one.name} />
                        </li>
                    ))}
                </ul>
                {hidden.length > 0 && <p className="fw-muted">{t("liveHidden", { kinds: hidden.join(", ") })}</p>}
            </CardBody>
        </Card>
    );
}
