//! What a push would declare, rendered and tried without effect before it is accepted.
//!
//! Every Application that reads the branch is rendered with the new commit in its place, and each object is sent to its destination as a dry
//! run, as whoever would sync it. What cannot be tried yet, because its namespace or its kind is still to come, is let pass.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{Failure, ObjectKey, Requests, WorkspaceId};
use fairway_gitops_sync::key::{self, ResourceKey};
use fairway_gitops_sync::operation::ApplyMode;
use fairway_gitops_sync::project::normalize_url;
use fairway_gitops_tree::Tree;
use serde_json::Value;
use tokio::sync::broadcast;

use super::Engine;
use crate::application::{Application, Source};
use crate::desired::Renderer;
use crate::observe::kinds_in_use;
use crate::sources::{
    Answer, Archive, DependencyRequest, News, Repository, RevisionMetadata, SharedSources, Sources,
};

/// How long all of it may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The most Applications that are tried for one push.
const MOST: usize = 200;
/// The most files in which an object is looked for.
const MAX_FILES: usize = 500;

/// A commit that nobody sees yet.
pub struct Candidate {
    /// Where the repository is.
    pub workspace: WorkspaceId,
    /// Its address.
    pub url: String,
    /// The branch that is to move.
    pub branch: String,
    /// Whether it is the one that `HEAD` means.
    pub is_default: bool,
    /// Where to.
    pub commit: String,
    /// The files that differ from where it is now.
    pub changed: Vec<String>,
    /// The files of the commit.
    pub tree: Tree,
}

impl Candidate {
    fn is_of(&self, repository: &Repository) -> bool {
        repository.workspace == self.workspace && normalize_url(&repository.url) == normalize_url(&self.url)
    }

    fn is_named(&self, revision: &str) -> bool {
        let revision = revision.strip_prefix("refs/heads/").unwrap_or(revision);
        revision == self.branch || self.is_default && matches!(revision, "" | "HEAD")
    }

    /// Whether a source reads the branch.
    fn is_read_by(&self, application: &Application, source: &Source) -> bool {
        let repository = crate::desired::repository(application, source);
        self.is_of(&repository) && self.is_named(&source.target_revision)
    }

    /// The changed file that an object is most likely declared in.
    fn file_of(&self, object: &Value) -> Option<&str> {
        let (kind, name) = (key::kind(object), key::name(object));
        let reader = self.tree.reader();
        let declares = |path: &&String| {
            let is_manifest = [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end));
            is_manifest
                && reader
                    .read_text(path)
                    .is_ok_and(|text| text.contains(kind) && text.contains(name))
        };
        self.changed
            .iter()
            .take(MAX_FILES)
            .find(declares)
            .map(String::as_str)
    }
}

/// Whether an answer says nothing of the object: its namespace is still to come, somebody else writes it, nobody was there.
fn is_for_later(code: u16) -> bool {
    matches!(code, 0 | 404 | 409 | 429 | 502..)
}

/// The sources, with the proposed commit in its place.
struct Ahead {
    others: SharedSources,
    proposal: Arc<Candidate>,
}

impl Sources for Ahead {
    fn resolve<'a>(&'a self, repository: &'a Repository, revision: &'a str) -> Answer<'a, String> {
        match self.proposal.is_of(repository) && self.proposal.is_named(revision) {
            true => Box::pin(async { Ok(self.proposal.commit.clone()) }),
            false => self.others.resolve(repository, revision),
        }
    }

    fn tree<'a>(&'a self, repository: &'a Repository, commit: &'a str) -> Answer<'a, Tree> {
        match self.proposal.is_of(repository) && commit == self.proposal.commit {
            true => Box::pin(async { Ok(self.proposal.tree.clone()) }),
            false => self.others.tree(repository, commit),
        }
    }

    fn changed<'a>(
        &'a self,
        repository: &'a Repository,
        old: &'a str,
        new: &'a str,
    ) -> Answer<'a, Vec<String>> {
        self.others.changed(repository, old, new)
    }

    fn metadata<'a>(&'a self, repository: &'a Repository, commit: &'a str) -> Answer<'a, RevisionMetadata> {
        self.others.metadata(repository, commit)
    }

    fn chart<'a>(
        &'a self,
        repository: &'a Repository,
        version: &'a str,
        passes_credentials: bool,
    ) -> Answer<'a, Tree> {
        match self.proposal.is_of(repository) {
            true => self.tree(repository, version),
            false => self.others.chart(repository, version, passes_credentials),
        }
    }

    fn dependency<'a>(&'a self, wanted: &'a DependencyRequest) -> Answer<'a, Archive> {
        self.others.dependency(wanted)
    }

    fn names<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        project: &'a str,
    ) -> Answer<'a, BTreeMap<String, String>> {
        self.others.names(workspace, project)
    }

    fn document<'a>(&'a self, workspace: &'a WorkspaceId, url: &'a str) -> Answer<'a, String> {
        self.others.document(workspace, url)
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.others.news()
    }
}

