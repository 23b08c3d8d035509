// Texts of Applications.

import { plurals, texts } from "./t";

export const t = texts("applications", {
    title: "Applications",
    search: "Search applications by name",
    health: "Health", sync: "Sync", project: "Project", cluster: "Cluster", namespace: "Namespace", labels: "Labels",
    label: "Label, such as team=web",
    any: "{what}: any",
    tiles: "Tiles", list: "List", tree: "Tree", view: "View",
    none: "No applications",
    noneHelp: "An Application syncs manifests from Git. Create one from a template, or apply one with kubectl.",
    source: "Source", destination: "Destination", synced: "Last sync", revision: "Revision", automated: "Auto-sync", selfHeal: "Self heal", pruneResources: "Prune resources", enableAutoSync: "Enable Auto-Sync", disableAutoSync: "Disable Auto-Sync",
    autoSyncTitle: "Enable auto-sync of {name}?", autoSyncWhat: "Prune is on, too: what Git no longer has is deleted at once, including the disks of machines:", status: "Status",
    doSync: "Sync", actOn: "{action} {name}", refresh: "Refresh", hardRefresh: "Hard refresh", terminate: "Terminate", remove: "Delete", approve: "Approve deletions",
    prune: "Prune: delete what Git no longer has", dryRun: "Dry run: write nothing", force: "Force: delete and create again where a change is refused",
    applyOnly: "Apply only: without hooks", replaceOption: "Replace instead of apply", serverSide: "Server-side apply", syncTitle: "Sync {name}", cancel: "Cancel",
    waits: "The sync waits for your approval, because it deletes something precious.",
    summary: "Summary", diff: "Diff", live: "Live manifest", events: "Events", history: "History and rollback", conditions: "Conditions", resources: "Resources",
    rollback: "Rollback", rollbackNote: "As long as auto-sync is on, it cannot be rolled back: it would return to what Git has at once. Disable auto-sync first.", requiresPruning: "requires pruning", hook: "hook", noHistory: "Nothing has been synced yet.",
    requested: "{what} requested: {name}", deletionRequested: "Deletion requested: {name}", terminationRequested: "Termination of the sync requested: {name}", deletionsApproved: "Deletions approved: {name}", autoSyncOn: "Auto-Sync enabled: {name}", autoSyncOff: "Auto-Sync disabled: {name}",
    terminateTitle: "Terminate the sync of {name}?", terminateWhat: "It stops where it is: what it has written stays, what it has not yet written is left out. The Application may be half old and half new until the next sync.",
    statusPanel: "Status", appHealth: "App health", syncStatus: "Sync status", lastSync: "Last sync", ofTarget: "to {target}", author: "Author: {who}",
    approveTitle: "Approve deletions of {name}?", approveWhat: "What the guard holds back is deleted, and what is in it is lost:",
    rollbackTitle: "Roll {name} back?", rollbackWhat: "{name} becomes what it was at {revision}, synced {at}. What was changed since is undone in the cluster; Git stays as it is.",
    pruneTitle: "This cannot be undone", pruneWhat: "Prune deletes what Git no longer has:", pruneNone: "At the moment nothing would be pruned; with another revision something may.",
    forceWhat: "Force deletes objects whose change is refused and creates them again: machines among them stop, and their disks may go.",
    replaceOptionWhat: "Replace overwrites whole objects, with everything that others have written into them.", typeName: "Type {name} to confirm",
    close: "Close", kind: "Kind", name: "Name", on: "on", off: "off",
    deleteTitle: "Delete application {name}?", deleteWhat: "The Application and the {n} objects that it manages are deleted, including machines and their disks.",
    noDiff: "It is as Git declares it.", notLive: "It does not exist in the cluster.", operation: "Operation", nothing: "Nothing is chosen.", size: "Size of the tree", fit: "Fit", zoomIn: "Zoom in", zoomOut: "Zoom out", treeLabel: "Objects of {name}", message: "Message", why: "Why?", created: "Created", toPage: "Open its page", yaml: "YAML",
});

const all = plurals("applications", { applications: { one: "{n} application", other: "{n} applications" } });
export const counted = (count: number): string => all("applications", count);
