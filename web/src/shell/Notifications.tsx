import { Alert, AlertActionCloseButton, AlertGroup } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Popover } from "@patternfly/react-core/dist/dynamic/components/Popover";
import BellIcon from "@patternfly/react-icons/dist/esm/icons/bell-icon";
import { useEffect, useState } from "react";
import { t } from "../text/shell";
import { type Notification, useNotifications } from "./notify";

const SHOWN_MS = 6000;

/** The bell, and what it tells. */
export function Notifications() {
    const all = useNotifications();
    const body = (
        <div className="fw-notifications">
            {all.length === 0 && <p>{t("noNotifications")}</p>}
            {all.map(one => (
                <Alert key={one.id} variant={one.variant} isInline isPlain title={one.title}>
                    {one.body}
                </Alert>
            ))}
        </div>
    );
    return (
        <Popover aria-label={t("notifications")} headerContent={t("notifications")} bodyContent={body} position="bottom-end">
            <Button variant="plain" aria-label={t("notifications")} icon={<BellIcon />} />
        </Popover>
    );
}

/** The latest, for some seconds. Failures stay until they are closed. */
export function Toasts() {
    const all = useNotifications();
    const [closed, setClosed] = useState<ReadonlySet<number>>(new Set());
    const [, tick] = useState(0);
    const isShown = (one: Notification): boolean => !closed.has(one.id) && (one.variant === "danger" || Date.now() - one.at < SHOWN_MS);
    useEffect(() => {
        if (all.length === 0) return;
        const timer = setTimeout(() => tick(n => n + 1), SHOWN_MS + 50);
        return () => clearTimeout(timer);
    }, [all]);
    return (
        <AlertGroup isToast isLiveRegion>
            {all.filter(isShown).slice(0, 3).map(one => (
                <Alert
                    key={one.id}
                    variant={one.variant}
                    title={one.title}
                    actionClose={<AlertActionCloseButton onClose={() => setClosed(new Set([...closed, one.id]))} />}
                >
                    {one.body}
                </Alert>
            ))}
        </AlertGroup>
    );
}
