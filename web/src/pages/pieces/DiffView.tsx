// A difference on the screen: colours and signs, so that it can be read without colours.

import type { ReactNode } from "react";
import { countedLines as counted, diff as t } from "../../text/pieces";
import { diffLines } from "./diff";

const SIGNS = { same: "  ", added: "+ ", removed: "- ", skipped: "  … " };

export function DiffView(props: { before: string; after: string; label?: string }): ReactNode {
    const lines = diffLines(props.before, props.after);
    if (!lines.some(line => line.kind === "added" || line.kind === "removed")) return <p>{t("none")}</p>;
    return (
        <pre className="fw-diff" tabIndex={0} role="region" aria-label={props.label ?? t("label")}>
            {lines.map((line, at) => (
                <span key={at} className={line.kind}>{SIGNS[line.kind] + (line.kind === "skipped" ? counted("skipped", Number(line.text)) : line.text)}</span>
            ))}
        </pre>
    );
}
