//! Where an application's objects go: its own workspace, another one of this process, or another cluster.

pub(crate) mod secret;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use fairway_api::argoproj::{CLUSTER_SECRETS, CONTROL_PLANES};
use fairway_controller::{ClientFactory, Failure, ObjectKey, Queue, Requests, Shutdown, WorkspaceId};
use fairway_gitops_sync::project;
use serde_json::Value;

use crate::application::Application;
use crate::cluster::Cluster;
use crate::settings::Project;

/// The address that means the workspace of the Application itself.
pub(crate) const IN_CLUSTER: &str = "https://kubernetes.default.svc";
/// The name of the same.
pub(crate) const IN_CLUSTER_NAME: &str = "in-cluster";
/// The account that applications of other workspaces come as, in their control plane's namespace.
const ACCOUNT: &str = "argocd-application-controller";

/// A destination that exists.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) server: String,
    pub(crate) name: String,
    /// Whether it is the workspace that the Application is in.
    pub(crate) is_home: bool,
    /// Whether it is in this process.
    pub(crate) is_inside: bool,
}

impl Place {
    /// As projects see it.
    pub(crate) fn for_project(&self, namespace: &str) -> project::Destination {
        project::Destination {
            server: self.server.clone(),
            name: self.name.clone(),
            namespace: namespace.to_owned(),
        }
    }

    /// Whom to act as; nobody else if empty. The error is a sentence.
    pub(crate) fn identity(&self, application: &Application, project: &Project) -> Result<String, String> {
        let namespace = &application.spec.destination.namespace;
        let fits = |pattern: &str, text: &str| fairway_text_glob::matches(pattern, text);
        let found = project
            .accounts
            .iter()
            .find(|entry| fits(&entry.server, &self.server) && fits(&entry.namespace, namespace));
        if let Some(entry) = found {
            let account = entry.default_service_account.as_str();
            let (home, name) = account.split_once(':').unwrap_or((namespace, account));
            let sound = |text: &str| !text.is_empty() && !text.contains(['!', '*', '[', ']', '{', '}', ':']);
            return match sound(home) && sound(name) {
                true => Ok(format!("system:serviceaccount:{home}:{name}")),
                false => Err(format!(
                    "project {}: destinationServiceAccounts: {account:?} is no service account",
                    project.name
                )),
            };
        }
        if !project.accounts.is_empty() {
            return Err(format!(
                "failed to find a matching service account to impersonate: no entry of destinationServiceAccounts of \
                 project {} fits server {} and namespace {namespace}",
                project.name, self.server
            ));
        }
        Ok(match self.is_inside && !self.is_home {
            // In another workspace it is what its rules make of the account at home.
            true => format!(
                "system:kcp:serviceaccount:{}:{}:{ACCOUNT}",
                application.key.workspace,
                control_plane(application)
            ),
            false => String::new(),
        })
    }
}

/// The namespace of the control plane that an application belongs to.
pub(crate) fn control_plane(application: &Application) -> &str {
    match application.is_in_control_plane() {
        true => &application.key.namespace,
        false => CONTROL_PLANES[0],
    }
}

/// Why there is no destination.
pub(crate) enum Lost {
    /// The Application says something that cannot be.
    Invalid(String),
    /// What it names is not there, or not to be told from others: its objects are nowhere that anybody could look.
    Missing(String),
    /// It could not be found out.
    Failed(Failure),
}

impl From<Failure> for Lost {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// All destinations.
pub(crate) struct Destinations {
    pub(crate) hub: Arc<Cluster>,
    /// How this process is reached from outside, without a path.
    urls: Vec<String>,
    clusters: Mutex<HashMap<ObjectKey, Remote>>,
    queue: Queue<ObjectKey>,
    shutdown: Shutdown,
}

/// A cluster of a Secret.
struct Remote {
    version: String,
    cluster: Arc<Cluster>,
}

impl Destinations {
    pub(crate) fn new(
        hub: Arc<Cluster>,
        urls: Vec<String>,
        queue: Queue<ObjectKey>,
        shutdown: Shutdown,
    ) -> Self {
        Self {
            hub,
            urls,
            clusters: Mutex::default(),
            queue,
            shutdown,
        }
    }

    /// Finds the destination of an application.
    pub(crate) async fn find(&self, requests: &Requests, application: &Application) -> Result<Place, Lost> {
        let wanted = &application.spec.destination;
        match (wanted.server.is_empty(), wanted.name.is_empty()) {
            (true, true) => {
                return Err(Lost::Invalid(
                    "Destination server missing from app spec: application destination can't have both name and server \
                     empty"
                        .to_owned(),
                ));
            }
            (false, false) => {
                return Err(Lost::Invalid(format!(
                    "application destination can't have both name and server defined: {} {}",
                    wanted.name, wanted.server
                )));
            }
            _ => {}
        }
        let server = wanted.server.trim_end_matches('/');
        if server == IN_CLUSTER || wanted.name == IN_CLUSTER_NAME {
            return Ok(self.home(application));
        }
        if let Some(path) = path_inside(&self.urls, server) {
            return self.inside(application, server, path).await;
        }
        self.remote(requests, application).await
    }

