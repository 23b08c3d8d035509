//! Brings the charts that a chart of a repository needs and does not have, as Argo CD does with `helm dependency build` before
//! it renders again. They are laid over the tree, which stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_controller::WorkspaceId;
use fairway_gitops_chartrepo::dependency::{self, Lock, Origin, Wanted};
use fairway_gitops_chartrepo::version;
use fairway_gitops_helm::{Chart, Metadata, directory_files};
use fairway_gitops_sync::project::ProjectSpec;
use fairway_gitops_tree::{Inputs, Reader, Tree, path};

use super::overlay;
use crate::sources::{DependencyRequest, Repository, SharedSources, SourceError};

/// For whom they are fetched.
pub(super) struct Buyer<'a> {
    pub(super) sources: &'a SharedSources,
    pub(super) workspace: &'a WorkspaceId,
    pub(super) project: &'a str,
    pub(super) permitted: &'a ProjectSpec,
    pub(super) passes_credentials: bool,
}

/// A tree with everything in it, and what was read to know that.
pub(super) struct Built {
    pub(super) tree: Tree,
    pub(super) inputs: Inputs,
}

/// What was laid over a tree.
type Files = BTreeMap<String, Arc<[u8]>>;

impl Buyer<'_> {
    /// The tree with the charts that the one in a directory needs.
    pub(super) async fn build(&self, tree: &Tree, directory: &str) -> Result<Built, SourceError> {
        let (reader, at) = (tree.reader(), directory.to_owned());
        let needs = blocking(move || look(&reader, &at)).await?;
        let wants_names = needs
            .metadata
            .dependencies
            .iter()
            .any(|wanted| wanted.repository.starts_with('@') || wanted.repository.starts_with("alias:"));
        let names = match wants_names {
            true => self.sources.names(self.workspace, self.project).await?,
            false => BTreeMap::new(),
        };
        let wanted = dependency::plan(&needs.metadata, needs.lock.as_ref(), &names);
        let wanted = wanted.map_err(|why| failed(&why.0))?;
        let (mut files, mut inputs) = (Files::new(), needs.inputs);
        let charts = within(directory, "charts");
        for wanted in wanted {
            if needs.directories.contains(&wanted.name) {
                continue;
            }
            let repository = match &wanted.origin {
                Origin::Here => continue,
                Origin::Directory(from) => {
                    let (reader, at, from) = (tree.reader(), directory.to_owned(), from.clone());
                    let local = wanted.clone();
                    let (own, read) = blocking(move || copied(&reader, &at, &from, &local)).await?;
                    files.extend(own);
                    inputs.extend(&read);
                    continue;
                }
                Origin::Named(name) => names.get(name).cloned().ok_or_else(|| {
                    failed(&format!(
                        "no repository definition for @{name}, of which the chart {} should come: no Secret with the label \
                         argocd.argoproj.io/secret-type: repository has name: {name}",
                        wanted.name
                    ))
                })?,
                Origin::Http(url) | Origin::Oci(url) => url.clone(),
            };
            let (version, bytes) = self.fetched(&wanted, repository).await?;
            files.insert(format!("{charts}/{}-{version}.tgz", wanted.name), bytes);
        }
        // What Helm fetches replaces what was there as an archive, but not what is unpacked.
        let is_local = |name: &str| {
            let mut local = needs.metadata.dependencies.iter();
            local.any(|wanted| wanted.repository.is_empty() && name.starts_with(&format!("{}-", wanted.name)))
        };
        let hidden: BTreeSet<String> = needs
            .archives
            .iter()
            .filter(|name| !is_local(name))
            .map(|name| format!("{charts}/{name}"))
            .collect();
        Ok(Built {
            tree: overlay::with_files(tree, files, hidden),
            inputs,
        })
    }

    async fn fetched(&self, wanted: &Wanted, url: String) -> Result<(String, Arc<[u8]>), SourceError> {
        let fetched = self
            .chart(&url, &wanted.name, &wanted.version, wanted.is_locked)
            .await;
        fetched.map_err(|why| {
            let text = |why: String| format!("{BUILDING}: the chart {}: {why}", wanted.name);
            match why {
                SourceError::Missing(why) => SourceError::Missing(text(why)),
                SourceError::Unreachable(why) => SourceError::Unreachable(text(why)),
            }
        })
    }

    /// A version of a chart, as an archive. Credentials are used where the project lets them be.
    pub(super) async fn chart(
        &self,
        url: &str,
        name: &str,
        version: &str,
        is_locked: bool,
    ) -> Result<(String, Arc<[u8]>), SourceError> {
        // Registries are named with and without their scheme.
        let plain = url.strip_prefix("oci://").unwrap_or(url);
        let is_permitted = self.permitted.permits_source(url) || self.permitted.permits_source(plain);
        let request = DependencyRequest {
            repository: Repository {
                workspace: self.workspace.clone(),
                project: self.project.to_owned(),
                url: url.to_owned(),
                chart: name.to_owned(),
            },
            version: version.to_owned(),
            is_locked,
            uses_credentials: is_permitted,
            passes_credentials: self.passes_credentials,
        };
        match self.sources.dependency(&request).await {
            Ok(archive) => Ok((archive.version, archive.bytes)),
            Err(why) => {
                let hint = match is_permitted {
                    true => String::new(),
                    false => format!(
                        "; helm repos {url} are not permitted in project '{}', so its credentials were not used",
                        self.project
                    ),
                };
                let text = |why: String| format!("{why}{hint}");
                Err(match why {
                    SourceError::Missing(why) => SourceError::Missing(text(why)),
                    SourceError::Unreachable(why) => SourceError::Unreachable(text(why)),
                })
            }
        }
    }
}

