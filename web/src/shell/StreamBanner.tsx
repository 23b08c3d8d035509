// Says when the page is not live: the stream is lost, or the session is over.

import { Alert, AlertActionLink } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { useEffect, useState } from "react";
import { useStreamState } from "../api/streams";
import { loginPath } from "../api/session";
import { t } from "../text/shell";

/** A stream that comes back within this time has not been missed. */
const GRACE_MS = 1500;

export function StreamBanner() {
    const { lost, since, signedOut } = useStreamState();
    const [isShown, setShown] = useState(false);
    useEffect(() => {
        if (lost === 0 || since === undefined) {
            setShown(false);
            return;
        }
        const timer = setTimeout(() => setShown(true), Math.max(0, since + GRACE_MS - Date.now()));
        return () => clearTimeout(timer);
    }, [lost, since]);
    return (
        <div role="status" aria-live="polite">
            {signedOut ? (
                <Alert
                    variant="warning"
                    isInline
                    title={t("signedOut")}
                    actionLinks={<AlertActionLink onClick={() => location.assign(loginPath())}>{t("signIn")}</AlertActionLink>}
                />
            ) : (
                isShown && <Alert variant="warning" isInline title={t("streamLost")} data-testid="stream-lost" />
            )}
        </div>
    );
}
