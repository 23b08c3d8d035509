//! The host: from a request to a repository, if there is one and the caller may see it.

mod hearing;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use fairway_controller::error::is_not_found;
use fairway_gitops_git::{Git, GitError, Repository};
use fairway_outbound::{AllowedHosts, Outbound};
use futures::stream::BoxStream;
use http::header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use kube::Client;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::{debug, warn};

use crate::access::{self, Caller, Verb};
use crate::catalog::{self, Wanted};
use crate::gitea::OpenPull;
use crate::hooks::Hooks;
use crate::mirror::Mirrors;
use crate::place::Place;
use crate::push::Pushing;
use crate::route::{Route, Service, Slug, route};
use crate::scopes::Area;
use crate::seams::{Push, PushCheck, PushWatcher, RemoteWatcher};
use crate::transport::{Body, text};
use crate::{fetch, gitea, owner, push, scopes};

/// Conversations at once; each is a child or two.
const CONVERSATIONS: usize = 32;
/// How long a request waits for its turn.
const TURN: Duration = Duration::from_secs(60);
/// Events of other hosts that are looked at at once.
const EVENTS: usize = 8;
/// How long tidying up after a push may take.
const MAINTENANCE: Duration = Duration::from_secs(1800);

/// A client of a workspace, by its path or id, with the rights of [`crate::USER`].
pub type ClientAt = Arc<dyn Fn(&str) -> Client + Send + Sync>;

/// What the host is told at the start.
#[derive(Clone)]
pub struct Options {
    /// Where repositories are.
    pub repositories: PathBuf,
    /// The address that users are told, without a slash at its end: `https://git.fairway.localhost:7443`.
    pub url: String,
    /// Its way to the API.
    pub client_at: ClientAt,
    /// Where webhooks may go.
    pub allowed_hosts: AllowedHosts,
}

/// The host.
pub struct Host {
    options: Options,
    place: Place,
    checks: RwLock<Vec<Arc<dyn PushCheck>>>,
    watchers: RwLock<Vec<Arc<dyn PushWatcher>>>,
    remote_watchers: RwLock<Vec<Arc<dyn RemoteWatcher>>>,
    mirrors: Mirrors,
    hooks: Hooks,
    turns: Arc<Semaphore>,
    hearing: Semaphore,
    maintenance: Arc<Semaphore>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Host")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// A repository that a caller may do something with.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Its object.
    pub wanted: Arc<Wanted>,
    /// The directory.
    pub repository: Repository,
    /// Who asks.
    pub caller: Caller,
}

/// Why a caller does not get a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// There is none, or he may not know of it.
    NotFound,
    /// He must say who he is.
    Unauthenticated,
    /// He may know of it, but not do this.
    Forbidden,
    /// Something of ours failed.
    Broken(String),
}

impl Host {
    /// Prepares the directories.
    pub fn new(options: Options) -> Result<Arc<Self>, GitError> {
        let home = options.repositories.join(".git-home");
        let git = Git::new(fairway_gitops_git::Options::new(home))?;
        Ok(Arc::new(Self {
            place: Place::new(options.repositories.clone(), git),
            hooks: Hooks::new(Outbound::new(options.allowed_hosts.clone())),
            options,
            checks: RwLock::default(),
            watchers: RwLock::default(),
            remote_watchers: RwLock::default(),
            mirrors: Mirrors::default(),
            turns: Arc::new(Semaphore::new(CONVERSATIONS)),
            hearing: Semaphore::new(EVENTS),
            maintenance: Arc::new(Semaphore::new(1)),
        }))
    }

    /// The repositories on disk.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The address that users are told.
    pub fn url(&self) -> &str {
        &self.options.url
    }

    /// A client of a workspace, by its path or id.
    pub fn client_at(&self, workspace: &str) -> Client {
        (self.options.client_at)(workspace)
    }

    /// Has somebody judge pushes from now on.
    pub fn add_check(&self, check: Arc<dyn PushCheck>) {
        self.checks
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(check);
    }

    /// Tells somebody of pushes from now on.
    pub fn add_watcher(&self, watcher: Arc<dyn PushWatcher>) {
        self.watchers
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(watcher);
    }

    /// Tells somebody of pushes to repositories elsewhere from now on.
    pub fn add_remote_watcher(&self, watcher: Arc<dyn RemoteWatcher>) {
        self.remote_watchers
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(watcher);
    }

