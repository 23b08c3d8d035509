//! Which references may move, and how: decided from what was observed, without looking at anything.

use fairway_gitops_git::RefName;
use fairway_text_glob::matches_between;

use crate::catalog::{Protection, Wanted};

/// By what a reference is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// A push, or a commit through the REST API.
    Push,
    /// The merge of a pull request.
    Merge,
}

/// What was observed of an update.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The reference.
    pub name: &'a RefName,
    /// Whether it goes.
    pub is_deletion: bool,
    /// Whether it was there, and its new commit does not follow from the old one.
    pub is_forced: bool,
    /// The user who pushes.
    pub user: &'a str,
    /// His groups.
    pub groups: &'a [String],
    /// By what.
    pub means: Means,
}

/// Why an update may not be made, none if it may.
pub fn refusal(wanted: &Wanted, update: &Observed<'_>) -> Option<String> {
    let name = update.name;
    if wanted.mirror.is_some() {
        return Some("the repository is a mirror; push to where it comes from".to_owned());
    }
    if name.as_str().starts_with("refs/fairway/") || name.as_str().starts_with("refs/pull/") {
        return Some("references below refs/pull and refs/fairway are made by the server".to_owned());
    }
    if update.is_deletion && name.as_branch() == Some(&wanted.default_branch) {
        return Some("the default branch cannot be deleted; choose another default branch first".to_owned());
    }
    let branch = name.as_branch()?;
    for rule in wanted.protected.iter().filter(|rule| covers(rule, branch)) {
        if let Some(why) = broken(rule, update) {
            return Some(format!("branch {branch} is protected: {why}"));
        }
    }
    None
}

fn covers(rule: &Protection, branch: &str) -> bool {
    rule.branches == branch || matches_between(&rule.branches, branch, &['/'])
}

fn broken(rule: &Protection, update: &Observed<'_>) -> Option<&'static str> {
    if update.is_deletion && !rule.allow_deletion {
        return Some("it cannot be deleted");
    }
    if update.is_forced && !rule.allow_force_push {
        return Some("its history cannot be rewritten");
    }
    if rule.require_pull_request && update.means == Means::Push {
        return Some("changes come by pull request");
    }
    let is_pusher = |pusher: &String| match pusher.strip_prefix("group:") {
        Some(group) => update.groups.iter().any(|known| known == group),
        None => pusher == update.user,
    };
    if !rule.pushers.is_empty() && !rule.pushers.iter().any(is_pusher) {
        return Some("you are not among those who may push to it");
    }
    None
}

/// The first changed path that no glob allows, if there are globs.
pub fn forbidden_path<'a>(globs: &[String], changed: &'a [String]) -> Option<&'a str> {
    if globs.is_empty() {
        return None;
    }
    let is_allowed = |path: &str| globs.iter().any(|glob| matches_between(glob, path, &['/']));
    changed.iter().map(String::as_str).find(|path| !is_allowed(path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn protected_branches_are_kept() {
        let wanted = Wanted::read(
            "root",
            &json!({"metadata": {"name": "a"}, "spec": {"protectedBranches": [
                {"name": "main", "requirePullRequest": true},
                {"name": "release/*", "pushers": ["alice", "group:releasers"], "allowDeletion": true},
                {"name": "old", "allowForcePush": true},
            ]}}),
        );
        // name, deletion, forced, user, group, means -> what the refusal says
        type Case<'a> = (&'a str, bool, bool, &'a str, &'a str, Means, Option<&'a str>);
        let cases: &[Case<'_>] = &[
            ("refs/heads/x", false, true, "bob", "", Means::Push, None),
            ("refs/heads/x", true, false, "bob", "", Means::Push, None),
            ("refs/tags/main", true, true, "bob", "", Means::Push, None),
            (
                "refs/heads/main",
                false,
                false,
                "bob",
                "",
                Means::Push,
                Some("pull request"),
            ),
            ("refs/heads/main", false, false, "bob", "", Means::Merge, None),
            (
                "refs/heads/main",
                false,
                true,
                "bob",
                "",
                Means::Merge,
                Some("rewritten"),
            ),
            (
                "refs/heads/main",
                true,
                false,
                "bob",
                "",
                Means::Push,
                Some("default branch"),
            ),
            (
                "refs/heads/release/1",
                false,
                false,
                "bob",
                "",
                Means::Push,
                Some("not among"),
            ),
            (
                "refs/heads/release/1",
                false,
                false,
                "alice",
                "",
                Means::Push,
                None,
            ),
            (
                "refs/heads/release/1",
                false,
                false,
                "bob",
                "releasers",
                Means::Push,
                None,
            ),
            (
                "refs/heads/release/1",
                true,
                false,
                "alice",
                "",
                Means::Push,
                None,
            ),
            (
                "refs/heads/release/1/x",
                false,
                true,
                "bob",
                "",
                Means::Push,
                None,
            ),
            (
                "refs/heads/release/1",
                false,
                true,
                "alice",
                "",
                Means::Push,
                Some("rewritten"),
            ),
            ("refs/heads/old", false, true, "bob", "", Means::Push, None),
            (
                "refs/heads/old",
                true,
                false,
                "bob",
                "",
                Means::Push,
                Some("cannot be deleted"),
            ),
            (
                "refs/fairway/x",
                false,
                false,
                "bob",
                "",
                Means::Push,
                Some("made by the server"),
            ),
            (
                "refs/pull/1/head",
                false,
                false,
                "bob",
                "",
                Means::Push,
                Some("made by the server"),
            ),
        ];
        for (name, is_deletion, is_forced, user, group, means, expected) in cases {
            let name = RefName::parse(name).unwrap();
            let groups = [(*group).to_owned()];
            let found = refusal(
                &wanted,
                &Observed {
                    name: &name,
                    is_deletion: *is_deletion,
                    is_forced: *is_forced,
                    user,
                    groups: &groups,
                    means: *means,
                },
            );
            match expected {
                None => assert_eq!(found, None, "{name}"),
                Some(text) => assert!(
                    found.as_ref().is_some_and(|found| found.contains(text)),
                    "{name}: {found:?}"
                ),
            }
        }
        let mirror = Wanted::read("root", &json!({"spec": {"mirror": {"url": "https://x/y"}}}));
        let name = RefName::branch("x").unwrap();
        let update = Observed {
            name: &name,
            is_deletion: false,
            is_forced: false,
            user: "a",
            groups: &[],
            means: Means::Push,
        };
        assert!(refusal(&mirror, &update).unwrap().contains("mirror"));
    }

    #[test]
    fn paths_are_limited() {
        let globs = ["apps/**".to_owned(), "*.md".to_owned()];
        for (path, good) in [
            ("apps/a/b.yaml", true),
            ("README.md", true),
            ("docs/README.md", false),
            ("other/x", false),
            ("apps", false),
        ] {
            let changed = [path.to_owned()];
            assert_eq!(forbidden_path(&globs, &changed).is_none(), good, "{path}");
        }
        assert_eq!(forbidden_path(&[], &["x".to_owned()]), None);
    }
}
