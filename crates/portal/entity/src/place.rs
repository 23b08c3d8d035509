//! Where entities are read: references to locations, addresses of files in the Git host of this installation and elsewhere, and what
//! a relative target means.
//!
//! A relative target stays within the repository of the file that names it, at the same revision: a `catalog-info.yaml` can point to
//! its neighbours and to nothing else by a path.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::InputError;

/// The file that is looked for in every repository.
pub const CATALOG_FILE: &str = "catalog-info.yaml";
/// The longest address.
const MAX_LENGTH: usize = 2048;
/// What a segment of a path is written with.
const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// `type:target`, as annotations and requests name a location.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationRef {
    /// `url`; others are known and not read.
    pub kind: String,
    /// The address.
    pub target: String,
}

impl LocationRef {
    /// Reads `url:https://host/path`.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        let malformed = || {
            InputError(format!(
                "Unable to parse location ref '{text}', expected '<type>:<target>', e.g. 'url:https://host/path'"
            ))
        };
        let (kind, target) = text.split_once(':').ok_or_else(malformed)?;
        if matches!(kind, "http" | "https") {
            return Err(InputError(format!(
                "Invalid location ref '{text}', please prefix it with 'url:', e.g. 'url:{text}'"
            )));
        }
        if kind.is_empty() || target.is_empty() {
            return Err(malformed());
        }
        Ok(Self {
            kind: kind.to_owned(),
            target: target.to_owned(),
        })
    }
}

impl std::fmt::Display for LocationRef {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}", self.kind, self.target)
    }
}

/// Which state of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Revision {
    /// Its default branch.
    Default,
    /// A branch.
    Branch(String),
    /// A tag.
    Tag(String),
    /// A commit.
    Commit(String),
}

/// A file in the Git host of this installation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hosted {
    /// The owner's name in addresses.
    pub owner: String,
    /// The repository.
    pub repository: String,
    /// At which state.
    pub revision: Revision,
    /// The path of the file, or a pattern for several, without a slash at its beginning.
    pub path: String,
}

impl Hosted {
    /// Reads an address: none if it is not of this host, which is named without a slash at its end.
    pub fn parse(host: &str, url: &str) -> Option<Result<Self, InputError>> {
        let rest = url.strip_prefix(host)?;
        if !rest.is_empty() && !rest.starts_with('/') {
            return None;
        }
        Some(Self::of_path(rest.trim_start_matches('/')).ok_or_else(|| {
            InputError(format!(
                "{url} is no file of a repository; write {host}/OWNER/REPOSITORY/src/branch/BRANCH/{CATALOG_FILE}"
            ))
        }))
    }

    fn of_path(path: &str) -> Option<Self> {
        if path.len() > MAX_LENGTH {
            return None;
        }
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let decoded: Option<Vec<String>> = path
            .split('/')
            .map(|segment| {
                let text = percent_decode_str(segment).decode_utf8().ok()?;
                (!text.contains('\0')).then(|| text.into_owned())
            })
            .collect();
        let decoded = decoded?;
        let segments: Vec<&str> = decoded.iter().map(String::as_str).collect();
        let (owner, repository, rest) = match segments.as_slice() {
            [owner, repository, rest @ ..] if !owner.is_empty() && !repository.is_empty() => {
                (*owner, *repository, rest)
            }
            _ => return None,
        };
        let repository = repository.strip_suffix(".git").unwrap_or(repository);
        let (revision, path) = match rest {
            [] | [""] => (Revision::Default, vec![CATALOG_FILE]),
            ["src" | "raw", "branch", name, path @ ..] => {
                (Revision::Branch((*name).to_owned()), path.to_vec())
            }
            ["src" | "raw", "tag", name, path @ ..] => (Revision::Tag((*name).to_owned()), path.to_vec()),
            ["src" | "raw", "commit", name, path @ ..] => {
                (Revision::Commit((*name).to_owned()), path.to_vec())
            }
            ["blob" | "tree", name, path @ ..] => (Revision::Branch((*name).to_owned()), path.to_vec()),
            _ => return None,
        };
        let path = join("", &path.join("/"))?;
        if path.is_empty() {
            return None;
        }
        Some(Self {
            owner: owner.to_owned(),
            repository: repository.to_owned(),
            revision,
            path,
        })
    }

    /// Its address in this host, in Gitea's form.
    pub fn url(&self, host: &str) -> String {
        let encode = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
        let (kind, name) = match &self.revision {
            Revision::Default => {
                return format!("{host}/{}/{}", encode(&self.owner), encode(&self.repository));
            }
            Revision::Branch(name) => ("branch", name),
            Revision::Tag(name) => ("tag", name),
            Revision::Commit(name) => ("commit", name),
        };
        let path: Vec<String> = self.path.split('/').map(encode).collect();
        format!(
            "{host}/{}/{}/src/{kind}/{}/{}",
            encode(&self.owner),
            encode(&self.repository),
            encode(name),
            path.join("/")
        )
    }

