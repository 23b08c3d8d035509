// What the dry run says beside files and objects, line by line: where machines run, what quotas have left, where it will be found.

import type { DryRun } from "../../api/rest/scaffolder";
import { t } from "../../text/create";
import type { Tone } from "../../widgets/status";

export interface Fact {
    name: string;
    lines: string[];
    tone?: Tone;
}

export function facts({ node = [], quota = [], urls = [] }: NonNullable<DryRun["foreseen"]>): Fact[] {
    const nodes = node.map((place): Fact => ({
        name: t("nodeOf", { name: `${place.namespace}/${place.name}` }),
        lines: [place.node],
        tone: place.scheduled === null ? "grey" : place.scheduled ? "green" : "orange",
    }));
    const shares = quota.map(({ namespace, name, resource, takes, left, hard }) => t("share", { quota: `${namespace}/${name}`, resource, takes, left, hard }));
    return [
        ...nodes,
        { name: t("quota"), lines: shares.length > 0 ? shares : [t("noQuota")] },
        { name: t("address"), lines: urls.length > 0 ? urls : [t("noAddress")] },
    ];
}
