//! Owners of repositories: workspaces, by names that fit into the address of a repository.
//!
//! The root workspace is `root`; any other is its path below the root with dots, which no workspace has in its name:
//! `root:org:team` is `org.team`. A workspace below the root that is itself called `root` is `root.root`.

use fairway_kernel_scalar::names::is_dns1123_label;

/// The longest part of an address.
const MAX_NAME: usize = 100;

/// The path of the workspace that an owner's name means, none if it means none.
pub fn workspace_of(owner: &str) -> Option<String> {
    if owner == "root" {
        return Some("root".to_owned());
    }
    let below = owner
        .strip_prefix("root.")
        .filter(|rest| *rest == "root")
        .unwrap_or(owner);
    let is_name = |part: &str| is_dns1123_label(part).is_empty();
    match owner.len() <= 4 * MAX_NAME && below.split('.').all(is_name) {
        true => Some(format!("root:{}", below.replace('.', ":"))),
        false => None,
    }
}

/// The owner's name of a workspace, by its path.
pub fn of_workspace(path: &str) -> String {
    match path.strip_prefix("root:") {
        None => path.replace(':', "."),
        Some("root") => "root.root".to_owned(),
        Some(below) => below.replace(':', "."),
    }
}

/// Whether a repository can have this name: that of an object, and not one that Git or Gitea gives a meaning.
pub fn is_repository_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
        && name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && name.bytes().last().is_some_and(|b| b.is_ascii_alphanumeric())
        && !name.contains("..")
        && !name.ends_with(".git")
        && !name.ends_with(".wiki")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_workspaces() {
        for (owner, path) in [
            ("root", Some("root")),
            ("org", Some("root:org")),
            ("org.team", Some("root:org:team")),
            ("root.root", Some("root:root")),
            ("", None),
            ("..", None),
            ("a.", None),
            (".a", None),
            ("a/b", None),
            ("A", None),
            ("a:b", None),
            ("system:fairway", None),
            ("*", None),
            ("-a", None),
        ] {
            assert_eq!(workspace_of(owner).as_deref(), path, "{owner}");
            if let Some(path) = path {
                assert_eq!(of_workspace(path), owner);
            }
        }
    }

    #[test]
    fn names_of_repositories() {
        for (name, good) in [
            ("a", true),
            ("my-app.v2", true),
            ("", false),
            (".", false),
            ("..", false),
            ("a..b", false),
            (".a", false),
            ("a.git", false),
            ("a.wiki", false),
            ("A", false),
            ("a/b", false),
            ("-a", false),
            ("a%2f", false),
        ] {
            assert_eq!(is_repository_name(name), good, "{name}");
        }
        assert!(!is_repository_name(&"a".repeat(101)));
    }
}
