//! What a project allows: where manifests come from, where objects go, and what kinds they are.
//!
//! A pattern that begins with `!` denies; a denial wins over everything, and whatever it does not deny it allows.

use fairway_text_glob::{matches, matches_between};
use serde::Deserialize;

use crate::key::ResourceKey;

/// The parts of an `AppProject` that decide.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProjectSpec {
    /// Repositories that manifests may come from.
    pub source_repos: Vec<String>,
    /// Places that objects may go to.
    pub destinations: Vec<Destination>,
    /// Kinds in namespaces that are allowed; all if there is no list.
    pub namespace_resource_whitelist: Option<Vec<GroupKind>>,
    /// Kinds in namespaces that are not.
    pub namespace_resource_blacklist: Vec<GroupKind>,
    /// Kinds in the cluster that are allowed; none if there is no list.
    pub cluster_resource_whitelist: Vec<GroupKind>,
    /// Kinds in the cluster that are not.
    pub cluster_resource_blacklist: Vec<GroupKind>,
    /// Namespaces beside the control plane's that applications may live in.
    pub source_namespaces: Vec<String>,
    /// Whether only clusters of the project may be destinations.
    pub permit_only_project_scoped_clusters: bool,
}

/// A place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Destination {
    /// The address of the cluster's API.
    pub server: String,
    /// The cluster's name.
    pub name: String,
    /// The namespace.
    pub namespace: String,
}

/// A kind, or a pattern of kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GroupKind {
    /// Group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// A name, where only one object is meant.
    pub name: String,
}

impl ProjectSpec {
    /// Whether manifests may come from a repository.
    pub fn permits_source(&self, repository: &str) -> bool {
        let repository = normalize_url(repository);
        let mut any = false;
        for pattern in &self.source_repos {
            let (pattern, denies) = negation(pattern);
            let matched = match pattern {
                "*" => true,
                pattern => matches_between(&normalize_url(pattern), &repository, &['/']),
            };
            match (denies, matched) {
                (true, true) => return false,
                (true, false) | (false, true) => any = true,
                (false, false) => {}
            }
        }
        any
    }

    /// Whether objects may go to a place. `own_clusters` are the project's own.
    pub fn permits_destination(&self, to: &Destination, own_clusters: &[Destination]) -> bool {
        if !self.matches_destination(to) {
            return false;
        }
        let same = |own: &str, wanted: &str| !wanted.is_empty() && own == wanted;
        let is_own = |own: &Destination| same(&own.server, &to.server) || same(&own.name, &to.name);
        !self.permit_only_project_scoped_clusters || own_clusters.iter().any(is_own)
    }

    fn matches_destination(&self, to: &Destination) -> bool {
        let mut any = false;
        for item in &self.destinations {
            let name = !to.name.is_empty() && allows(&item.name, &to.name);
            let server = !to.server.is_empty() && allows(&item.server, &to.server);
            let namespace = allows(&item.namespace, &to.namespace);
            let denied_name = !to.name.is_empty() && !name && is_denial(&item.name);
            let denied_server = !to.server.is_empty() && !server && is_denial(&item.server);
            let denied_there = (denied_name || denied_server) && namespace;
            let denied_namespace = !namespace && is_denial(&item.namespace) && (server || name);
            if denied_there || denied_namespace {
                return false;
            }
            any |= (server || name) && namespace;
        }
        any
    }

    /// Whether a kind is allowed.
    pub fn permits_kind(&self, group: &str, kind: &str, name: &str, namespaced: bool) -> bool {
        let is_in = |list: &[GroupKind]| {
            let fits = |item: &GroupKind| {
                let name = namespaced || item.name.is_empty() || path_match(&item.name, name);
                path_match(&item.kind, kind) && path_match(&item.group, group) && name
            };
            list.iter().any(fits)
        };
        let (allowed, denied) = match namespaced {
            true => (
                self.namespace_resource_whitelist.as_deref().is_none_or(is_in),
                is_in(&self.namespace_resource_blacklist),
            ),
            false => (
                is_in(&self.cluster_resource_whitelist),
                is_in(&self.cluster_resource_blacklist),
            ),
        };
        allowed && !denied
    }

    /// Why an object may not be synced; none if it may. The words are those that Argo CD's users know.
    pub fn refusal(
        &self,
        key: &ResourceKey,
        namespaced: bool,
        to: &Destination,
        own_clusters: &[Destination],
        project: &str,
    ) -> Option<String> {
        if !self.permits_kind(&key.group, &key.kind, &key.name, namespaced) {
            return Some(format!(
                "resource {}:{} is not permitted in project {project}",
                if key.group.is_empty() { "core" } else { &key.group },
                key.kind
            ));
        }
        let there = Destination {
            namespace: key.namespace.clone(),
            ..to.clone()
        };
        if namespaced && !self.permits_destination(&there, own_clusters) {
            return Some(format!(
                "namespace {} is not permitted in project '{project}'",
                key.namespace
            ));
        }
        None
    }

    /// Whether an application of the project may live in a namespace that is not the control plane's.
    pub fn permits_application_in(&self, namespace: &str) -> bool {
        self.source_namespaces.iter().any(|pattern| {
            match pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
                // Between slashes it is a regular expression.
                Some(expression) => regex::RegexBuilder::new(expression)
                    .size_limit(1 << 18)
                    .build()
                    .is_ok_and(|expression| expression.is_match(namespace)),
                None => matches(pattern, namespace),
            }
        })
    }
}

fn is_denial(pattern: &str) -> bool {
    pattern.starts_with('!')
}

fn negation(pattern: &str) -> (&str, bool) {
    match pattern.strip_prefix('!') {
        Some(rest) => (rest, true),
        None => (pattern, false),
    }
}

/// Whether a pattern lets a text through: one that denies lets through what it does not match.
fn allows(pattern: &str, text: &str) -> bool {
    let (pattern, denies) = negation(pattern);
    matches(pattern, text) != denies
}

/// Go's `filepath.Match`, in which stars do not cross slashes; a star alone fits anything, as no kind or group has one.
fn path_match(pattern: &str, text: &str) -> bool {
    matches_between(pattern, text, &['/'])
}

/// One spelling for repositories, as Argo CD compares them: lower case, no `.git`, no `ssh://`, and a slash where addresses of
/// the form `user@host:path` have a colon.
pub fn normalize_url(url: &str) -> String {
    let mut url = url.trim().to_lowercase();
    let scp_like = url
        .split_once('@')
        .filter(|(user, rest)| !user.contains(['/', ':']) && !rest.is_empty() && !rest.contains('@'))
        .map(|_| url.replacen(':', "/", 1));
    if let Some(rewritten) = scp_like {
        url = rewritten;
    }
    let url = url.strip_suffix(".git").unwrap_or(&url);
    url.strip_prefix("ssh://").unwrap_or(url).to_owned()
}

/// Whether a repository is another or within it, both spelled by [`normalize_url`]. `https://host/team` is not a beginning of
/// `https://host/team-other`, and must not hand its password to it.
pub fn is_below(url: &str, beginning: &str) -> bool {
    !beginning.is_empty()
        && url
            .strip_prefix(beginning)
            .is_some_and(|rest| rest.is_empty() || beginning.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
