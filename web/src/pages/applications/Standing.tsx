// How an object stands to Git, in Argo CD's words.

import type { ReactNode } from "react";
import { t } from "../../text/applications";
import { StatusLabel } from "../../widgets";
import type { TreeNode } from "./model";

export function Standing(props: { of: TreeNode }): ReactNode {
    const { sync, requiresPruning, hook } = props.of;
    return (
        <span className="fw-row-gap">
            <StatusLabel word={sync} />
            {requiresPruning && <StatusLabel word={t("requiresPruning")} tone="orange" />}
            {hook && <StatusLabel word={t("hook")} tone="grey" />}
        </span>
    );
}
