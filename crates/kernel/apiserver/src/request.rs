//! What a URL asks for.
//!
//! Upstream calls this the request info: workspace, verb, group, version, namespace, resource, name and subresource, read
//! off method and path alone, before anything else is known. Authorization, audit and dispatch all work on it.

use fairway_kernel_tenancy::lifecycle::Stage;
use http::Method;

use crate::key::ROOT_CLUSTER;
use crate::query::Query;
use crate::workspaces::EVERY_CLUSTER;

/// A request, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    /// The workspace, as the URL names it.
    pub workspace: String,
    /// How the request comes in.
    pub door: Door,
    /// The id of its logical cluster; `*` for all, empty if there is none of that name.
    pub cluster: String,
    /// The path below the workspace.
    pub path: String,
    /// What is to be done: `get`, `list`, `create`, ...; for other paths the lower-case method.
    pub verb: &'static str,
    /// The resource, if the path names one.
    pub resource: Option<ResourcePath>,
}

/// How a request comes into a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Door {
    /// As the workspace's own users do.
    #[default]
    Own,
    /// As the provider of an API that the workspace binds.
    Export {
        /// The id of the export's workspace; empty if there is none.
        cluster: String,
        /// The export.
        name: String,
    },
    /// As an initializer or terminator that the workspace waits for.
    Lifecycle {
        /// Which of the two.
        stage: Stage,
        /// The id of the workspace of its type; empty if there is none.
        cluster: String,
        /// Its type.
        type_name: String,
    },
}

impl RequestInfo {
    /// The workspace in which the user must be known: his own, where he comes from another.
    pub fn home(&self) -> &str {
        match &self.door {
            Door::Own => &self.cluster,
            Door::Export { cluster, .. } | Door::Lifecycle { cluster, .. } => cluster,
        }
    }
}

/// The parts of a resource path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace; `None` for cluster-wide requests.
    pub namespace: Option<String>,
    /// Plural resource.
    pub resource: String,
    /// Name of the object; empty for collections.
    pub name: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
    /// What follows the subresource (proxy paths).
    pub rest: String,
}

/// Why a path cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Not valid percent-encoded UTF-8.
    #[error("the path of the request is not valid percent-encoded UTF-8")]
    Encoding,
}

impl RequestInfo {
    /// Reads method, path and query. `resolve` knows the ids of workspaces.
    pub fn read(
        method: &Method,
        path: &str,
        query: &Query,
        resolve: impl Fn(&str) -> Option<Box<str>>,
    ) -> Result<Self, PathError> {
        let resolved = |named: &str| match named {
            ROOT_CLUSTER | EVERY_CLUSTER => named.to_owned(),
            named => resolve(named).map(String::from).unwrap_or_default(),
        };
        let (door, path) = split_door(path)?;
        let door = match door {
            Some(NamedDoor::Export(cluster, name)) => Door::Export {
                cluster: resolved(&cluster),
                name,
            },
            Some(NamedDoor::Lifecycle(stage, worker)) => {
                let (cluster, type_name) = worker.rsplit_once(':').unwrap_or(("", &worker));
                Door::Lifecycle {
                    stage,
                    cluster: resolved(cluster),
                    type_name: type_name.to_owned(),
                }
            }
            None => Door::Own,
        };
        let (workspace, path) = match split_workspace(path)? {
            // A provider says which consumer it means.
            (_, _) if door != Door::Own && !path.starts_with("/clusters/") => (String::new(), path),
            found => found,
        };
        let cluster = resolved(&workspace);
        let mut segments = Vec::new();
        for segment in path.split('/').filter(|s| !s.is_empty()) {
            segments.push(percent_decode(segment).ok_or(PathError::Encoding)?);
        }
        let mut info = Self {
            workspace,
            door,
            cluster,
            path: path.to_owned(),
            verb: plain_verb(method),
            resource: None,
        };
        let Some((resource, watch_prefix)) = resource_path(&segments) else {
            return Ok(info);
        };
        info.verb = if watch_prefix {
            "watch"
        } else {
            resource_verb(method, &resource, query)
        };
        info.resource = Some(resource);
        Ok(info)
    }

    /// Whether the request may change something.
    pub fn is_mutating(&self) -> bool {
        matches!(
            self.verb,
            "create" | "update" | "patch" | "delete" | "deletecollection" | "post" | "put"
        )
    }
}

/// A door as the URL names it.
enum NamedDoor {
    /// The workspace of an export, and its name.
    Export(String, String),
    /// The name of an initializer or terminator.
    Lifecycle(Stage, String),
}

