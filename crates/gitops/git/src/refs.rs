//! The names of branches, tags and other references, by the rules of `git check-ref-format`.

use std::fmt;

use crate::GitError;

/// The longest name; what file systems and Git's lock files leave room for.
const MAX_LENGTH: usize = 240;

/// A full and well-formed name, such as `refs/heads/main`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefName(String);

impl RefName {
    /// Reads a full name.
    pub fn parse(text: &str) -> Result<Self, GitError> {
        if !text.starts_with("refs/") {
            return Err(GitError::invalid(
                "the reference",
                text,
                "it does not begin with refs/",
            ));
        }
        match ref_problem(text) {
            None => Ok(Self(text.to_owned())),
            Some(why) => Err(GitError::invalid("the reference", text, why)),
        }
    }

    /// `refs/heads/NAME`.
    pub fn branch(name: &str) -> Result<Self, GitError> {
        match branch_problem(name) {
            None => Ok(Self(format!("refs/heads/{name}"))),
            Some(why) => Err(GitError::invalid("the branch", name, why)),
        }
    }

    /// `refs/tags/NAME`.
    pub fn tag(name: &str) -> Result<Self, GitError> {
        match branch_problem(name) {
            None => Ok(Self(format!("refs/tags/{name}"))),
            Some(why) => Err(GitError::invalid("the tag", name, why)),
        }
    }

    /// The full name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The branch that it is, if it is one.
    pub fn as_branch(&self) -> Option<&str> {
        self.0.strip_prefix("refs/heads/")
    }

    /// The tag that it is, if it is one.
    pub fn as_tag(&self) -> Option<&str> {
        self.0.strip_prefix("refs/tags/")
    }

    /// Without `refs/heads/`, `refs/tags/` or `refs/`.
    pub fn short(&self) -> &str {
        let known = self.as_branch().or_else(|| self.as_tag());
        known.unwrap_or_else(|| self.0.strip_prefix("refs/").unwrap_or(&self.0))
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// What is wrong with the short name of a branch or tag.
pub fn branch_problem(name: &str) -> Option<&'static str> {
    if name.starts_with('-') {
        return Some("it begins with -");
    }
    if name == "HEAD" {
        return Some("HEAD is not a name for a branch");
    }
    ref_problem(name)
}

/// What is wrong with the name of a reference, or a part of one.
pub fn ref_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it is empty");
    }
    if name.len() > MAX_LENGTH {
        return Some("it is longer than 240 bytes");
    }
    if name == "@" {
        return Some("@ alone means HEAD");
    }
    if name.ends_with('.') {
        return Some("it ends with a dot");
    }
    if name.contains("..") {
        return Some("it has two dots in a row");
    }
    if name.contains("@{") {
        return Some("it contains @{");
    }
    if name
        .bytes()
        .any(|byte| byte <= b' ' || byte == 0x7f || b"~^:?*[\\".contains(&byte))
    {
        return Some("it contains a space, a control character or one of ~ ^ : ? * [ \\");
    }
    for part in name.split('/') {
        if part.is_empty() {
            return Some("it begins or ends with a slash, or has two in a row");
        }
        if part.starts_with('.') {
            return Some("a part of it begins with a dot");
        }
        if part.ends_with(".lock") {
            return Some("a part of it ends with .lock");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_git_judges_them() {
        // Each was put to `git check-ref-format --branch` (2.39); `long` is made below.
        let cases: &[(&str, bool)] = &[
            ("main", true),
            ("feature/x", true),
            ("v1.2.3", true),
            ("ä", true),
            ("a@b", true),
            ("@x", true),
            ("", false),
            ("@", false),
            ("-x", false),
            ("HEAD", false),
            ("a..b", false),
            ("a.", false),
            (".a", false),
            ("a/.b", false),
            ("a.lock", false),
            ("a.lock/b", false),
            ("a//b", false),
            ("/a", false),
            ("a/", false),
            ("a b", false),
            ("a\nb", false),
            ("a~1", false),
            ("a^", false),
            ("a:b", false),
            ("a?", false),
            ("a*", false),
            ("a[", false),
            ("a\\b", false),
            ("a@{1}", false),
            ("a\u{7f}", false),
        ];
        for (name, valid) in cases {
            assert_eq!(branch_problem(name).is_none(), *valid, "{name:?}");
        }
        assert!(branch_problem(&"x".repeat(241)).is_some());
        assert!(RefName::parse("heads/main").is_err());
        assert_eq!(RefName::branch("a/b").unwrap().as_str(), "refs/heads/a/b");
        assert_eq!(RefName::parse("refs/pull/1/head").unwrap().short(), "pull/1/head");
    }
}