    fn home(&self, application: &Application) -> Place {
        Place {
            cluster: Arc::clone(&self.hub),
            workspace: application.key.workspace.clone(),
            server: IN_CLUSTER.to_owned(),
            name: IN_CLUSTER_NAME.to_owned(),
            is_home: true,
            is_inside: true,
        }
    }

    async fn inside(&self, application: &Application, server: &str, path: &str) -> Result<Place, Lost> {
        let root = Requests::new(self.hub.readers.root());
        let address = format!("/clusters/{path}/apis/core.kcp.io/v1alpha1/logicalclusters/cluster");
        let missing = || Lost::Missing(format!("there is no workspace {path:?} at {server}"));
        let found = match root.get(&address).await {
            Ok(found) => found.ok_or_else(missing)?,
            // To those who may not know, nothing is there.
            Err(Failure::Api { source, .. }) if fairway_controller::error::status(&source).is_some() => {
                return Err(missing());
            }
            Err(failure) => return Err(failure.into()),
        };
        let id = found["metadata"]["annotations"][fairway_controller::key::CLUSTER_ANNOTATION]
            .as_str()
            .and_then(|id| WorkspaceId::parse(id).ok())
            .ok_or_else(missing)?;
        Ok(Place {
            is_home: id == application.key.workspace,
            workspace: id,
            server: server.to_owned(),
            ..self.home(application)
        })
    }

    /// A cluster of a Secret in the control plane's namespace.
    async fn remote(&self, requests: &Requests, application: &Application) -> Result<Place, Lost> {
        let wanted = &application.spec.destination;
        let namespace = control_plane(application);
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        let secrets = requests.list_selected(&path, CLUSTER_SECRETS).await?;
        let by = |field: &str, value: &str| -> Vec<&Value> {
            let fits = |secret: &&Value| {
                secret::text(secret, field).is_some_and(|text| text.trim_end_matches('/') == value)
            };
            secrets.iter().filter(fits).collect()
        };
        let found = match wanted.name.is_empty() {
            false => by("name", &wanted.name),
            true => by("server", wanted.server.trim_end_matches('/')),
        };
        let shown = match wanted.name.is_empty() {
            false => format!("name: {}", wanted.name),
            true => format!("server: {}", wanted.server),
        };
        let secret = match found.as_slice() {
            [one] => *one,
            [] => {
                return Err(Lost::Missing(format!(
                    "unable to find destination server: there are no clusters with this {shown}"
                )));
            }
            several => {
                return Err(Lost::Missing(format!(
                    "unable to find destination server: there are {} clusters with the same {shown}",
                    several.len()
                )));
            }
        };
        let name = secret["metadata"]["name"].as_str().unwrap_or_default();
        let server = secret::text(secret, "server").unwrap_or_default();
        let workspace = &application.key.workspace;
        if let Some(path) = path_inside(&self.urls, server.trim_end_matches('/')) {
            return self.inside(application, server.trim_end_matches('/'), path).await;
        }
        let key = ObjectKey::new(workspace, namespace, name);
        let version = secret["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let known = {
            let clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
            let known = clusters.get(&key).filter(|known| known.version == version);
            known.map(|known| Arc::clone(&known.cluster))
        };
        let cluster = match known {
            Some(cluster) => cluster,
            None => {
                let client = secret::client(secret).map_err(|why| {
                    Lost::Invalid(format!(
                        "the cluster Secret {namespace}/{name} cannot be used: {why}"
                    ))
                })?;
                let clients = ClientFactory::plain(move |_| client.clone()).clients("");
                let cluster = Cluster::start(
                    clients.clone(),
                    clients,
                    None,
                    self.queue.clone(),
                    self.shutdown.clone(),
                );
                let remote = Remote {
                    version: version.to_owned(),
                    cluster: Arc::clone(&cluster),
                };
                self.clusters
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(key, remote);
                cluster
            }
        };
        Ok(Place {
            cluster,
            workspace: WorkspaceId::root(),
            name: secret::text(secret, "name").unwrap_or_default(),
            server,
            is_home: false,
            is_inside: false,
        })
    }

    /// Forgets an application everywhere.
    pub(crate) fn forget(&self, application: &ObjectKey) {
        self.hub.forget(application);
        let clusters: Vec<Arc<Cluster>> = {
            let known = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
            known.values().map(|remote| Arc::clone(&remote.cluster)).collect()
        };
        for cluster in clusters {
            cluster.forget(application);
        }
    }
}

/// The path of a workspace in an address of this process.
pub(crate) fn path_inside<'a>(urls: &[String], server: &'a str) -> Option<&'a str> {
    let (host, path) = server.split_once("/clusters/")?;
    let own = host == IN_CLUSTER || urls.iter().any(|url| url.trim_end_matches('/') == host);
    let sound = !path.is_empty()
        && path
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b':' || b == b'-');
    (own && sound).then_some(path)
}