/// Judges what is proposed.
#[derive(Clone)]
pub struct Judge {
    pub(crate) engine: Arc<Engine>,
    pub(crate) sources: SharedSources,
}

impl Judge {
    /// Lines for whoever proposes it; the error says why it cannot be accepted.
    pub async fn judge(&self, proposal: Candidate) -> Result<Vec<String>, String> {
        let judged = self.engine.judge(&self.sources, Arc::new(proposal));
        match tokio::time::timeout(TIMEOUT, judged).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(failure)) => Err(format!(
                "the manifests could not be tried: {}",
                failure.sentence()
            )),
            Err(_) => Err(format!(
                "the manifests could not be tried within {} s",
                TIMEOUT.as_secs()
            )),
        }
    }
}

impl Engine {
    async fn judge(
        &self,
        sources: &SharedSources,
        proposal: Arc<Candidate>,
    ) -> Result<Result<Vec<String>, String>, Failure> {
        let requests = self.requests(&proposal.workspace);
        let others = Arc::clone(sources);
        let renderer = self.renderer.with(Arc::new(Ahead {
            others,
            proposal: Arc::clone(&proposal),
        }));
        let mut tried = 0;
        for object in requests.list("/apis/argoproj.io/v1alpha1/applications").await? {
            let key = ObjectKey {
                workspace: proposal.workspace.clone(),
                namespace: key::namespace(&object).to_owned(),
                name: key::name(&object).to_owned(),
            };
            let Ok(application) = Application::read(&key, object) else {
                continue;
            };
            let reads = application
                .sources()
                .iter()
                .any(|source| proposal.is_read_by(&application, source));
            if !reads
                || application.is_skipped()
                || application.is_deleting()
                || !self.is_touched(&application, &proposal)
            {
                continue;
            }
            tried += 1;
            if tried > MOST {
                return Ok(Err(format!(
                    "more than {MOST} Applications read {}; push in several steps",
                    proposal.branch
                )));
            }
            if let Err(why) = self
                .try_one(&requests, &renderer, &application, &proposal)
                .await?
            {
                let name = format!("{}/{}", key.namespace, key.name);
                return Ok(Err(format!("Application {name}: {why}")));
            }
        }
        Ok(Ok(match tried {
            0 => Vec::new(),
            _ => vec![format!(
                "the manifests of {tried} Applications render and are admitted"
            )],
        }))
    }

    /// Whether the changed files matter to an application, as far as is known.
    fn is_touched(&self, application: &Application, proposal: &Candidate) -> bool {
        let Some(known) = self.results.get(&application.key) else {
            return true;
        };
        let sources = application.sources();
        let mut places = sources.iter().enumerate();
        known.is_unresolved()
            || known.failure.is_some()
            || places.any(|(place, source)| {
                proposal.is_read_by(application, source) && known.depends_on(place, &proposal.changed)
            })
    }

    async fn try_one(
        &self,
        requests: &Requests,
        renderer: &Renderer,
        application: &Application,
        proposal: &Candidate,
    ) -> Result<Result<(), String>, Failure> {
        // An application that cannot be synced at all says so itself; that is not the push's fault.
        let Ok(ground) = self.ground(requests, application).await? else {
            return Ok(Ok(()));
        };
        let scene = ground.scene(application, &self.destinations.hub);
        let sources = application.sources();
        let surroundings = self.surroundings(&scene, &sources).await?;
        let rendered = async {
            let revisions = renderer.resolve(application, &sources, &[]).await?;
            renderer
                .render(application, &sources, revisions, &surroundings, None)
                .await
        };
        let rendered = match rendered.await {
            Ok(rendered) => rendered,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if let Some(why) = &rendered.failure {
            return Ok(Err(format!("it does not render: {why}")));
        }
        let targets = rendered.objects();
        let kinds = kinds_in_use(application, &ground.place, &targets).await?;
        let mode = ApplyMode::Apply {
            server_side: true,
            validate: true,
            force: false,
        };
        for mut target in targets {
            let Some(kind) = kinds.of(&target) else { continue };
            if kind.namespaced && key::namespace(&target).is_empty() {
                target["metadata"]["namespace"] = application.spec.destination.namespace.as_str().into();
            }
            if key::name(&target).is_empty() {
                continue;
            }
            if let Err(refusal) = ground.hands.dry_run(kind, &target, mode).await
                && !is_for_later(refusal.code)
            {
                let file = proposal
                    .file_of(&target)
                    .map_or(String::new(), |file| format!("{file}: "));
                let why = format!(
                    "{file}{} is not admitted: {}",
                    ResourceKey::of(&target),
                    refusal.message
                );
                return Ok(Err(why));
            }
        }
        Ok(Ok(()))
    }
}
