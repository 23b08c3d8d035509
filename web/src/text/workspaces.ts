// Texts of workspaces and their members.

import { texts } from "./t";

export const t = texts("workspaces", {
    title: "Workspaces", here: "This workspace: {path}", below: "Workspaces below", members: "Members", none: "There is no workspace below this one.", up: "Up to {path}", open: "Open",
    create: "Create workspace", name: "Name", type: "Type", status: "Status", created: "Created", where: "Where", remove: "Delete", removeTitle: "Delete workspace {name}?", removeWhat: "The workspace {path} with everything in it: workspaces below it, machines with their disks, applications, repositories' objects.",
    role: "Role", kind: "Kind", user: "User", group: "Group", who: "Name, such as acme/alice", there: "{n} are known here and offered; others can be typed.", unlisted: "Who is known here could not be read, so the name has to be typed: {why}", add: "Add member", noMembers: "No role is bound in this workspace.", removeMember: "Remove", removeMemberTitle: "Remove {name}?", removeMemberWhat: "{name} loses the role {role} in this workspace.",
    view: "view: look", edit: "edit: change things", admin: "admin: and give roles", clusterAdmin: "cluster-admin: everything", built: "Roles of the system are not shown.", everywhere: "in the whole workspace", inNamespace: "in the namespace {namespace}", told: "{what}: {name}",
});
