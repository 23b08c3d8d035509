//! What generators see: clusters, repositories, pull requests.
//!
//! Generating is a plain function that asks questions, so it runs on a thread of its own, which may wait for answers. Within
//! one run a revision stands for the same commit each time it is asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fairway_controller::{ObjectKey, Requests};
use fairway_gitops_appset::generator::{PullRequest, means_file};
use fairway_gitops_appset::{Cluster, Params, Sources};
use fairway_gitops_tree::Reader;
use serde_json::Value;
use tokio::runtime::Handle;

use super::listings::{Listings, Look};
use super::pulls::{Asked, Gitea, PullsError, SharedPulls};
use super::registry::Registry;
use crate::destination::{IN_CLUSTER, IN_CLUSTER_NAME, secret};
use crate::sources::Repository;

/// The most that files of parameters may hold together.
const MAX_BYTES: usize = 64 << 20;

/// What one look at a set sees.
pub(crate) struct World {
    pub(crate) set: ObjectKey,
    pub(crate) requests: Requests,
    pub(crate) listings: Listings,
    pub(crate) pulls: SharedPulls,
    pub(crate) registry: Registry,
    pub(crate) clusters: Vec<Cluster>,
    /// Whose credentials count; empty if the template leaves it to parameters.
    pub(crate) project: String,
    /// How old copies of repositories may be.
    pub(crate) oldest: Duration,
    pub(crate) handle: Handle,
    pub(crate) seen: Mutex<HashMap<(String, String), Seen>>,
}

/// A repository at a revision, or why there is none.
type Seen = Result<Checkout, String>;

/// The files of a commit, and what was looked at.
#[derive(Clone)]
pub(crate) struct Checkout {
    reader: Reader,
    look: Look,
}

/// The clusters of cluster Secrets, and the one that everything is in.
pub(crate) fn clusters(secrets: &[Value]) -> Vec<Cluster> {
    let map = |value: &Value| -> BTreeMap<String, String> {
        let all = value.as_object().into_iter().flatten();
        all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect()
    };
    let mut all: Vec<Cluster> = secrets
        .iter()
        .map(|found| {
            let text = |field: &str| secret::text(found, field).unwrap_or_default();
            let mut annotations = map(&found["metadata"]["annotations"]);
            annotations.remove(fairway_controller::key::CLUSTER_ANNOTATION);
            Cluster {
                name: text("name"),
                server: text("server"),
                project: text("project"),
                labels: map(&found["metadata"]["labels"]),
                annotations,
            }
        })
        .collect();
    if !all.iter().any(|cluster| cluster.server == IN_CLUSTER) {
        let here = Cluster {
            name: IN_CLUSTER_NAME.to_owned(),
            server: IN_CLUSTER.to_owned(),
            ..Cluster::default()
        };
        all.insert(0, here);
    }
    all
}

impl World {
    /// The files of a repository at a revision; `note` says what of them is looked at.
    fn checkout(&self, url: &str, revision: &str, note: impl FnOnce(&mut Look)) -> Seen {
        let key = (url.to_owned(), revision.to_owned());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let found = seen.entry(key).or_insert_with(|| self.look(url, revision));
        if let Ok(checkout) = found {
            note(&mut checkout.look);
        }
        found.clone()
    }

    fn look(&self, url: &str, revision: &str) -> Seen {
        if url.is_empty() {
            return Err("repoURL is empty".to_owned());
        }
        // Before it is looked at: what is pushed from now on wakes the set.
        self.registry.asks(&self.set, url);
        let repository = Repository {
            workspace: self.set.workspace.clone(),
            project: self.project.clone(),
            url: url.to_owned(),
            chart: String::new(),
        };
        let found = self
            .handle
            .block_on(self.listings.at(&repository, revision, self.oldest));
        let (listing, tree) = found.map_err(|error| error.to_string())?;
        Ok(Checkout {
            reader: tree.reader(),
            look: Look {
                repository,
                revision: revision.to_owned(),
                listing,
                directories: false,
                patterns: BTreeSet::new(),
            },
        })
    }

    /// What was looked at.
    pub(crate) fn looks(self) -> Vec<Look> {
        let seen = self.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        seen.into_values()
            .filter_map(|found| found.ok().map(|checkout| checkout.look))
            .collect()
    }

    async fn gitea(&self, generator: &Value) -> Result<Vec<PullRequest>, String> {
        let set = &self.set;
        let gitea = Gitea::read(
            &self.requests,
            &set.workspace,
            &set.namespace,
            &generator["gitea"],
        )
        .await?;
        let own = self
            .pulls
            .as_ref()
            .and_then(|pulls| Some((pulls, pulls.address(&gitea.asked)?)));
        let found = match own {
            Some((pulls, address)) => {
                self.registry.asks(set, &address);
                pulls.open(&gitea.asked).await
            }
            None => {
                // Before it is asked, so that what is told meanwhile is not missed.
                let Asked { api, owner, name, .. } = &gitea.asked;
                self.registry.asks_pulls(set, &format!("{api}/{owner}/{name}"));
                gitea.open().await
            }
        };
        let mut found = match found {
            Err(PullsError::NotFound(_)) if generator["continueOnRepoNotFoundError"] == true => Vec::new(),
            other => other.map_err(|error| error.to_string())?,
        };
        let wanted = generator["gitea"]["labels"].as_array().into_iter().flatten();
        let wanted: Vec<&str> = wanted.filter_map(Value::as_str).collect();
        found.retain(|pull| {
            wanted
                .iter()
                .all(|label| pull.labels.iter().any(|own| own == label))
        });
        Ok(found)
    }
}

