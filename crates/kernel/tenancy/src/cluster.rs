//! Names of workspaces: the id under which objects are stored, and the path that people use.
//!
//! A logical cluster's id never changes; its path (`root:acme:frontend`) is a chain of Workspace names and may. Texts are
//! parsed once, into these types, and are within their limits from then on.

use std::fmt;

use crate::encode;

/// How long one segment of a path may be.
pub const MAX_SEGMENT: usize = 63;

/// How deep workspaces may nest. kcp has no limit; a bound keeps every walk up or down the tree short.
pub const MAX_DEPTH: usize = 32;

/// Ids of clusters that belong to the system start with it; they are one name, never a path.
const SYSTEM_PREFIX: &str = "system:";

/// Why a text names no workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not a name, or not a chain of names.
    #[error(
        "invalid cluster: {0:?} does not match the regex: use names of lower case letters, digits and '-' (at most 63 characters each), joined by ':'"
    )]
    Malformed(String),
    /// More segments than workspaces may nest.
    #[error("invalid cluster: the path has {0} segments, at most {MAX_DEPTH} are allowed")]
    TooDeep(usize),
}

/// The id of a logical cluster: `root`, `system:…`, or sixteen letters and digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterId(Box<str>);

impl ClusterId {
    /// The workspace at the top.
    pub fn root() -> Self {
        Self("root".into())
    }

    /// An id that somebody wrote.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let is_name = match text.strip_prefix(SYSTEM_PREFIX) {
            Some(rest) => rest.split(':').all(is_segment),
            None => is_segment(text),
        };
        if !is_name {
            return Err(NameError::Malformed(abridged(text)));
        }
        Ok(Self(text.into()))
    }

    /// The id for a Workspace, from its UID. `attempt` makes another one where an id is taken; start with 0.
    ///
    /// kcp draws the id at random and writes it down before it uses it. One that follows from the UID is as unique, and a
    /// restart in the middle of creation finds the same.
    pub fn for_workspace(uid: &str, attempt: u32) -> Self {
        let seed = if attempt == 0 {
            uid.to_owned()
        } else {
            format!("{uid}/{attempt}")
        };
        let mut text = encode::base36_padded(&encode::sha224(seed.as_bytes()));
        text.truncate(16);
        Self(text.into_boxed_str())
    }

    /// The id of a user's home workspace.
    pub fn home_of(user: &str) -> Self {
        Self(encode::base36_padded(&encode::sha224(user.as_bytes())[..8]).into_boxed_str())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the workspace at the top.
    pub fn is_root(&self) -> bool {
        &*self.0 == "root"
    }

    /// Whether it belongs to the system, so that only privileged users have business there.
    pub fn is_system(&self) -> bool {
        self.0.starts_with(SYSTEM_PREFIX)
    }

    /// The id as a path of one segment.
    pub fn path(&self) -> WorkspacePath {
        WorkspacePath(self.0.clone())
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A chain of names: first a cluster's id, then the names of Workspaces within.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspacePath(Box<str>);

impl WorkspacePath {
    /// `root`.
    pub fn root() -> Self {
        ClusterId::root().path()
    }

    /// A path that somebody wrote.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if !text.split(':').all(is_segment) {
            return Err(NameError::Malformed(abridged(text)));
        }
        let depth = text.split(':').count();
        if depth > MAX_DEPTH {
            return Err(NameError::TooDeep(depth));
        }
        Ok(Self(text.into()))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names along the path. `system:…` is one name.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        let whole = self.0.starts_with(SYSTEM_PREFIX);
        self.0.split(move |c| c == ':' && !whole)
    }

    /// The cluster's id, if the path is nothing but that.
    pub fn as_cluster(&self) -> Option<ClusterId> {
        (self.0.starts_with(SYSTEM_PREFIX) || !self.0.contains(':')).then(|| ClusterId(self.0.clone()))
    }

    /// Where the last Workspace lies, and its name.
    pub fn split(&self) -> Option<(Self, &str)> {
        if self.0.starts_with(SYSTEM_PREFIX) {
            return None;
        }
        let (parent, name) = self.0.rsplit_once(':')?;
        Some((Self(parent.into()), name))
    }

    /// The path without its last name.
    pub fn parent(&self) -> Option<Self> {
        self.split().map(|(parent, _)| parent)
    }

    /// The last name.
    pub fn base(&self) -> &str {
        self.split_name()
    }

    fn split_name(&self) -> &str {
        match self.0.rfind(':') {
            Some(at) if !self.0.starts_with(SYSTEM_PREFIX) => &self.0[at + 1..],
            _ => &self.0,
        }
    }

    /// The path of a Workspace within.
    pub fn join(&self, name: &str) -> Result<Self, NameError> {
        Self::parse(&format!("{}:{name}", self.0))
    }

    /// Whether this path is `other` or lies below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self == other
            || self
                .0
                .strip_prefix(&*other.0)
                .is_some_and(|rest| rest.starts_with(':'))
    }

    /// What stands before every request path for this workspace: `/clusters/<path>`.
    pub fn request_path(&self) -> String {
        format!("/clusters/{}", self.0)
    }

    /// The path with `user:<name>` replaced by the id of that user's home workspace.
    pub fn with_home_resolved(&self) -> Self {
        let Some(rest) = self.0.strip_prefix("user:") else {
            return self.clone();
        };
        let (user, below) = rest
            .split_once(':')
            .map_or((rest, None), |(user, below)| (user, Some(below)));
        let home = ClusterId::home_of(user);
        match below {
            Some(below) => Self(format!("{home}:{below}").into_boxed_str()),
            None => home.path(),
        }
    }

    /// The cluster at the end of the path, by asking for one child after the other. The error names the part of the path
    /// that leads nowhere.
    pub fn walk(
        &self,
        exists: impl Fn(&ClusterId) -> bool,
        child: impl Fn(&ClusterId, &str) -> Option<ClusterId>,
    ) -> Result<ClusterId, String> {
        let path = self.with_home_resolved();
        let mut segments = path.segments();
        let mut at = ClusterId(segments.next().unwrap_or_default().into());
        let mut walked = at.0.to_string();
        if !exists(&at) {
            return Err(walked);
        }
        for name in segments {
            walked.push(':');
            walked.push_str(name);
            at = child(&at, name).ok_or_else(|| walked.clone())?;
        }
        Ok(at)
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the segment after `/clusters/` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `*`: all workspaces, for lists and watches.
    Wildcard,
    /// One logical cluster.
    Cluster(ClusterId),
    /// A path that has to be walked.
    Path(WorkspacePath),
}

impl Target {
    /// Reads the segment.
    pub fn parse(segment: &str) -> Result<Self, NameError> {
        if segment == "*" {
            return Ok(Self::Wildcard);
        }
        let path = WorkspacePath::parse(segment)?;
        Ok(match path.as_cluster() {
            Some(cluster) => Self::Cluster(cluster),
            None => Self::Path(path),
        })
    }
}

/// The start of a URL's path, `/clusters/<segment>`, taken off: the segment and the rest, which is never empty.
pub fn split_request_path(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("/clusters/")?;
    Some(match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    })
}

/// `[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`
pub(crate) fn is_segment(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    bytes.len() <= MAX_SEGMENT
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}

/// What a stranger wrote, short enough for a message.
fn abridged(text: &str) -> String {
    text.chars().take(128).collect()
}

#[cfg(test)]
mod tests;
