// What the page shows, out of the audit log itself: events are something else, and gone after an hour.

import { shellWord } from "../../widgets/command";

/** For whoever is on the server: the log has requests of all workspaces, those of the first one also without its name. */
export function auditCommand(workspace: string, isRefusedOnly: boolean): string {
    const wanted = [
        `.stage == "ResponseComplete" and .objectRef and (.verb | IN("get", "list", "watch") | not)`,
        workspace === "root" ? `((.requestURI | startswith("/clusters/") | not) or (.requestURI | startswith("/clusters/root/")))` : `(.requestURI | startswith("/clusters/${workspace}/"))`,
        ...(isRefusedOnly ? [".responseStatus.code >= 400"] : []),
    ];
    const told = "[.stageTimestamp, .user.username, .verb, .objectRef.resource, .objectRef.namespace, .objectRef.name, .responseStatus.code] | @tsv";
    return `jq -r ${shellWord(`select(${wanted.join(" and ")}) | ${told}`)} DIR/audit.log`;
}
