//! The software catalog, wired to the Git host of this process: it reads repositories there, and hears of every push.

use std::sync::Arc;

use fairway_controller::{ClientFactory, Metrics, Shutdown, WorkspaceId};
use fairway_gitops_git::{GitError, Repository};
use fairway_gitops_githost::catalog::{Wanted, api};
use fairway_gitops_githost::host::Denial;
use fairway_gitops_githost::route::Slug;
use fairway_gitops_githost::seams::{Push, PushWatcher};
use fairway_gitops_githost::{Host, owner};
use fairway_gitops_tree::{Limits, Reader};
use fairway_kernel_apiserver::Kernel;
use fairway_kernel_apiserver::authn::UserInfo;
use fairway_kernel_apiserver::client::InProcess;
use fairway_outbound::{AllowedHosts, Outbound};
use fairway_portal_catalog::files::{Files, FilesError, Snapshot};
use fairway_portal_catalog::{Catalog, Foreign, Options, USER};
use fairway_portal_entity::foreign;
use fairway_portal_entity::place::{CATALOG_FILE, Hosted, Revision};
use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use kube::Client;
use kube::core::ApiResource;
use tokio::task::JoinHandle;

use super::web::{Portal, client_within};

/// What is read of a repository at most.
const LIMITS: Limits = Limits {
    files: 100_000,
    file_bytes: 4 << 20,
    total_bytes: 64 << 20,
    links: 16,
};

/// Starts it, and has it answer below `/api/catalog`.
pub(super) fn start(
    kernel: &Arc<Kernel>,
    host: &Arc<Host>,
    portal: &Portal,
    allowed_hosts: AllowedHosts,
    (clients, metrics): (ClientFactory, Arc<Metrics>),
    shutdown: Shutdown,
) -> JoinHandle<()> {
    let user = UserInfo::new(USER, fairway_kernel_controllers::groups(USER));
    let in_process = InProcess::new(Arc::clone(kernel), user);
    let workspaces = Arc::clone(kernel);
    let catalog = Catalog::new(Options {
        client_at: Arc::new(move |workspace: &str| -> Client {
            client_within(in_process.clone(), workspace)
        }),
        resolve: Arc::new(move |named: &str| {
            let id = workspaces.workspaces.resolve(named)?;
            WorkspaceId::parse(&id).ok()
        }),
        files: Arc::new(Repositories {
            host: Arc::clone(host),
            kernel: Arc::clone(kernel),
        }),
        outbound: Outbound::new(allowed_hosts),
        foreign: kinds_of_others(),
    });
    host.add_watcher(Arc::new(Pushes(Arc::clone(&catalog))));
    let serving = Arc::clone(&catalog);
    portal.join(
        "/api/catalog",
        Arc::new(move |request| {
            let catalog = Arc::clone(&serving);
            async move { catalog.serve(request).await }.boxed()
        }),
    );
    tokio::spawn(catalog.run(clients, metrics, shutdown))
}

/// People, groups and templates, as far as this program has their kinds.
fn kinds_of_others() -> Vec<Foreign> {
    type Convert = fn(&serde_json::Value) -> Option<serde_json::Value>;
    let all: [(&str, &str, Convert); 3] = [
        ("fairway.dev", "users", foreign::user),
        ("fairway.dev", "groups", foreign::group),
        ("scaffolder.backstage.io", "templates", foreign::template),
    ];
    let mut found = Vec::new();
    let definitions = fairway_api::definitions()
        .into_iter()
        .chain(fairway_api::identity_definitions());
    for definition in definitions {
        let kind = definition.kind();
        let served = all
            .iter()
            .find(|(group, plural, _)| *group == definition.group() && *plural == kind.plural);
        if let Some((group, plural, entity)) = served {
            found.push(Foreign {
                resource: ApiResource {
                    group: (*group).to_owned(),
                    version: kind.version.to_owned(),
                    api_version: format!("{group}/{}", kind.version),
                    kind: kind.kind.to_owned(),
                    plural: (*plural).to_owned(),
                },
                entity: *entity,
            });
        }
    }
    found
}

/// Tells the catalog of pushes; pushers hear nothing of it.
struct Pushes(Arc<Catalog>);

impl PushWatcher for Pushes {
    fn pushed(&self, push: &Push) -> BoxStream<'static, String> {
        self.0
            .pushed(&push.wanted.workspace, &push.owner, &push.wanted.name);
        stream::empty().boxed()
    }
}

/// The repositories of the Git host, as the catalog sees them.
struct Repositories {
    host: Arc<Host>,
    kernel: Arc<Kernel>,
}

