//! Where a step leads: from the workspace that one is in, and what was typed, to a path.
//!
//! The words are those of kcp's `kubectl ws`: `:` begins an absolute path and alone means the top, `..` goes up, `.` stays, `-`
//! goes back and `~` goes home; `/` may stand for `:`. Going back needs a memory, and home a server, so these two are
//! answered as such.

use std::fmt;

use crate::cluster::{NameError, WorkspacePath};

/// Where to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Nowhere; the present workspace is only told.
    Here,
    /// To where one was before.
    Back,
    /// To a workspace.
    Path(WorkspacePath),
    /// To the user's own workspace, and from there on; see [`from_home`].
    Home(Steps),
}

/// Steps that were typed, from a place that is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps(Box<str>);

/// Why a step leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// There is nothing above.
    #[error("cannot go up from {0}: there is no workspace above it")]
    AboveTop(WorkspacePath),
    /// Not a path.
    #[error("{typed:?} leads to no workspace")]
    NoPath {
        /// What was typed.
        typed: String,
        /// What is wrong with it.
        source: NameError,
    },
}

/// Where something typed leads from here. `home_directory` is the directory of the user: a shell puts it where `~` was
/// typed.
pub fn destination(
    here: &WorkspacePath,
    typed: &str,
    home_directory: Option<&str>,
) -> Result<Destination, StepError> {
    let unexpanded = unexpanded(typed, home_directory).replace('/', ":");
    let steps = unexpanded.as_str();
    match steps {
        "." | "" => return Ok(Destination::Here),
        "-" => return Ok(Destination::Back),
        ":" => return walk(&top(here), "", typed).map(Destination::Path),
        "~" => return Ok(Destination::Home(Steps("".into()))),
        _ => {}
    }
    if let Some(below) = steps.strip_prefix("~:") {
        return Ok(Destination::Home(Steps(below.into())));
    }
    if let Some(absolute) = steps.strip_prefix(':') {
        return absolute_path(absolute, typed).map(Destination::Path);
    }
    // As kcp: `root` is the workspace at the top, wherever one is.
    if steps == "root" || steps.starts_with("root:") {
        return absolute_path(steps, typed).map(Destination::Path);
    }
    walk(here, steps, typed).map(Destination::Path)
}

/// The end of steps that begin at home.
pub fn from_home(home: &WorkspacePath, steps: &Steps) -> Result<WorkspacePath, StepError> {
    walk(home, &steps.0, &format!("~:{}", steps.0))
}

/// What was typed before the shell replaced `~`.
fn unexpanded(typed: &str, home_directory: Option<&str>) -> String {
    let home = home_directory.filter(|home| home.len() > 1);
    match home.and_then(|home| typed.strip_prefix(home)) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
        _ => typed.to_owned(),
    }
}

fn top(here: &WorkspacePath) -> WorkspacePath {
    let mut at = here.clone();
    while let Some(above) = at.parent() {
        at = above;
    }
    at
}

fn absolute_path(steps: &str, typed: &str) -> Result<WorkspacePath, StepError> {
    let (first, rest) = steps.split_once(':').unwrap_or((steps, ""));
    // `system:x` is one name.
    if first == "system" {
        return parse(steps, typed);
    }
    walk(&parse(first, typed)?, rest, typed)
}

fn walk(from: &WorkspacePath, steps: &str, typed: &str) -> Result<WorkspacePath, StepError> {
    let mut at = from.clone();
    if steps.is_empty() {
        return Ok(at);
    }
    for step in steps.split(':') {
        at = match step {
            "." => at,
            ".." => at.parent().ok_or(StepError::AboveTop(at))?,
            name => at.join(name).map_err(|source| StepError::NoPath {
                typed: typed.to_owned(),
                source,
            })?,
        };
    }
    Ok(at)
}

fn parse(text: &str, typed: &str) -> Result<WorkspacePath, StepError> {
    WorkspacePath::parse(text).map_err(|source| StepError::NoPath {
        typed: typed.to_owned(),
        source,
    })
}

/// A server's address: that of all workspaces, and which one of them it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceUrl {
    /// What stands before `/clusters/`.
    pub base: String,
    /// The workspace. An address that names none means `root`.
    pub path: WorkspacePath,
}

impl WorkspaceUrl {
    /// Reads an address such as `https://host:6443/clusters/root:acme`.
    pub fn parse(server: &str) -> Result<Self, NameError> {
        const CLUSTERS: &str = "/clusters/";
        let server = server.trim_end_matches('/');
        let Some(at) = server.find(CLUSTERS) else {
            return Ok(Self {
                base: server.to_owned(),
                path: WorkspacePath::root(),
            });
        };
        let name = &server[at + CLUSTERS.len()..];
        let name = name.split('/').next().unwrap_or_default();
        Ok(Self {
            base: server[..at].to_owned(),
            path: WorkspacePath::parse(name)?,
        })
    }

    /// The address of another workspace of the same server.
    pub fn of(&self, path: &WorkspacePath) -> Self {
        Self {
            base: self.base.clone(),
            path: path.clone(),
        }
    }
}

impl fmt::Display for WorkspaceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.base, self.path.request_path())
    }
}

#[cfg(test)]
mod tests;
