// What goes with a workspace: whoever deletes one sees what is in it, and what of it nobody could look at.

import type { ReactNode } from "react";
import { APPLICATIONS, NAMESPACES, REPOSITORIES, useList, VIRTUAL_MACHINES, WORKSPACES } from "../../api";
import { t } from "../../text/workspaces";
import { Facts } from "../pieces/parts";
import { type Content, contentText } from "./contents";

export function Contents(props: { of: string }): ReactNode {
    const selection = { workspace: props.of };
    const all: [string, Content][] = [
        [t("workspaceKind"), useList(WORKSPACES, selection)],
        [t("machinesKind"), useList(VIRTUAL_MACHINES, selection)],
        [t("applicationsKind"), useList(APPLICATIONS, selection)],
        [t("repositoriesKind"), useList(REPOSITORIES, selection)],
        [t("namespacesKind"), useList(NAMESPACES, selection)],
    ];
    return <div role="region" aria-label={t("inIt")}><Facts of={all.map(([kind, found]) => [kind, contentText(found)])} /></div>;
}
