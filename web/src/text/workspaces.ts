// Texts of workspaces and their members.

import { texts } from "./t";

export const t = texts("workspaces", {
    title: "Workspaces", here: "This workspace: {path}", below: "Workspaces below", members: "Members", none: "There are no workspaces below this one.", up: "Up to {path}", open: "Open",
    create: "Create workspace", name: "Name", type: "Type", status: "Status", created: "Created", where: "Where", remove: "Delete", removeTitle: "Delete workspace {name}?", removeWhat: "The workspace {path} is deleted with everything in it, also what is not named here. This cannot be undone. In it there are:", inIt: "What is in it", nothingInIt: "none", notSeen: "could not be read: {why}", looking: "still being counted", andMore: "{names} and {n} more", workspaceKind: "Workspaces", machinesKind: "VirtualMachines", applicationsKind: "Applications", repositoriesKind: "Repositories", namespacesKind: "Namespaces",
    role: "Role", kind: "Kind", user: "User", group: "Group", who: "Name, such as acme/alice", there: "{n} are known here and suggested; you can type any other.", unlisted: "Who is known here could not be read, so the name has to be typed: {why}", add: "Add member", noMembers: "No role is bound in this workspace.", removeMember: "Remove", removeMemberTitle: "Remove {name}?", removeMemberWhat: "{name} loses the role {role} in this workspace.",
    view: "view: look", edit: "edit: change things", admin: "admin: and give roles", clusterAdmin: "cluster-admin: everything", built: "Roles of the system are not shown.", everywhere: "in the whole workspace", inNamespace: "in the namespace {namespace}", workspaceCreated: "Workspace created: {name}", workspaceDeleted: "Workspace deleted: {name}", memberAdded: "Member added: {name}", memberRemoved: "Member removed: {name}",
});
