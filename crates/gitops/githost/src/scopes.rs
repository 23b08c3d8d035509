//! What a token may be used for, in Gitea's words: `read:repository`, `write:user`, `all`.
//!
//! Scopes narrow what the account of a token may do by its roles; they never widen it. They are known to the Git host only,
//! for which such tokens are made: the Kubernetes API does not accept them.

use k8s_openapi::api::authentication::v1::UserInfo;

/// Where a caller's scopes are, beside what the API server says of him. Who has none is not narrowed.
pub(crate) const EXTRA: &str = "fairway.dev/git-scopes";
/// Whom tokens with scopes are for.
pub(crate) const AUDIENCE: &str = "fairway-git-host";

/// What Gitea has scopes for. Of most, nothing is served here.
const CATEGORIES: [&str; 9] = [
    "activitypub",
    "admin",
    "issue",
    "misc",
    "notification",
    "organization",
    "package",
    "repository",
    "user",
];
/// The most scopes of a token.
const MAX_SCOPES: usize = 32;

/// A part of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Area {
    /// Repositories and everything in them, Git included.
    Repository,
    /// Owners of repositories.
    Organization,
    /// The caller himself, and his tokens.
    User,
}

impl Area {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Repository => "repository",
            Self::Organization => "organization",
            Self::User => "user",
        }
    }
}

/// Judges the scopes that somebody asks for; as they are kept, without doubles.
pub(crate) fn parse(asked: &[String]) -> Result<Vec<String>, String> {
    let mut scopes: Vec<String> = Vec::new();
    for scope in asked.iter().map(|scope| scope.trim()) {
        let is_known = match scope.split_once(':') {
            Some(("read" | "write", category)) => CATEGORIES.contains(&category),
            _ => scope == "all",
        };
        match scope {
            "" => continue,
            "public-only" | "sudo" => return Err(format!("the scope {scope} is not served here")),
            _ if !is_known => {
                return Err(format!(
                    "{scope:?} is not a scope; scopes are all, read:CATEGORY and write:CATEGORY, such as write:repository"
                ));
            }
            _ if scopes.iter().any(|known| known == scope) => {}
            _ => scopes.push(scope.to_owned()),
        }
    }
    match scopes.len() {
        0 => Err("access token must have a scope".to_owned()),
        count if count > MAX_SCOPES => Err(format!("more than {MAX_SCOPES} scopes")),
        _ => Ok(scopes),
    }
}

fn grants(scopes: &[String], category: &str, is_write: bool) -> bool {
    scopes.iter().any(|scope| match scope.split_once(':') {
        Some(("write", of)) => of == category,
        Some((_, of)) => of == category && !is_write,
        None => scope == "all",
    })
}

/// Whether a caller may do something there, as far as his token goes.
pub(crate) fn allow(user: Option<&UserInfo>, area: Area, is_write: bool) -> bool {
    match of(user) {
        None => true,
        Some(scopes) => grants(scopes, area.name(), is_write),
    }
}

/// The first scope that goes beyond those of the caller.
pub(crate) fn beyond<'a>(user: Option<&UserInfo>, asked: &'a [String]) -> Option<&'a str> {
    let own = of(user)?;
    let is_held = |scope: &&String| match scope.split_once(':') {
        Some((verb, category)) => grants(own, category, verb == "write"),
        None => own.iter().any(|scope| scope == "all"),
    };
    asked.iter().find(|scope| !is_held(scope)).map(String::as_str)
}

fn of(user: Option<&UserInfo>) -> Option<&[String]> {
    let scopes = user?.extra.as_ref()?.get(EXTRA)?;
    Some(scopes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn scopes_are_read() {
        for (asked, expected) in [
            ("all", Ok("all")),
            (
                "read:repository write:user read:repository",
                Ok("read:repository write:user"),
            ),
            ("", Err("must have a scope")),
            ("repo", Err("not a scope")),
            ("write:everything", Err("not a scope")),
            ("delete:repository", Err("not a scope")),
            ("all public-only", Err("public-only is not served")),
            ("sudo", Err("not served")),
        ] {
            match (parse(&words(asked)), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, words(expected), "{asked}"),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{asked}: {found}"),
                (found, _) => panic!("{asked}: {found:?}"),
            }
        }
    }

    #[test]
    fn scopes_narrow() {
        let with = |text: &str| UserInfo {
            extra: Some([(EXTRA.to_owned(), words(text))].into()),
            ..UserInfo::default()
        };
        for (scopes, area, is_write, expected) in [
            ("all", Area::User, true, true),
            ("read:repository", Area::Repository, false, true),
            ("read:repository", Area::Repository, true, false),
            ("write:repository", Area::Repository, false, true),
            ("write:repository", Area::Organization, false, false),
            ("", Area::Repository, false, false),
        ] {
            assert_eq!(
                allow(Some(&with(scopes)), area, is_write),
                expected,
                "{scopes} {area:?}"
            );
        }
        assert!(allow(None, Area::User, true) && allow(Some(&UserInfo::default()), Area::User, true));
        let own = with("write:user read:repository");
        assert_eq!(
            beyond(Some(&own), &words("read:user write:user read:repository")),
            None
        );
        assert_eq!(
            beyond(Some(&own), &words("read:user write:repository")),
            Some("write:repository")
        );
        assert_eq!(beyond(Some(&own), &words("all")), Some("all"));
        assert_eq!(beyond(Some(&UserInfo::default()), &words("all")), None);
    }
}
