// Texts of repositories and pull requests.

import { texts } from "./t";

export const t = texts("repositories", {
    title: "Repositories", name: "Name", description: "Description", visibility: "Visibility", private: "private", public: "public", created: "Created", none: "No repositories", noneHelp: "Golden paths create repositories; fairway repo create makes an empty one.",
    files: "Files", commits: "Commits", pulls: "Pull requests", branch: "Branch", size: "{n} bytes", sizeOf: "Size", moreBranches: "The first {n} branches are offered. Another is opened by its name in the address: ?branch=NAME", notText: "This is a binary file. Clone the repository to see it.", empty: "The repository is empty.", up: "Up", file: "File",
    newer: "Newer", older: "Older", open: "Open", closed: "Closed", state: "State", noPulls: "No pull requests.", plan: "Plan", diff: "Changes", comments: "Comments",
    merge: "Merge", squash: "Squash and merge", rebase: "Rebase and merge", close: "Close pull request", into: "{head} into {base}", status: "Status", merged: "Merged", mergeTitle: "Merge into {base}?", squashTitle: "Squash and merge into {base}?", rebaseTitle: "Rebase and merge into {base}?", squashWhat: "All its commits become a single one.", rebaseWhat: "Its commits are written anew on top of the branch, without a merge commit.", closeTitle: "Close pull request {name}?", closeWhat: "{title} is closed without being merged. The branch {head} stays, and the pull request can be reopened.", reopen: "Reopen pull request", reopened: "Pull request reopened: {name}", pullClosed: "Pull request closed: {name}", pullMerged: "Pull request merged: {name}", pullCreated: "Pull request created: {name}", mergeWhat: "{title} becomes part of {base}; Applications that follow it are synced, with what the plan names.",
    propose: "Create pull request", from: "Branch to merge", pullTitle: "Title",
    commit: "Commit", author: "Author", parents: "Parents", noChanges: "No changes.", why: "Why?", checks: "Status of the head", noComments: "No comments.", commentsNote: "Written by people and programs; none of it is a plan.",
    conflicts: "{head} cannot be merged into {base}: both changed the same lines. Merge {base} into {head}, or rebase it, and push.",
    planNote: "Computed by Fairway now, for every Application of this workspace that is synced from this repository.", planOver: "The pull request is no longer open; a plan says what merging would change.", untouched: "Applications that follow this repository: {n}. None of them would change.", noFollower: "No Application of this workspace follows this repository.",
    impact: "Impact", planFailed: "No plan could be made: {why}", noEffect: "Its files are touched, but no object changes.", approval: "Its deletions need approval.",
    large: "Only the beginning is shown.", by: "by {who}",
});
