// What was asked for, as soon as it is there. If it cannot be read anew, what was read before stays, and the page says so.

import { Alert, AlertActionLink } from "@patternfly/react-core/dist/dynamic/components/Alert";
import type { ReactNode } from "react";
import type { Asked } from "../api/hooks";
import { t } from "../text/shell";
import { Failed, Loading } from "./States";

/** Nothing, as long as what is on the page is what the server says. */
export function Stale({ of }: { of: Pick<Asked<unknown>, "answer" | "error" | "again"> }): ReactNode {
    if (!of.error || of.answer === undefined) return null;
    return (
        <Alert isInline variant="warning" title={t("stale", { why: of.error.message })} actionLinks={<AlertActionLink onClick={of.again}>{t("tryAgain")}</AlertActionLink>}>
            {of.error.advice}
        </Alert>
    );
}

export function Answered<A>({ of, children }: { of: Asked<A>; children: (answer: A) => ReactNode }): ReactNode {
    if (of.answer === undefined) return of.error ? <Failed error={of.error} again={of.again} /> : <Loading />;
    return <><Stale of={of} />{children(of.answer)}</>;
}
