// The rules of a policy as a table: what it asks of requests is its content, and its target only where it holds.

import type { ReactNode } from "react";
import { t } from "../../text/gateways";
import { rulesTold } from "./rules";

export function Rules(props: { kind: string; object: unknown }): ReactNode {
    const told = rulesTold(props.kind, props.object);
    if (!told) return null;
    return (
        <>
            <h2>{t("whatItSays")}</h2>
            {told.lines.length === 0 ? <p className="fw-muted">{t("saysNothing")}</p> : (
                <div className="fw-scroll">
                    <table className="fw-conditions" aria-label={t("whatItSays")}>
                        <thead><tr>{told.heads.map(head => <th key={head} scope="col">{head}</th>)}</tr></thead>
                        <tbody>
                            {told.lines.map((line, at) => <tr key={at}>{line.map((cell, n) => <td key={n} className="fw-wrap" data-label={told.heads[n]}>{cell}</td>)}</tr>)}
                        </tbody>
                    </table>
                </div>
            )}
        </>
    );
}
