//! What `helm dependency build` would bring into `charts/`: what `Chart.lock` says if it is there and right, and otherwise what
//! meets the constraints of `Chart.yaml`.

use std::collections::BTreeMap;

use fairway_gitops_helm::{Dependency, Metadata};
use fairway_text_gotext::json::{Html, push_string, to_string};
use fairway_text_yaml::{Limits, from_slice};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::Unusable;

/// More than that has no chart.
const MAX_DEPENDENCIES: usize = 200;

/// Where a chart that another needs comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It should be in `charts/` already.
    Here,
    /// A directory, from that of the chart.
    Directory(String),
    /// The repository whose Secret has this name.
    Named(String),
    /// A repository of charts.
    Http(String),
    /// A registry.
    Oci(String),
}

/// A chart that another needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// Which version, or what it must meet.
    pub version: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Whether the version is the only one that will do.
    pub is_locked: bool,
}

/// A lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    digest: String,
    /// Name, version and repository of each.
    dependencies: Vec<[String; 3]>,
}

impl Lock {
    /// Reads `Chart.lock` or `requirements.lock`.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unusable> {
        let document = from_slice(bytes, Limits::default())
            .map_err(|error| Unusable(format!("the lock file: {error}")))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let dependencies = document["dependencies"].as_array().into_iter().flatten();
        Ok(Self {
            digest: text(&document["digest"]),
            dependencies: dependencies
                .map(|it| ["name", "version", "repository"].map(|field| text(&it[field])))
                .collect(),
        })
    }
}

/// What has to be brought. `names` are the addresses of repositories that have a name, by which the author may have
/// called them.
pub fn plan(
    chart: &Metadata,
    lock: Option<&Lock>,
    names: &BTreeMap<String, String>,
) -> Result<Vec<Wanted>, Unusable> {
    if chart.dependencies.len() > MAX_DEPENDENCIES {
        return Err(Unusable(format!(
            "the chart needs more than {MAX_DEPENDENCIES} others"
        )));
    }
    let Some(lock) = lock else {
        let wanted = chart.dependencies.iter();
        return wanted
            .map(|it| one(&it.name, &it.version, &it.repository, false))
            .collect();
    };
    if lock.dependencies.len() > MAX_DEPENDENCIES {
        return Err(Unusable(format!(
            "the lock file names more than {MAX_DEPENDENCIES} charts"
        )));
    }
    if !fits(chart, lock, names) {
        let (lock, file) = match chart.api_version.as_str() {
            "v1" => ("requirements.lock", "requirements.yaml"),
            _ => ("Chart.lock", "Chart.yaml"),
        };
        return Err(Unusable(format!(
            "the lock file ({lock}) is out of sync with the dependencies file ({file}). Please update the dependencies"
        )));
    }
    let wanted = lock.dependencies.iter();
    wanted
        .map(|[name, version, repository]| one(name, version, repository, true))
        .collect()
}

fn one(name: &str, version: &str, repository: &str, is_locked: bool) -> Result<Wanted, Unusable> {
    let is_name =
        |name: &str| !name.is_empty() && !name.contains(['/', '\\', '\0']) && !name.starts_with('.');
    if !is_name(name) {
        return Err(Unusable(format!("{name:?} is no name of a chart")));
    }
    let origin = match repository.split_once("://") {
        None if repository.is_empty() => Origin::Here,
        None => {
            let alias = repository
                .strip_prefix('@')
                .or_else(|| repository.strip_prefix("alias:"));
            match alias {
                Some(alias) => Origin::Named(alias.to_owned()),
                None => {
                    return Err(Unusable(format!(
                        "no repository definition for {repository}, of which the chart {name} should come: repositories are \
                         addresses (https://..., oci://..., file://...), or @NAME with the name of a repository's Secret"
                    )));
                }
            }
        }
        Some(("file", path)) => Origin::Directory(path.to_owned()),
        Some(("oci", _)) => Origin::Oci(repository.to_owned()),
        Some(("http" | "https", _)) => Origin::Http(repository.to_owned()),
        Some((scheme, _)) => {
            return Err(Unusable(format!(
                "the chart {name} should come from {repository}: nothing is fetched by {scheme}"
            )));
        }
    };
    Ok(Wanted {
        name: name.to_owned(),
        version: version.to_owned(),
        origin,
        is_locked,
    })
}

/// Whether a lock file was made of what the chart says now.
fn fits(chart: &Metadata, lock: &Lock, names: &BTreeMap<String, String>) -> bool {
    let locked = lock
        .dependencies
        .iter()
        .map(|[name, version, repository]| Dependency {
            name: name.clone(),
            version: version.clone(),
            repository: repository.clone(),
            ..Dependency::default()
        })
        .collect::<Vec<_>>();
    let mut resolved = chart.dependencies.clone();
    for dependency in &mut resolved {
        let written = &dependency.repository;
        let alias = written
            .strip_prefix('@')
            .or_else(|| written.strip_prefix("alias:"));
        if let Some(address) = alias.and_then(|alias| names.get(alias)) {
            dependency.repository.clone_from(address);
        }
    }
    let now = digest(&format!("[{},{}]", list(&resolved), list(&locked)));
    if now == lock.digest {
        return true;
    }
    // Helm 2 took the digest of the dependencies alone.
    let old = format!("{{\"dependencies\":{}}}", list(&chart.dependencies));
    chart.api_version == "v1" && digest(&old) == lock.digest
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// Dependencies as `json.Marshal` writes Helm's type: fields in their order, and most of them only if they say something.
fn list(dependencies: &[Dependency]) -> String {
    let mut out = String::from("[");
    for (place, dependency) in dependencies.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        out.push_str("{\"name\":");
        push_string(&mut out, &dependency.name, Html::Escaped);
        let mut text = |name: &str, value: &str, always: bool| {
            if always || !value.is_empty() {
                out.push_str(&format!(",\"{name}\":"));
                push_string(&mut out, value, Html::Escaped);
            }
        };
        text("version", &dependency.version, false);
        text("repository", &dependency.repository, true);
        text("condition", &dependency.condition, false);
        if !dependency.tags.is_empty() {
            let tags = dependency
                .tags
                .iter()
                .map(|tag| Value::from(tag.as_str()))
                .collect();
            out.push_str(&format!(",\"tags\":{}", to_string(&Value::Array(tags))));
        }
        if dependency.enabled {
            out.push_str(",\"enabled\":true");
        }
        if !dependency.import_values.is_empty() {
            let values = Value::Array(dependency.import_values.clone());
            out.push_str(&format!(",\"import-values\":{}", to_string(&values)));
        }
        if !dependency.alias.is_empty() {
            out.push_str(",\"alias\":");
            push_string(&mut out, &dependency.alias, Html::Escaped);
        }
        out.push('}');
    }
    out.push(']');
    out
}

#[cfg(test)]
mod tests;
