// Switches on and off that an Application syncs by itself. As long as it does, the server refuses to roll it back.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { type ReactNode, useState } from "react";
import { APPLICATIONS, type Application, patch, useAction } from "../../api";
import { t } from "../../text/applications";
import { ConfirmByName } from "../../widgets";
import { Problem } from "../pieces/parts";
import { autoSyncPatch, isAutomated, prunedByItself } from "./sync";

export function AutoSync(props: { app: Application }): ReactNode {
    const { app } = props;
    const { namespace, name = "" } = app.metadata;
    const isOn = isAutomated(app);
    const what = t(isOn ? "disableAutoSync" : "enableAutoSync");
    const told = t(isOn ? "autoSyncOff" : "autoSyncOn", { name });
    const [isAsking, setAsking] = useState(false);
    const change = (): Promise<unknown> => patch(APPLICATIONS, namespace, name, autoSyncPatch(app, !isOn));
    const turn = useAction(change, told);
    const lost = isOn ? [] : prunedByItself(app);
    return (
        <>
            <Button variant="secondary" size="sm" isLoading={turn.isRunning} isDisabled={turn.isRunning} onClick={() => (lost.length > 0 ? setAsking(true) : void turn.run())}>{what}</Button>
            <Problem error={turn.error} />
            {isAsking && (
                <ConfirmByName title={t("autoSyncTitle", { name })} name={name} action={what} onClose={() => setAsking(false)} told={told} onConfirm={change}>
                    <p>{t("autoSyncWhat")}</p>
                    <ul className="fw-long-list" tabIndex={0} aria-label={t("autoSyncWhat")}>{lost.map(it => <li key={it} className="fw-wrap">{it}</li>)}</ul>
                </ConfirmByName>
            )}
        </>
    );
}