    fn remote_watchers(&self) -> Vec<Arc<dyn RemoteWatcher>> {
        let watchers = self.remote_watchers.read();
        watchers.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn checks(&self) -> Vec<Arc<dyn PushCheck>> {
        self.checks.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells everybody that references have moved; what each has to say to who moved them.
    pub fn tell(&self, push: &Push) -> Vec<BoxStream<'static, String>> {
        self.proposed_by(push);
        let watchers = self.watchers();
        watchers.iter().map(|watcher| watcher.pushed(push)).collect()
    }

    pub(crate) fn watchers(&self) -> Vec<Arc<dyn PushWatcher>> {
        self.watchers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Tells everybody that pull requests have changed.
    pub(crate) fn tell_pulls(&self, slug: &Slug) {
        let watchers = self
            .watchers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for watcher in watchers {
            watcher.pulls_changed(&slug.owner, &slug.name);
        }
    }

    /// The open pull requests of a repository of a workspace, by its id; none if there is no such repository.
    pub async fn open_pulls(&self, workspace: &str, name: &str) -> Result<Option<Vec<OpenPull>>, String> {
        let path = self.place.path(workspace, name);
        match Repository::open(self.place.git(), path) {
            Ok(repository) => gitea::open_pulls(&repository).await.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Tidies up after a push, if nobody is at it.
    pub(crate) fn after_push(&self, push: Push) {
        let Ok(turn) = Arc::clone(&self.maintenance).try_acquire_owned() else {
            return;
        };
        tokio::spawn(async move {
            let _turn = turn;
            if let Err(error) = push.repository.maintain(MAINTENANCE).await {
                debug!(error = error.full(), "a repository could not be packed");
            }
        });
    }

    /// Answers a request.
    pub async fn serve(self: &Arc<Self>, request: Request<Body>) -> Response<Body> {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or(""));
        match route(path, query) {
            Route::Refs(slug, service) => {
                if request.method() != Method::GET {
                    return not_allowed("GET");
                }
                self.refs(&slug, service, request.headers()).await
            }
            Route::Rpc(slug, service) => {
                if request.method() != Method::POST {
                    return not_allowed("POST");
                }
                self.rpc(&slug, service, request).await
            }
            Route::Front(slug) => self.front(&slug, request.headers()).await,
            Route::Dumb => text(
                StatusCode::FORBIDDEN,
                "This server speaks Git's smart protocol only; use git 1.6.6 or newer.",
            ),
            Route::Api(rest) => gitea::serve(self, &rest, request).await,
            Route::Browse(slug, branch) => self.browse(&slug, &branch, request.headers()).await,
            Route::Webhook => self.webhook(request).await,
            Route::Unknown => text(
                StatusCode::NOT_FOUND,
                "Nothing is here. Repositories are at /OWNER/NAME.git; the owner is a workspace.",
            ),
        }
    }

    /// Calls Gitea's API in somebody's name, for other parts of this process that know who that is. Rights, rules and checks are those of
    /// a request from outside; the answer, or the code and the words of a refusal.
    pub async fn call_as(
        self: &Arc<Self>,
        caller: Caller,
        method: Method,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<serde_json::Value, (u16, String)> {
        let request = Request::builder().method(method).uri(format!("/api/v1/{path}"));
        // A request from outside cannot bring an extension.
        let request = request
            .extension(caller)
            .body(crate::transport::full(body.to_string()));
        let request = request.map_err(|error| (400, error.to_string()))?;
        let path = path.split('?').next().unwrap_or(path);
        let answer = gitea::serve(self, path, request).await;
        let status = answer.status();
        let bytes = http_body_util::BodyExt::collect(answer.into_body()).await;
        let bytes = bytes.map_err(|error| (500, error.to_string()))?.to_bytes();
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
        match status.is_success() {
            true => Ok(value),
            false => {
                let said = value["message"]
                    .as_str()
                    .unwrap_or("it was refused without a word");
                Err((status.as_u16(), said.to_owned()))
            }
        }
    }

    /// Who asks for something in a workspace.
    pub async fn caller(&self, workspace: &str, headers: &HeaderMap) -> Result<Caller, Denial> {
        let Some(token) = access::token(headers) else {
            return Ok(Caller::default());
        };
        match access::review(self.client_at(workspace), &token).await {
            Ok(Some(user)) => Ok(Caller { user: Some(user) }),
            Ok(None) => Err(Denial::Unauthenticated),
            // Of a workspace that there is not, nobody is a user.
            Err(error) if is_refusal(&error) => Err(Denial::Unauthenticated),
            Err(error) => Err(broken("reviewing a token", &error)),
        }
    }

    /// Whether a caller may do something with a repository of a workspace.
    pub async fn may(
        &self,
        workspace: &str,
        caller: &Caller,
        verb: Verb,
        name: &str,
    ) -> Result<bool, Denial> {
        match access::is_allowed(self.client_at(workspace), caller, verb, name).await {
            Ok(allowed) => Ok(allowed),
            Err(error) if is_refusal(&error) => Ok(false),
            Err(error) => Err(broken("asking for rights", &error)),
        }
    }

    /// The object of a repository, whoever asks.
    pub async fn wanted(&self, slug: &Slug) -> Result<Option<Wanted>, Denial> {
        let Some(workspace) = owner::workspace_of(&slug.owner) else {
            return Ok(None);
        };
        let found = catalog::api(self.client_at(&workspace)).get(&slug.name).await;
        match found {
            Ok(object) => {
                let reach = fairway_controller::Reach::Every;
                let id = reach.workspace_of(&object.metadata);
                let is_going = object.value.pointer("/metadata/deletionTimestamp").is_some();
                Ok((!is_going).then(|| Wanted::read(id.as_str(), &object.value)))
            }
            Err(error) if is_refusal(&error) || is_not_found(&error) => Ok(None),
            Err(error) => Err(broken("looking for the Repository", &error)),
        }
    }

    /// A repository for who may do this with it.
    pub async fn open(&self, slug: &Slug, headers: &HeaderMap, verb: Verb) -> Result<Opened, Denial> {
        let workspace = owner::workspace_of(&slug.owner).ok_or(Denial::NotFound)?;
        let caller = self.caller(&workspace, headers).await?;
        self.open_for(slug, caller, verb).await
    }

    /// The same for a caller who is known already.
    pub async fn open_for(&self, slug: &Slug, caller: Caller, verb: Verb) -> Result<Opened, Denial> {
        let workspace = owner::workspace_of(&slug.owner).ok_or(Denial::NotFound)?;
        if !scopes::allow(caller.user.as_ref(), Area::Repository, verb != Verb::Get) {
            return Err(Denial::Forbidden);
        }
        let hidden = match caller.is_known() {
            true => Denial::NotFound,
            false => Denial::Unauthenticated,
        };
        let Some(wanted) = self.wanted(slug).await? else {
            return Err(hidden);
        };
        let can_read = !wanted.is_private || self.may(&workspace, &caller, Verb::Get, &slug.name).await?;
        if !can_read {
            return Err(hidden);
        }
        if verb != Verb::Get && !self.may(&workspace, &caller, verb, &slug.name).await? {
            return Err(match caller.is_known() {
                true => Denial::Forbidden,
                false => Denial::Unauthenticated,
            });
        }
        let repository = self.place.ensure(&wanted).await.map_err(|error| {
            warn!(%slug, %error, "a repository cannot be used");
            Denial::Broken(format!("the repository cannot be used: {error}"))
        })?;
        Ok(Opened {
            wanted: Arc::new(wanted),
            repository,
            caller,
        })
    }

    pub(crate) async fn turn(&self) -> Result<OwnedSemaphorePermit, Response<Body>> {
        let waiting = Arc::clone(&self.turns).acquire_owned();
        match tokio::time::timeout(TURN, waiting).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => {
                let mut busy = text(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "Too many fetches and pushes are under way; try again in a moment.",
                );
                busy.headers_mut()
                    .insert(RETRY_AFTER, HeaderValue::from_static("10"));
                Err(busy)
            }
        }
    }

    async fn refs(&self, slug: &Slug, service: Service, headers: &HeaderMap) -> Response<Body> {
        let verb = verb_of(service);
        let opened = match self.open(slug, headers, verb).await {
            Ok(opened) => opened,
            Err(denial) => return denied(&denial, slug),
        };
        let _turn = match self.turn().await {
            Ok(turn) => turn,
            Err(busy) => return busy,
        };
        let answer = match service {
            Service::UploadPack => fetch::refs(&opened.repository, headers).await,
            Service::ReceivePack => push::refs(&opened.repository).await,
        };
        answer.unwrap_or_else(|error| failed(slug, &error.full()))
    }

    async fn rpc(self: &Arc<Self>, slug: &Slug, service: Service, request: Request<Body>) -> Response<Body> {
        let headers = request.headers();
        let expected = format!("application/x-{}-request", service.name());
        if headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes) != Some(expected.as_bytes()) {
            let why = format!("The request must be of the media type {expected}.");
            return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, &why);
        }
        let is_gzip = match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
            None | Some(b"identity") => false,
            Some(b"gzip" | b"x-gzip") => true,
            Some(_) => return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Only gzip is understood."),
        };
        let opened = match self.open(slug, headers, verb_of(service)).await {
            Ok(opened) => opened,
            Err(denial) => return denied(&denial, slug),
        };
        let turn = match self.turn().await {
            Ok(turn) => turn,
            Err(busy) => return busy,
        };
        let (parts, body) = request.into_parts();
        match service {
            Service::UploadPack => fetch::rpc(&opened.repository, &parts.headers, body, is_gzip, turn)
                .unwrap_or_else(|error| failed(slug, &error.full())),
            Service::ReceivePack => {
                let pushing = Pushing {
                    host: Arc::clone(self),
                    wanted: opened.wanted,
                    owner: slug.owner.clone(),
                    repository: opened.repository,
                    pusher: opened.caller,
                    turn: Some(turn),
                };
                match pushing.rpc(body, is_gzip).await {
                    Ok(response) => response,
                    Err(error) if error.is_ours() => failed(slug, &error.to_string()),
                    Err(error) => text(StatusCode::BAD_REQUEST, &error.to_string()),
                }
            }
        }
    }