    /// Another file of the same repository at the same state, by a path relative to this one.
    pub fn beside(&self, target: &str) -> Result<Self, InputError> {
        let directory = self.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let path = match target.starts_with('/') || target.contains('\\') || target.contains('\0') {
            true => None,
            false => join(directory, target),
        };
        match path.filter(|path| !path.is_empty()) {
            Some(path) => Ok(Self { path, ..self.clone() }),
            None => Err(InputError(format!(
                "the target {target:?} of {} is not a path within its repository",
                self.path
            ))),
        }
    }

    /// Whether the path stands for several.
    pub fn is_pattern(&self) -> bool {
        is_pattern(&self.path)
    }
}

/// Whether a target stands for several files.
pub fn is_pattern(target: &str) -> bool {
    target.contains('*')
}

/// Whether a path is one that a pattern means: `*` stays in a directory, `**` does not.
pub fn path_matches(pattern: &str, path: &str) -> bool {
    if fairway_text_glob::matches_between(pattern, path, &['/']) {
        return true;
    }
    // `**/x` also means `x`: for upstream's globs no directory is one of many.
    pattern.contains("**/") && fairway_text_glob::matches_between(&pattern.replace("**/", ""), path, &['/'])
}

/// Puts a relative path behind a directory; none if it leads out.
fn join(directory: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Where a target leads that a file elsewhere names.
pub fn beside_url(base: &str, target: &str) -> Result<String, InputError> {
    let refuse = |why: &str| Err(InputError(format!("the target {target:?} of {base} {why}")));
    if target.len() > MAX_LENGTH {
        return refuse("is too long");
    }
    if target.contains("://") {
        return Ok(target.to_owned());
    }
    let base = base.split(['?', '#']).next().unwrap_or_default();
    let Some((origin, path)) = base
        .split_once("://")
        .and_then(|(scheme, rest)| Some((scheme, rest.split_once('/')?)))
        .map(|(scheme, (host, path))| (format!("{scheme}://{host}"), path))
    else {
        return refuse("cannot be resolved");
    };
    if target.starts_with('/') || target.contains('\\') {
        return refuse("is not a relative path");
    }
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    match join(directory, target) {
        Some(path) => Ok(format!("{origin}/{path}")),
        None => refuse("leads out of its host"),
    }
}

/// The address of the text of a file that people see in a page of a Git host.
pub fn raw_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let Some((host, path)) = rest.split_once('/') else {
        return url.to_owned();
    };
    let segments: Vec<&str> = path.split('/').collect();
    let raw = match segments.as_slice() {
        [owner, repository, "blob" | "tree", rest @ ..] if host == "github.com" => {
            return format!(
                "{scheme}://raw.githubusercontent.com/{owner}/{repository}/{}",
                rest.join("/")
            );
        }
        [.., "-", "blob", _, _] | [_, _, "src", "branch" | "commit" | "tag", ..] => true,
        segments => segments.windows(2).any(|pair| pair == ["-", "blob"]),
    };
    match raw {
        true => format!(
            "{scheme}://{host}/{}",
            path.replacen("/-/blob/", "/-/raw/", 1)
                .replacen("/src/", "/raw/", 1)
        ),
        false => url.to_owned(),
    }
}

