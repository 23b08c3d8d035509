//! Which paths mean a Git repository somewhere else, and what in it.

use std::time::Duration;

use fairway_text_gotext::duration;

/// A repository and a directory in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositorySpec {
    /// As it was written.
    pub raw: String,
    /// What `git clone` is given.
    pub clone_url: String,
    /// The directory in it; empty for its root.
    pub path: String,
    /// The branch, tag or commit; empty for the default branch.
    pub reference: String,
    /// Whether submodules are wanted.
    pub submodules: bool,
    /// The time that fetching may take, as it was written; empty for the fetcher's own.
    pub timeout: String,
}

impl RepositorySpec {
    /// The time that fetching may take: `90s` and the like, or seconds; none for what is neither, or nothing at all.
    pub fn timeout(&self) -> Option<Duration> {
        let text = self.timeout.as_str();
        if let Ok(seconds) = text.parse::<u32>() {
            return (seconds > 0).then(|| Duration::from_secs(seconds.into()));
        }
        duration::span(text).filter(|time| !time.is_zero())
    }
}

/// Reads `https://host/org/repo//path?ref=main` and its like; none for what is no such thing.
pub(crate) fn parse(raw: &str) -> Option<RepositorySpec> {
    if raw.starts_with('/') {
        return None;
    }
    let (url, query) = raw.split_once('?').unwrap_or((raw, ""));
    let (host, rest) = split_host(url)?;
    let (repository, path) = split_path(rest, host.starts_with("file://"))?;
    if repository.is_empty() || climbs_out(path) {
        return None;
    }
    let mut spec = RepositorySpec {
        raw: raw.to_owned(),
        clone_url: format!("{host}{repository}"),
        path: path.trim_start_matches('/').to_owned(),
        reference: String::new(),
        submodules: true,
        timeout: String::new(),
    };
    let mut version = String::new();
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match key {
            "ref" => spec.reference = value.to_owned(),
            "version" => version = value.to_owned(),
            "timeout" => spec.timeout = value.to_owned(),
            "submodules" => spec.submodules = !matches!(value, "0" | "f" | "F" | "false" | "FALSE" | "False"),
            _ => {}
        }
    }
    if spec.reference.is_empty() {
        spec.reference = version;
    }
    Some(spec)
}

fn strip_ignoring_case<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// Scheme, user and host with what separates them from the path, and the path.
fn split_host(url: &str) -> Option<(String, &str)> {
    let url = strip_ignoring_case(url, "git::").unwrap_or(url);
    let (scheme, rest) = ["ssh://", "https://", "http://", "file://"]
        .into_iter()
        .find_map(|scheme| Some((scheme, strip_ignoring_case(url, scheme)?)))
        .unwrap_or(("", url));
    let (user, host_path) = split_user(rest);
    let github =
        strip_ignoring_case(host_path, "github.com").is_some_and(|after| after.starts_with(['/', ':']));
    let scp = scheme.is_empty() && (!user.is_empty() || github);
    if scheme.is_empty() && !scp {
        return None;
    }
    if scheme == "file://" {
        return Some((scheme.to_owned(), rest));
    }
    let mut separator = host_path.find('/');
    if scp {
        let colon = host_path.find(':');
        if separator.is_none() || colon.is_some_and(|colon| colon > 0 && Some(colon) < separator) {
            separator = colon;
        }
    }
    let (host, path) = match separator {
        Some(at) => host_path.split_at(at + 1),
        None => (host_path, ""),
    };
    if host.is_empty() {
        return None;
    }
    if github {
        return Some(match scheme == "ssh://" || !user.is_empty() {
            true => (format!("{user}github.com:"), path),
            false => ("https://github.com/".to_owned(), path),
        });
    }
    Some((format!("{scheme}{user}{host}"), path))
}

fn split_user(text: &str) -> (&str, &str) {
    let Some(at) = text.find('@') else {
        return ("", text);
    };
    let user = &text[..at];
    let valid = user.starts_with(|c: char| c.is_ascii_alphabetic())
        && user
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match valid {
        true => text.split_at(at + 1),
        false => ("", text),
    }
}

/// The repository's path and the directory in it.
fn split_path(path: &str, is_file: bool) -> Option<(&str, &str)> {
    if let Some(at) = path.find("_git/") {
        let name_at = at + "_git/".len();
        let end = path[name_at..]
            .find('/')
            .map_or(path.len(), |length| name_at + length);
        return Some((&path[..end], path[end..].trim_start_matches('/')));
    }
    if let Some(at) = path.find("//") {
        return Some((&path[..at], &path[at + 2..]));
    }
    if let Some(at) = path.find(".git") {
        return Some(path.split_at(at + ".git".len()));
    }
    if is_file {
        return Some((path, ""));
    }
    let first = path.find('/')?;
    let end = path[first + 1..]
        .find('/')
        .map_or(path.len(), |length| first + 1 + length);
    Some((&path[..end], path[end..].trim_start_matches('/')))
}

fn climbs_out(path: &str) -> bool {
    let mut depth = 0usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(up) => depth = up,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn repositories() {
        for (raw, clone_url, path, reference) in [
            (
                "https://github.com/org/repo//a/b?ref=v1",
                "https://github.com/org/repo",
                "a/b",
                "v1",
            ),
            (
                "https://git.example.org/org/repo/a?version=v2",
                "https://git.example.org/org/repo",
                "a",
                "v2",
            ),
            ("github.com/org/repo", "https://github.com/org/repo", "", ""),
            (
                "git@github.com:org/repo.git/a",
                "git@github.com:org/repo.git",
                "a",
                "",
            ),
            (
                "ssh://git@host.xz:22/org/repo.git?ref=x&timeout=5",
                "ssh://git@host.xz:22/org/repo.git",
                "",
                "x",
            ),
            ("user@host:org/repo", "user@host:org/repo", "", ""),
            (
                "https://dev.azure.com/o/p/_git/r/a/b",
                "https://dev.azure.com/o/p/_git/r",
                "a/b",
                "",
            ),
            ("file:///a/b/c", "file:///a/b/c", "", ""),
        ] {
            let spec = parse(raw).unwrap_or_else(|| panic!("{raw}"));
            assert_eq!(
                (
                    spec.clone_url.as_str(),
                    spec.path.as_str(),
                    spec.reference.as_str()
                ),
                (clone_url, path, reference),
                "{raw}"
            );
        }
    }

    #[test]
    fn timeouts() {
        for (text, millis) in [
            ("5", Some(5_000)),
            ("90s", Some(90_000)),
            ("1m30.5s", Some(90_500)),
            ("2h", Some(7_200_000)),
            ("250ms", Some(250)),
            ("0", None),
            ("", None),
            ("-1s", None),
            ("soon", None),
            ("5x", None),
        ] {
            let spec = parse(&format!("https://h/o/r?timeout={text}")).unwrap();
            assert_eq!(spec.timeout().map(|time| time.as_millis()), millis, "{text}");
        }
    }

    #[test]
    fn paths_are_no_repositories() {
        for raw in [
            "../base",
            "base",
            "/abs/path",
            "deploy.yaml",
            "https://host/only",
            "github.com/org",
            "https://github.com/o/r//../x",
        ] {
            assert_eq!(parse(raw), None, "{raw}");
        }
    }
}