    async fn front(&self, slug: &Slug, headers: &HeaderMap) -> Response<Body> {
        match self.open(slug, headers, Verb::Get).await {
            Ok(opened) => {
                let about = &opened.wanted.description;
                let url = self.clone_url(slug);
                text(StatusCode::OK, &format!("{slug}\n{about}\n\n  git clone {url}"))
            }
            Err(denial) => denied(&denial, slug),
        }
    }

    /// Whether a branch is there, for who waits until he can see what he has pushed.
    async fn browse(&self, slug: &Slug, branch: &str, headers: &HeaderMap) -> Response<Body> {
        match self.open(slug, headers, Verb::Get).await {
            Ok(opened) => match opened.repository.resolve(&format!("refs/heads/{branch}")).await {
                Ok(commit) => text(StatusCode::OK, &format!("{slug}\n{branch} is at {commit}")),
                Err(_) => text(StatusCode::NOT_FOUND, &format!("{slug} has no branch {branch}.")),
            },
            Err(denial) => denied(&denial, slug),
        }
    }

    /// Who is told of what happens.
    pub(crate) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Mirrors, and how to wake them.
    pub(crate) fn mirrors(&self) -> &Mirrors {
        &self.mirrors
    }

    /// Where a repository is cloned from.
    pub fn clone_url(&self, slug: &Slug) -> String {
        format!("{}/{slug}.git", self.options.url)
    }
}

