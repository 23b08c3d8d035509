// A patch of Git, with colours and signs.

import type { ReactNode } from "react";
import { t } from "../../text/repositories";
import { Failed, Loading } from "../../widgets";
import { type Asked } from "../../api";
import { MAX_DIFF } from "./gitea";

const MOST_LINES = 10_000;
const kind = (line: string): string => (/^\+(?!\+\+ )/.test(line) ? "added" : /^-(?!-- )/.test(line) ? "removed" : "same");

export function Patch(props: { of: Asked<string> }): ReactNode {
    const { answer, error, again } = props.of;
    if (error) return <Failed error={error} again={again} />;
    if (answer === undefined) return <Loading />;
    if (answer.trim() === "") return <p className="fw-muted">{t("noChanges")}</p>;
    const lines = answer.split("\n");
    return (
        <>
            {(answer.length >= MAX_DIFF || lines.length > MOST_LINES) && <p className="fw-muted">{t("large")}</p>}
            <pre className="fw-diff" tabIndex={0} role="region" aria-label={t("diff")}>{lines.slice(0, MOST_LINES).map((line, at) => <span key={at} className={kind(line)}>{line || " "}</span>)}</pre>
        </>
    );
}
