// The conditions of an object, in the words of whoever wrote them.

import type { components as Core } from "../api/generated/core";
import { t } from "../text/shell";
import { Age } from "./Age";
import { conditionTone } from "./status";
import { StatusLabel } from "./StatusLabel";

type Said = Core["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.Condition"];
/** Whoever has not said when something changed may say `null`. */
export type Condition = Partial<Omit<Said, "lastTransitionTime">> & { lastTransitionTime?: Said["lastTransitionTime"] | null };

export function Conditions({ conditions }: { conditions: readonly Condition[] | undefined }) {
    if (!conditions?.length) return <p className="fw-muted">{t("noConditions")}</p>;
    return (
        <div className="fw-scroll">
            <table className="fw-conditions" aria-label={t("conditions")}>
                <thead>
                    <tr>
                        {[t("conditionType"), t("conditionStatus"), t("conditionReason"), t("conditionMessage"), t("conditionChanged")].map(title => (
                            <th key={title} scope="col">{title}</th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    {conditions.map((one, at) => (
                        <tr key={`${one.type} ${at}`}>
                            <td data-label={t("conditionType")}>{one.type}</td>
                            <td data-label={t("conditionStatus")}>
                                <StatusLabel word={one.status} tone={conditionTone(one.type ?? "", one.status ?? "")} />
                            </td>
                            <td data-label={t("conditionReason")}>{one.reason}</td>
                            <td className="fw-wrap" data-label={t("conditionMessage")}>{one.message}</td>
                            <td data-label={t("conditionChanged")}><Age of={one.lastTransitionTime ?? undefined} /></td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}