fn verb_of(service: Service) -> Verb {
    match service {
        Service::UploadPack => Verb::Get,
        Service::ReceivePack => Verb::Update,
    }
}

/// Whether the API has said that there is no such thing, or that it is not ours to see.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 403 | 404))
}

fn broken(attempt: &str, error: &kube::Error) -> Denial {
    warn!(attempt, %error, "the API cannot be asked");
    Denial::Broken(format!("{attempt} failed: {error}"))
}

fn denied(denial: &Denial, slug: &Slug) -> Response<Body> {
    match denial {
        Denial::NotFound => text(
            StatusCode::NOT_FOUND,
            &format!("Repository {slug} does not exist, or you may not read it."),
        ),
        Denial::Unauthenticated => {
            let why = "A token is needed: give it as the password, with any user name (kubectl create token ACCOUNT).";
            let mut response = text(StatusCode::UNAUTHORIZED, why);
            let realm = HeaderValue::from_static("Basic realm=\"Fairway\", charset=\"UTF-8\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, realm);
            response
        }
        Denial::Forbidden => text(
            StatusCode::FORBIDDEN,
            &format!(
                "You may not do this with {slug}: pushing takes the verb update on repositories.fairway.dev in its workspace, \
                 and a token whose scopes allow it."
            ),
        ),
        Denial::Broken(why) => text(StatusCode::INTERNAL_SERVER_ERROR, why),
    }
}

fn failed(slug: &Slug, why: &str) -> Response<Body> {
    warn!(%slug, why, "a request to a repository failed");
    text(StatusCode::INTERNAL_SERVER_ERROR, why)
}

fn not_allowed(allowed: &'static str) -> Response<Body> {
    let mut response = text(
        StatusCode::METHOD_NOT_ALLOWED,
        &format!("Only {allowed} works here."),
    );
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