/// What is wrong with the address of a location, if it is not one that can be registered.
pub fn target_problem(target: &str) -> Option<String> {
    if target.len() > MAX_LENGTH {
        return Some(format!("the target is longer than {MAX_LENGTH} bytes"));
    }
    if target.chars().any(|c| c.is_control() || c == ' ') {
        return Some("the target has spaces or control characters".to_owned());
    }
    let rest = target
        .strip_prefix("https://")
        .or_else(|| target.strip_prefix("http://"));
    match rest {
        Some(rest) if rest.split('/').next().is_some_and(|host| host.contains('@')) => {
            Some("the target must not have credentials in it".to_owned())
        }
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') => None,
        _ => Some("the target must be an absolute URL, such as https://host/path".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOST: &str = "https://git.fairway.localhost:7443";

    #[test]
    fn files_of_the_host() {
        for (path, expected) in [
            (
                "/root/app/src/branch/main/catalog-info.yaml",
                Some(("main", "catalog-info.yaml")),
            ),
            ("/root/app/raw/branch/main/a/b.yaml", Some(("main", "a/b.yaml"))),
            (
                "/root/app.git/blob/feature%2Fx/a%20b.yaml?y#z",
                Some(("feature/x", "a b.yaml")),
            ),
            ("/root/app/src/tag/v1/a.yaml", Some(("v1", "a.yaml"))),
            ("/root/app", Some(("", "catalog-info.yaml"))),
            ("/root/app/src/branch/main/a/../b.yaml", Some(("main", "b.yaml"))),
            ("/root/app/src/branch/main/../../../etc", None),
            ("/root/app/src/branch/main/%2e%2e/x", None),
            ("/root/app/src/branch/main/", None),
            ("/root/app/issues", None),
            ("/root", None),
            ("", None),
        ] {
            let parsed = Hosted::parse(HOST, &format!("{HOST}{path}")).unwrap();
            let found = parsed.as_ref().ok().map(|hosted| {
                let name = match &hosted.revision {
                    Revision::Default => "",
                    Revision::Branch(name) | Revision::Tag(name) | Revision::Commit(name) => name,
                };
                (name, hosted.path.as_str())
            });
            assert_eq!(found, expected, "{path}: {parsed:?}");
        }
        assert!(Hosted::parse(HOST, "https://git.fairway.localhost:74430/root/app").is_none());
        assert!(Hosted::parse(HOST, "https://example.com/a/b").is_none());
    }

    #[test]
    fn neighbours_stay_in_the_repository() {
        let url = format!("{HOST}/root/app/src/branch/main/deep/catalog-info.yaml");
        let file = Hosted::parse(HOST, &url).unwrap().unwrap();
        for (target, expected) in [
            ("./x.yaml", Some("deep/x.yaml")),
            ("x.yaml", Some("deep/x.yaml")),
            ("../x.yaml", Some("x.yaml")),
            ("../*.yaml", Some("*.yaml")),
            ("../../x.yaml", None),
            ("/etc/passwd", None),
            ("..\\x", None),
            ("..", None),
        ] {
            let found = file.beside(target).map(|file| file.path).ok();
            assert_eq!(found.as_deref(), expected, "{target}");
        }
        assert_eq!(file.url(HOST), url);
    }

    #[test]
    fn patterns_mean_files() {
        for (pattern, path, matches) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "b/a.yaml", false),
            ("**/a.yaml", "b/c/a.yaml", true),
            ("**/a.yaml", "a.yaml", true),
            ("x/*/a.yaml", "x/y/a.yaml", true),
        ] {
            assert_eq!(path_matches(pattern, path), matches, "{pattern} {path}");
        }
    }

    #[test]
    fn addresses_elsewhere() {
        let base = "https://example.com/a/b/catalog-info.yaml?x=1";
        for (target, expected) in [
            ("./c.yaml", Some("https://example.com/a/b/c.yaml")),
            ("../c.yaml", Some("https://example.com/a/c.yaml")),
            ("../../../c.yaml", None),
            ("/c.yaml", None),
            ("https://other.com/x", Some("https://other.com/x")),
        ] {
            assert_eq!(beside_url(base, target).ok().as_deref(), expected, "{target}");
        }
        for (page, raw) in [
            (
                "https://github.com/o/r/blob/main/a.yaml",
                "https://raw.githubusercontent.com/o/r/main/a.yaml",
            ),
            (
                "https://gitlab.com/g/s/r/-/blob/main/a/b.yaml",
                "https://gitlab.com/g/s/r/-/raw/main/a/b.yaml",
            ),
            (
                "https://codeberg.org/o/r/src/branch/main/a.yaml",
                "https://codeberg.org/o/r/raw/branch/main/a.yaml",
            ),
            ("https://example.com/a.yaml", "https://example.com/a.yaml"),
        ] {
            assert_eq!(raw_url(page), raw);
        }
    }

    #[test]
    fn locations_are_absolute_addresses() {
        for (target, good) in [
            ("https://a/b", true),
            ("http://a", true),
            ("file:///etc/passwd", false),
            ("https://user:pass@a/b", false),
            ("https:///b", false),
            ("./a", false),
            ("https://a/b c", false),
        ] {
            assert_eq!(target_problem(target).is_none(), good, "{target}");
        }
        for (text, expected) in [
            ("url:https://a/b", Ok(("url", "https://a/b"))),
            ("https://a/b", Err("please prefix it with 'url:'")),
            ("nothing", Err("Unable to parse location ref")),
            ("url:", Err("Unable to parse location ref")),
        ] {
            match (LocationRef::parse(text), expected) {
                (Ok(found), Ok((kind, target))) => assert_eq!((&*found.kind, &*found.target), (kind, target)),
                (Err(error), Err(part)) => assert!(error.0.contains(part), "{error}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    proptest! {
        /// No path of an address or a target leads above the repository, however it is written.
        #[test]
        fn nothing_leads_out(path in "[a./%2e\\\\*]{0,40}", target in "[a./%2e\\\\]{0,40}") {
            let url = format!("{HOST}/root/app/src/branch/main/{path}");
            if let Some(Ok(file)) = Hosted::parse(HOST, &url) {
                prop_assert!(!file.path.split('/').any(|part| part == ".." || part.is_empty()));
                if let Ok(other) = file.beside(&target) {
                    prop_assert!(!other.path.split('/').any(|part| part == ".." || part.is_empty()));
                    prop_assert_eq!(&other.repository, "app");
                }
            }
        }
    }
}