/// The door that `/services/apiexport/<workspace>/<name>` or `/services/initializingworkspaces/<initializer>` names, and the
/// path below.
fn split_door(path: &str) -> Result<(Option<NamedDoor>, &str), PathError> {
    let decoded = |text: &str| percent_decode(text).ok_or(PathError::Encoding);
    let Some((service, rest)) = path
        .strip_prefix("/services/")
        .and_then(|rest| rest.split_once('/'))
    else {
        return Ok((None, path));
    };
    if let Some(stage) = Stage::ALL.into_iter().find(|stage| stage.service() == service) {
        let (worker, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        return Ok((Some(NamedDoor::Lifecycle(stage, decoded(worker)?)), below));
    }
    if service != "apiexport" {
        return Ok((None, path));
    }
    let (cluster, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let (name, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    Ok((Some(NamedDoor::Export(decoded(cluster)?, decoded(name)?)), below))
}

fn split_workspace(path: &str) -> Result<(String, &str), PathError> {
    let Some(rest) = path.strip_prefix("/clusters/") else {
        return Ok((ROOT_CLUSTER.to_owned(), path));
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let (workspace, below) = rest.split_at(end);
    let workspace = percent_decode(workspace).ok_or(PathError::Encoding)?;
    Ok((workspace, if below.is_empty() { "/" } else { below }))
}

/// Subresources that a namespace has itself; everything else below it is a namespaced resource.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

fn resource_path(segments: &[String]) -> Option<(ResourcePath, bool)> {
    let (group, version, rest) = match segments.first()?.as_str() {
        "api" if segments.len() > 2 => ("", &segments[1], &segments[2..]),
        "apis" if segments.len() > 3 => (segments[1].as_str(), &segments[2], &segments[3..]),
        _ => return None,
    };
    let watch_prefix = rest.first().is_some_and(|s| s == "watch") && rest.len() > 1;
    let rest = if watch_prefix { &rest[1..] } else { rest };
    let mut found = ResourcePath {
        group: group.to_owned(),
        version: version.clone(),
        ..ResourcePath::default()
    };
    let parts: &[String] = match rest {
        [namespaces, namespace, below @ ..]
            if namespaces == "namespaces"
                && below
                    .first()
                    .is_some_and(|b| below.len() > 1 || !NAMESPACE_SUBRESOURCES.contains(&b.as_str())) =>
        {
            found.namespace = Some(namespace.clone());
            below
        }
        [namespaces, namespace, ..] if namespaces == "namespaces" => {
            // A namespace lives in itself, as far as authorization is concerned.
            found.namespace = Some(namespace.clone());
            rest
        }
        _ => rest,
    };
    found.resource = parts.first()?.clone();
    found.name = parts.get(1).cloned().unwrap_or_default();
    found.subresource = parts.get(2).cloned().unwrap_or_default();
    found.rest = parts.get(3..).map(|tail| tail.join("/")).unwrap_or_default();
    Some((found, watch_prefix))
}

fn resource_verb(method: &Method, path: &ResourcePath, query: &Query) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if path.name.is_empty() => "deletecollection",
        Method::DELETE => "delete",
        Method::GET | Method::HEAD if path.name.is_empty() => {
            if query.flag("watch") {
                "watch"
            } else {
                "list"
            }
        }
        Method::GET | Method::HEAD => {
            if query.flag("watch") && path.subresource.is_empty() {
                "watch"
            } else {
                "get"
            }
        }
        _ => plain_verb(method),
    }
}

fn plain_verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        _ => "unknown",
    }
}

fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            out.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &Method, url: &str, expected: &str) {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let got = RequestInfo::read(method, path, &Query::parse(query).unwrap(), |_| None).unwrap();
        let text = match &got.resource {
            None => format!("{} {}", got.verb, got.path),
            Some(r) => format!(
                "{} {}/{} ns={} {} {} {}",
                got.verb,
                r.group,
                r.version,
                r.namespace.as_deref().unwrap_or("-"),
                r.resource,
                r.name,
                r.subresource
            )
            .trim_end()
            .to_owned(),
        };
        assert_eq!(text, expected, "{method} {url}");
    }

    #[test]
    fn urls_are_understood_as_upstream_does() {
        check(&Method::GET, "/api/v1/pods", "list /v1 ns=- pods");
        check(&Method::GET, "/api/v1/pods?watch=true", "watch /v1 ns=- pods");
        check(
            &Method::GET,
            "/api/v1/watch/namespaces/a/pods",
            "watch /v1 ns=a pods",
        );
        check(
            &Method::GET,
            "/api/v1/namespaces/a/pods/b/status",
            "get /v1 ns=a pods b status",
        );
        check(&Method::GET, "/api/v1/namespaces/a", "get /v1 ns=a namespaces a");
        check(
            &Method::PUT,
            "/api/v1/namespaces/a/finalize",
            "update /v1 ns=a namespaces a finalize",
        );
        check(&Method::GET, "/api/v1/namespaces", "list /v1 ns=- namespaces");
        check(
            &Method::DELETE,
            "/apis/apps/v1/namespaces/a/deployments",
            "deletecollection apps/v1 ns=a deployments",
        );
        check(
            &Method::PATCH,
            "/apis/apps/v1/namespaces/a/deployments/d",
            "patch apps/v1 ns=a deployments d",
        );
        check(
            &Method::GET,
            "/clusters/root/apis/apps/v1/deployments",
            "list apps/v1 ns=- deployments",
        );
        check(&Method::GET, "/apis/apps/v1", "get /apis/apps/v1");
        check(
            &Method::GET,
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aadmin",
            "get rbac.authorization.k8s.io/v1 ns=- clusterroles system:admin",
        );
    }

    #[test]
    fn doors_of_services() {
        let none = Query::parse("").unwrap();
        let read = |path: &str| {
            let known = |named: &str| (named == "root:team").then(|| "2x8f0a9b1c3d4e5f".into());
            RequestInfo::read(&Method::GET, path, &none, known).unwrap()
        };
        let worker = |stage: Stage, cluster: &str| Door::Lifecycle {
            stage,
            cluster: cluster.to_owned(),
            type_name: "slow".to_owned(),
        };
        let export = |cluster: &str| Door::Export {
            cluster: cluster.to_owned(),
            name: "e".to_owned(),
        };
        let (first, last) = (Stage::Initializing, Stage::Terminating);
        for (path, door, cluster) in [
            ("/services/apiexport/root/e/clusters/*/apis", export("root"), "*"),
            (
                "/services/apiexport/root:team/e/clusters/root/apis",
                export("2x8f0a9b1c3d4e5f"),
                "root",
            ),
            ("/services/apiexport/root/e/apis", export("root"), ""),
            (
                "/services/initializingworkspaces/root:slow/clusters/*/apis",
                worker(first, "root"),
                "*",
            ),
            (
                "/services/initializingworkspaces/root%3Aslow/clusters/root/apis",
                worker(first, "root"),
                "root",
            ),
            (
                "/services/terminatingworkspaces/root:team:slow/clusters/*/apis",
                worker(last, "2x8f0a9b1c3d4e5f"),
                "*",
            ),
            (
                "/services/terminatingworkspaces/slow/clusters/*/apis",
                worker(last, ""),
                "*",
            ),
            (
                "/services/initializingworkspaces/root:slow/apis",
                worker(first, "root"),
                "",
            ),
            ("/services/something/root:slow/apis", Door::Own, "root"),
            ("/services", Door::Own, "root"),
        ] {
            let info = read(path);
            assert_eq!((&info.door, info.cluster.as_str()), (&door, cluster), "{path}");
        }
    }

    #[test]
    fn unknown_workspaces_and_bad_encoding_are_told() {
        let none = Query::parse("").unwrap();
        let read = |path: &str| {
            let known = |named: &str| (named == "root:team").then(|| "2x8f0a9b1c3d4e5f".into());
            RequestInfo::read(&Method::GET, path, &none, known)
        };
        for (path, workspace, cluster) in [
            ("/api/v1/pods", "root", "root"),
            ("/clusters/root/api/v1/pods", "root", "root"),
            ("/clusters/root:team/api/v1/pods", "root:team", "2x8f0a9b1c3d4e5f"),
            (
                "/clusters/root%3Ateam/api/v1/pods",
                "root:team",
                "2x8f0a9b1c3d4e5f",
            ),
            ("/clusters/other/api/v1/pods", "other", ""),
            ("/clusters//api/v1/pods", "", ""),
            ("/clusters/*/api/v1/pods", "*", "*"),
        ] {
            let info = read(path).unwrap();
            assert_eq!(
                (info.workspace.as_str(), info.cluster.as_str()),
                (workspace, cluster),
                "{path}"
            );
            assert_eq!(info.path, "/api/v1/pods");
        }
        assert_eq!(read("/api/v1/namespaces/%ff/pods"), Err(PathError::Encoding));
        assert_eq!(read("/clusters/%ff/api"), Err(PathError::Encoding));
    }
}