impl Sources for World {
    fn clusters(&self) -> Result<Vec<Cluster>, String> {
        Ok(self.clusters.clone())
    }

    fn directories(&self, repository: &str, revision: &str) -> Result<Vec<String>, String> {
        let checkout = self.checkout(repository, revision, |look| look.directories = true)?;
        Ok(checkout.look.listing.directories())
    }

    fn files(
        &self,
        repository: &str,
        revision: &str,
        pattern: &str,
    ) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let checkout = self.checkout(repository, revision, |look| {
            look.patterns.insert(pattern.to_owned());
        })?;
        let (mut found, mut bytes) = (BTreeMap::new(), 0);
        let paths = checkout.look.listing.paths.iter();
        for path in paths.filter(|path| means_file(pattern, path)) {
            let content = match checkout.reader.read(path) {
                Ok(content) => content,
                // A link whose target is gone.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error.to_string()),
            };
            bytes += content.len();
            if bytes > MAX_BYTES {
                return Err(format!(
                    "the files that {pattern:?} means have more than {MAX_BYTES} bytes"
                ));
            }
            found.insert(path.clone(), content.to_vec());
        }
        Ok(found)
    }

    fn pull_requests(&self, generator: &Value) -> Result<Vec<PullRequest>, String> {
        const PROVIDERS: [&str; 6] = [
            "github",
            "gitlab",
            "gitea",
            "bitbucketServer",
            "bitbucket",
            "azuredevops",
        ];
        match PROVIDERS.iter().find(|provider| !generator[**provider].is_null()) {
            Some(&"gitea") => self.handle.block_on(self.gitea(generator)),
            Some(other) => Err(format!(
                "the pull requests of {other} are not supported; gitea's are"
            )),
            None => Err("no Pull Request provider implementation configured".to_owned()),
        }
    }

    fn others(&self, kind: &str, _: &Value) -> Result<Vec<Params>, String> {
        Err(format!(
            "the generator {kind} is not supported; use list, clusters, git, matrix, merge or pullRequest with gitea"
        ))
    }
}

/// All generators of a set, those within others among them.
fn all_generators(spec: &Value) -> Vec<&Value> {
    let mut all: Vec<&Value> = spec["generators"].as_array().into_iter().flatten().collect();
    let mut next = 0;
    while let Some(generator) = all.get(next).copied() {
        for nested in ["matrix", "merge"] {
            all.extend(generator[nested]["generators"].as_array().into_iter().flatten());
        }
        next += 1;
    }
    all
}

/// Whether a set looks at pull requests.
pub(crate) fn asks_for_pulls(spec: &Value) -> bool {
    let all = all_generators(spec);
    all.iter().any(|generator| !generator["pullRequest"].is_null())
}

/// How often a set's generators look at what nobody tells them of; none if everything is told.
pub(crate) fn interval(spec: &Value) -> Option<Duration> {
    let default = [("git", 3 * 60), ("pullRequest", 30 * 60)];
    let all = all_generators(spec);
    let intervals = all.iter().flat_map(|generator| {
        default.into_iter().filter_map(|(kind, default)| {
            let own = &generator[kind];
            let seconds = own["requeueAfterSeconds"].as_u64().unwrap_or(default);
            // Nought is never, as with Argo CD.
            (!own.is_null() && seconds > 0).then_some(seconds)
        })
    });
    intervals.min().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn intervals() {
        for (generators, expected) in [
            (json!([{"list": {}}, {"clusters": {}}]), None),
            (json!([{"git": {}}]), Some(180)),
            (json!([{"git": {"requeueAfterSeconds": 0}}]), None),
            (
                json!([{"pullRequest": {}}, {"git": {"requeueAfterSeconds": 20}}]),
                Some(20),
            ),
            (
                json!([{"matrix": {"generators": [{"list": {}}, {"merge": {"generators": [{"pullRequest": {}}]}}]}}]),
                Some(1800),
            ),
        ] {
            let found = interval(&json!({"generators": generators}));
            assert_eq!(found.map(|it| it.as_secs()), expected);
        }
    }

    #[test]
    fn clusters_of_secrets() {
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let secret = json!({
            "metadata": {"labels": {"env": "dev"}, "annotations": {"a": "b", "kcp.io/cluster": "root"}},
            "data": {"name": encode("east"), "server": encode("https://east")},
        });
        let found = clusters(std::slice::from_ref(&secret));
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].name.as_str(), found[0].server.as_str()),
            ("in-cluster", IN_CLUSTER)
        );
        assert_eq!(
            (found[1].name.as_str(), found[1].labels["env"].as_str()),
            ("east", "dev")
        );
        assert_eq!(found[1].annotations.len(), 1);
        let mut own = secret;
        own["data"]["server"] = json!(encode(IN_CLUSTER));
        assert_eq!(clusters(&[own]).len(), 1, "its Secret is the cluster");
    }
}
