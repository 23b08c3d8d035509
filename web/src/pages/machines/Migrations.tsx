// How a machine moves from node to node: the migration that is under way, and those before it.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Progress, ProgressMeasureLocation } from "@patternfly/react-core/dist/dynamic/components/Progress";
import type { ReactNode } from "react";
import { MIGRATIONS, remove, useAction, useList } from "../../api";
import { t } from "../../text/machines";
import { Age, CommandHint, duration, sh, StatusLabel } from "../../widgets";
import { Live, Problem, Unread } from "../pieces/parts";
import { migrationsOf, type Told } from "./migration";

interface Props { namespace: string; name: string }

const way = (it: Told): string => [it.from, it.to].filter(Boolean).join(" → ");

/** What is under way; nothing if nothing is. */
export function MigrationNow(props: Props): ReactNode {
    const found = useList(MIGRATIONS, { namespace: props.namespace });
    const cancel = useAction((name: string) => remove(MIGRATIONS, props.namespace, name), t("cancelMigrationRequested", { name: props.name }));
    const now = migrationsOf(found.items, props.name).filter(it => !it.isOver);
    return <>
        <Unread of={[[t("migrations"), found]]} />
        {now.map(it => (
        <section key={it.name} aria-label={t("migrating", { name: props.name })} className="fw-stack">
            <Progress title={t("migrating", { name: props.name })} value={it.progress} label={[it.phase, way(it)].filter(Boolean).join(", ")} measureLocation={ProgressMeasureLocation.top} />
            <div><Button size="sm" variant="secondary" isDisabled={cancel.isRunning} onClick={() => void cancel.run(it.name)}>{t("cancelMigration")}</Button></div>
            <Problem error={cancel.error} />
        </section>
        ))}
    </>;
}

export function Migrations(props: Props): ReactNode {
    const found = useList(MIGRATIONS, { namespace: props.namespace });
    const own = migrationsOf(found.items, props.name);
    return (
        <>
            <Live of={found}>
                {own.length === 0 ? <p className="fw-muted">{t("noMigrations")}</p> : (
                    <ul className="fw-plain-list">
                        {own.map(it => (
                            <li key={it.name} className="fw-row-gap">
                                <strong>{it.name}</strong> <StatusLabel word={it.phase} title={it.why} /> {way(it)} <Age of={it.begun} />
                                {it.begun && it.ended && <span className="fw-muted">{t("took", { time: duration(it.begun, it.ended, 0) })}</span>}
                                {it.why && <span className="fw-wrap">{it.why}</span>}
                            </li>
                        ))}
                    </ul>
                )}
            </Live>
            <CommandHint commands={[sh`kubectl get virtualmachineinstancemigrations -n ${props.namespace}`, sh`fairway vm migrate ${props.name} -n ${props.namespace}`]} />
        </>
    );
}
