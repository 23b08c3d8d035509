//! `fairway appset generate`: the Applications that an ApplicationSet in a file would stand for, without creating anything.
//!
//! Clusters are those of the workspace; repositories are fetched by `git` on this machine, with its credentials.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use fairway_api::argoproj::CONTROL_PLANES;
use fairway_gitops_appset::application::applications;
use fairway_gitops_appset::generator::{PullRequest, directories_of, means_file};
use fairway_gitops_appset::{Cluster, Params, Sources};
use fairway_gitops_kustomize::{Fetcher as _, RepositorySpec};
use fairway_gitops_tree::Tree;
use fairway_gitops_view::application::table;
use fairway_gitops_view::field::text;
use serde_json::{Value, json};

use super::super::cluster::secrets;
use super::super::gitops::{Session, print_value};
use super::super::render::remote::Remote;
use super::{read, read_file};
use crate::cli::appset::{AppSetGenerate, TextFormat};

pub(super) async fn run(options: &AppSetGenerate) -> anyhow::Result<ExitCode> {
    let sets = read(&read_file(&options.file)?)
        .with_context(|| format!("{} cannot be used", options.file.display()))?;
    let session = Session::open(&options.place).await?;
    let all = applications_of(&session, &sets).await?;
    match options.output {
        TextFormat::Wide => print!("{}", table(&all, true)),
        TextFormat::Json | TextFormat::Yaml => print_value(&json!(all), options.output == TextFormat::Yaml),
    }
    Ok(ExitCode::SUCCESS)
}

/// The Applications that sets stand for.
pub(super) async fn applications_of(session: &Session, sets: &[Value]) -> anyhow::Result<Vec<Value>> {
    let clusters = clusters(session).await?;
    let cache =
        Remote::default_cache().context("neither XDG_CACHE_HOME nor HOME says where to keep repositories")?;
    let world = World {
        clusters,
        remote: Remote::new(cache),
    };
    let mut all = Vec::new();
    for set in sets {
        let mut set = set.clone();
        if text(&set, "/metadata/namespace").is_empty() {
            set["metadata"]["namespace"] = json!(CONTROL_PLANES[0]);
        }
        let name = text(&set, "/metadata/name");
        let made = applications(&set, &world)
            .map_err(|error| anyhow!("unable to generate Applications of ApplicationSet {name}: {error}"))?;
        all.extend(made);
    }
    Ok(all)
}

/// The clusters of a workspace as generators see them.
async fn clusters(session: &Session) -> anyhow::Result<Vec<Cluster>> {
    let map = |value: &Value| -> BTreeMap<String, String> {
        let all = value.as_object().into_iter().flatten();
        all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect()
    };
    let mut all = Vec::new();
    for (known, secret) in secrets(session).await? {
        let metadata = secret.as_ref().map_or(&Value::Null, |it| &it["metadata"]);
        all.push(Cluster {
            name: known.name,
            server: known.server,
            project: known.project,
            labels: map(&metadata["labels"]),
            annotations: map(&metadata["annotations"]),
        });
    }
    Ok(all)
}

struct World {
    clusters: Vec<Cluster>,
    remote: Remote,
}

impl World {
    fn tree(&self, repository: &str, revision: &str) -> Result<Tree, String> {
        let spec = RepositorySpec {
            raw: repository.to_owned(),
            clone_url: repository.to_owned(),
            path: String::new(),
            // What git calls the default branch when it is asked for one by name.
            reference: if revision == "HEAD" {
                String::new()
            } else {
                revision.to_owned()
            },
            submodules: false,
            timeout: String::new(),
        };
        self.remote.repository(&spec)
    }
}

impl Sources for World {
    fn clusters(&self) -> Result<Vec<Cluster>, String> {
        Ok(self.clusters.clone())
    }

    fn directories(&self, repository: &str, revision: &str) -> Result<Vec<String>, String> {
        let tree = self.tree(repository, revision)?;
        let files = tree.reader().walk("").map_err(|error| error.to_string())?;
        Ok(directories_of(files.iter().map(String::as_str)))
    }

    fn files(
        &self,
        repository: &str,
        revision: &str,
        pattern: &str,
    ) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let tree = self.tree(repository, revision)?;
        let reader = tree.reader();
        let mut found = BTreeMap::new();
        for path in reader.walk("").map_err(|error| error.to_string())? {
            if means_file(pattern, &path) {
                let content = reader.read(&path).map_err(|error| error.to_string())?;
                found.insert(path, content.to_vec());
            }
        }
        Ok(found)
    }

    fn pull_requests(&self, _: &Value) -> Result<Vec<PullRequest>, String> {
        Err("pull requests are asked of services that this command has no credentials for".to_owned())
    }

    fn others(&self, kind: &str, _: &Value) -> Result<Vec<Params>, String> {
        Err(format!(
            "a {kind} generator asks services that this command has no credentials for"
        ))
    }
}
