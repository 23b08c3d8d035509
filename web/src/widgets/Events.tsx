// The events about an object, newest first, live.

import { useMemo } from "react";
import { useList } from "../api/hooks";
import { type CoreEvent, EVENTS } from "../api/kinds";
import { t } from "../text/shell";
import { Age } from "./Age";
import { Failed, Loading } from "./States";
import { StatusLabel } from "./StatusLabel";

const SHOWN = 200;

function at(event: CoreEvent): string {
    return String(event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp ?? event.metadata?.creationTimestamp ?? "");
}

export function Events({ kind, namespace, name, uid }: { kind: string; namespace?: string; name: string; uid?: string }) {
    const fieldSelector = `involvedObject.kind=${kind},involvedObject.name=${name}`;
    const found = useList(EVENTS, { namespace, fieldSelector });
    const events = useMemo(
        () => found.items.filter(one => !uid || !one.involvedObject?.uid || one.involvedObject.uid === uid).sort((a, b) => at(b).localeCompare(at(a))).slice(0, SHOWN),
        [found.items, uid],
    );
    if (found.error && found.state === "failed") return <Failed error={found.error} />;
    if (found.state === "loading") return <Loading />;
    if (events.length === 0) return <p className="fw-muted">{t("noEvents")}</p>;
    return (
        <ul aria-label={t("events")} className="fw-events">
            {events.map(event => (
                <li key={event.metadata?.uid ?? event.metadata?.name}>
                    <span className="fw-row-gap">
                        <StatusLabel isPlain={event.type !== "Warning"} word={event.reason ?? event.type} tone={event.type === "Warning" ? "orange" : "blue"} />
                        <span className="fw-muted">
                            <Age of={at(event)} /> {(event.count ?? 1) > 1 && `×${event.count}`} {event.source?.component ?? event.reportingComponent}
                        </span>
                    </span>
                    <div className="fw-wrap">{event.message}</div>
                </li>
            ))}
        </ul>
    );
}
