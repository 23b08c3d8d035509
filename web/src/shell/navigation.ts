// What the navigation shows, in the order of the golden path. A page is the module `pages/<path>/index.tsx`, whose default export gets
// everything below `/<path>`.

import { t } from "../text/shell";

export interface Entry {
    path: string;
    label: () => string;
}

export const NAVIGATION: Entry[] = [
    { path: "home", label: () => t("home") },
    { path: "catalog", label: () => t("catalog") },
    { path: "create", label: () => t("create") },
    { path: "voyages", label: () => t("voyages") },
    { path: "applications", label: () => t("applications") },
    { path: "machines", label: () => t("machines") },
    { path: "gateways", label: () => t("gateways") },
    { path: "repositories", label: () => t("repositories") },
    { path: "workspaces", label: () => t("workspaces") },
    { path: "activity", label: () => t("activity") },
];