fn failed(error: &GitError) -> FilesError {
    FilesError::Failed(error.full())
}

impl Repositories {
    fn directory(&self, wanted: &Wanted) -> Result<Repository, FilesError> {
        let place = self.host.place();
        let path = place.path(&wanted.workspace, &wanted.name);
        // It is made by another controller, in its own time.
        Repository::open(place.git(), path)
            .map_err(|_| FilesError::NotFound(format!("the repository {} is not there yet", wanted.name)))
    }

    async fn at(&self, repository: &Repository, revision: &str) -> Result<Option<Commit>, FilesError> {
        let commit = match repository.resolve(revision).await {
            Ok(commit) => commit,
            Err(GitError::UnknownRevision { .. }) => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        let tree = repository
            .tree(&commit, LIMITS)
            .await
            .map_err(|error| failed(&error))?;
        Ok(Some(Commit {
            id: commit.as_str().to_owned(),
            reader: tree.reader(),
        }))
    }

    async fn find(
        &self,
        asker: Option<&WorkspaceId>,
        hosted: &Hosted,
    ) -> Result<Arc<dyn Snapshot>, FilesError> {
        let slug = Slug {
            owner: hosted.owner.clone(),
            name: hosted.repository.clone(),
        };
        let missing = || {
            FilesError::NotFound(format!(
                "there is no repository {slug}, or not for this workspace"
            ))
        };
        let wanted = match self.host.wanted(&slug).await {
            Ok(Some(wanted)) => wanted,
            Ok(None) => return Err(missing()),
            Err(Denial::Broken(why)) => return Err(FilesError::Failed(why)),
            Err(_) => return Err(missing()),
        };
        // Who may read it is for its own workspace to say; others see what everybody may.
        let is_own = asker.is_some_and(|asker| wanted.workspace == asker.as_str());
        if !is_own && wanted.is_private {
            return Err(missing());
        }
        let repository = self.directory(&wanted)?;
        let revision = match &hosted.revision {
            Revision::Default => format!("refs/heads/{}", wanted.default_branch),
            Revision::Branch(name) => format!("refs/heads/{name}"),
            Revision::Tag(name) => format!("refs/tags/{name}"),
            Revision::Commit(id) => id.clone(),
        };
        let found = self.at(&repository, &revision).await?;
        let commit = found.ok_or_else(|| FilesError::NotFound(format!("{slug} has no {revision}")))?;
        Ok(Arc::new(commit))
    }

    async fn look(&self, workspace: &WorkspaceId, repository: &str) -> Result<Option<Hosted>, FilesError> {
        let found = api(self.host.client_at(workspace.as_str()))
            .get_opt(repository)
            .await;
        let object = match found {
            Ok(Some(object)) => object,
            Ok(None) => return Ok(None),
            Err(error) => return Err(FilesError::Failed(error.to_string())),
        };
        let wanted = Wanted::read(workspace.as_str(), &object.value);
        let repository = self.directory(&wanted)?;
        let branch = format!("refs/heads/{}", wanted.default_branch);
        let Some(commit) = self.at(&repository, &branch).await? else {
            return Ok(None);
        };
        let reading = tokio::task::spawn_blocking(move || commit.read(CATALOG_FILE)).await;
        let content = reading
            .map_err(|error| FilesError::Failed(error.to_string()))?
            .map_err(FilesError::Failed)?;
        let path = self.kernel.workspaces.path(workspace.as_str());
        Ok(content.map(|_| Hosted {
            owner: owner::of_workspace(&path),
            repository: wanted.name,
            revision: Revision::Branch(wanted.default_branch),
            path: CATALOG_FILE.to_owned(),
        }))
    }
}

impl Files for Repositories {
    fn host(&self) -> &str {
        self.host.url()
    }

    fn open<'a>(
        &'a self,
        asker: Option<&'a WorkspaceId>,
        hosted: &'a Hosted,
    ) -> BoxFuture<'a, Result<Arc<dyn Snapshot>, FilesError>> {
        self.find(asker, hosted).boxed()
    }

    fn catalog_file<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        repository: &'a str,
    ) -> BoxFuture<'a, Result<Option<Hosted>, FilesError>> {
        self.look(workspace, repository).boxed()
    }
}

/// A repository at a commit.
struct Commit {
    id: String,
    reader: Reader,
}

impl Snapshot for Commit {
    fn commit(&self) -> &str {
        &self.id
    }

    fn read(&self, path: &str) -> Result<Option<Arc<[u8]>>, String> {
        match self.reader.read(path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn list(&self) -> Result<Vec<String>, String> {
        self.reader.walk("").map_err(|error| error.to_string())
    }
}