const BUILDING: &str = "error building helm chart dependencies";

fn failed(why: &str) -> SourceError {
    SourceError::Missing(format!("{BUILDING}: {why}"))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, SourceError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(|why| failed(&why)),
        Err(_) => Err(SourceError::Unreachable(format!("{BUILDING}: it was broken off"))),
    }
}

/// What a chart needs, and what of it is there.
struct Needs {
    metadata: Metadata,
    lock: Option<Lock>,
    /// Charts that are there unpacked.
    directories: BTreeSet<String>,
    /// Charts that are there as archives.
    archives: BTreeSet<String>,
    inputs: Inputs,
}

fn within(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

fn look(reader: &Reader, directory: &str) -> Result<Needs, String> {
    let chart = Chart::load(reader, directory).map_err(|error| error.to_string())?;
    let names = match chart.metadata.api_version.as_str() {
        "v1" => &["requirements.lock", "Chart.lock"][..],
        _ => &["Chart.lock"][..],
    };
    let mut lock = None;
    for name in names {
        let path = within(directory, name);
        if lock.is_none() && reader.kind(&path).map_err(|error| error.to_string())?.is_some() {
            let bytes = reader.read(&path).map_err(|error| error.to_string())?;
            lock = Some(Lock::parse(&bytes).map_err(|why| why.0)?);
        }
    }
    let charts = within(directory, "charts");
    let (mut directories, mut archives) = (BTreeSet::new(), BTreeSet::new());
    if reader.kind(&charts).map_err(|error| error.to_string())?.is_some() {
        for name in reader.list(&charts).map_err(|error| error.to_string())? {
            match reader.kind(&format!("{charts}/{name}")) {
                Ok(Some(fairway_gitops_tree::Kind::Directory)) => directories.insert(name),
                Ok(Some(_)) if name.ends_with(".tgz") => archives.insert(name),
                _ => false,
            };
        }
    }
    Ok(Needs {
        metadata: chart.metadata,
        lock,
        directories,
        archives,
        inputs: reader.inputs(),
    })
}

/// The files of a chart in another directory of the same tree.
fn copied(reader: &Reader, directory: &str, from: &str, wanted: &Wanted) -> Result<(Files, Inputs), String> {
    if from.starts_with('/') {
        return Err(format!(
            "the chart {} should come from file://{from}: only directories of the same repository are read, by a path \
             from that of the chart",
            wanted.name
        ));
    }
    let at = path::join(directory, from).map_err(|error| error.to_string())?;
    let found = Chart::load(reader, &at).map_err(|error| format!("file://{from}: {error}"))?;
    let version = &found.metadata.version;
    if !version::meets(&wanted.version, version).map_err(|why| why.0)? {
        return Err(format!(
            "can't get a valid version for dependency {}: file://{from} has {version}, which does not meet {:?}",
            wanted.name, wanted.version
        ));
    }
    let mut files = Files::new();
    for file in directory_files(reader, &at).map_err(|error| error.to_string())? {
        let content = file.data.read().map_err(|error| error.to_string())?;
        let to = within(directory, &format!("charts/{}/{}", wanted.name, file.name));
        files.insert(to, content);
    }
    Ok((files, reader.inputs()))
}
