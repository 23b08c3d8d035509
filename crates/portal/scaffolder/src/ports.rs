//! What runs need of the rest of the platform, as traits; the binary joins them.

use fairway_controller::{Requests, WorkspaceId};
use fairway_portal_template::files::Files;
use futures::future::BoxFuture;
use kube::Client;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Somebody, as an authenticator knows him.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Person {
    /// Name.
    pub username: String,
    /// An identifier that outlives renaming.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What the authenticator added.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Person {
    /// A short name: of `acme/alice` and of a service account the last part.
    pub fn short_name(&self) -> &str {
        self.username.rsplit([':', '/']).next().unwrap_or(&self.username)
    }
}

impl From<&fairway_apiservice::User> for Person {
    fn from(user: &fairway_apiservice::User) -> Self {
        Self {
            username: user.name.clone(),
            uid: user.uid.clone(),
            groups: user.groups.clone(),
            extra: user.extra.clone(),
        }
    }
}

/// Makes clients that act as somebody, with exactly his rights.
pub trait Actors: Send + Sync {
    /// The client of a person in a workspace.
    fn client(&self, workspace: &WorkspaceId, person: &Person) -> Client;

    /// The workspace that a path or an id means, if there is one.
    fn workspace(&self, path: &str) -> Option<WorkspaceId>;
}

/// Why the Git host did not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ForgeError {
    /// As HTTP has it: 403, 404, 409.
    pub code: u16,
    /// For people.
    pub message: String,
}

/// A repository of the Git host: of the run's own workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosted {
    /// Owner, as addresses write it.
    pub owner: String,
    /// Name.
    pub name: String,
}

impl std::fmt::Display for Hosted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// The Git host of this installation.
pub trait Forge: Send + Sync {
    /// Its address, without a slash at its end.
    fn url(&self) -> String;

    /// The owner's name of a workspace.
    fn owner<'a>(&'a self, workspace: &'a WorkspaceId) -> BoxFuture<'a, Result<String, ForgeError>>;

    /// Calls its API (Gitea's) as somebody of a workspace.
    fn call<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        person: &'a Person,
        method: http::Method,
        path: &'a str,
        body: Value,
    ) -> BoxFuture<'a, Result<Value, ForgeError>>;

    /// The files below a directory at a revision, and the commit that it is.
    fn read<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        person: &'a Person,
        repository: &'a Hosted,
        revision: &'a str,
        directory: &'a str,
    ) -> BoxFuture<'a, Result<(String, Files), ForgeError>>;
}

/// The APIs of this installation's portal, asked in somebody's name.
pub trait Apis: Send + Sync {
    /// Asks one of them as somebody, in a workspace. An answer of more bytes than this is an error.
    fn ask<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        person: &'a Person,
        request: http::Request<Vec<u8>>,
        most: usize,
    ) -> BoxFuture<'a, Result<http::Response<Vec<u8>>, String>>;
}

/// Where a machine would run that does not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Of the machine.
    pub namespace: String,
    /// Of the machine.
    pub name: String,
    /// Whether a node would take it; nothing if that cannot be known before.
    pub scheduled: Option<bool>,
    /// The name of the node, or why there is none.
    pub node: String,
}

/// The scheduler of machines, asked without consequences.
pub trait Places: Send + Sync {
    /// Where the machines among objects would run, if all of them came now. `asker` is whose rights count.
    fn foresee<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        asker: &'a Requests,
        objects: &'a [Value],
    ) -> BoxFuture<'a, Vec<Place>>;
}

/// Why it cannot be said what an Application deploys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrendered {
    /// The files do not come to anything: a sync would say so, too.
    #[error("{0}")]
    Wrong(String),
    /// They need what is fetched when they are synced.
    #[error("{0}")]
    Unknown(String),
}

/// The renderer of the GitOps engine, for files that are in no repository yet.
pub trait Renderer: Send + Sync {
    /// The objects that an Application declares whose repository has these files.
    fn render<'a>(
        &'a self,
        files: &'a Files,
        application: &'a Value,
    ) -> BoxFuture<'a, Result<Vec<Value>, Unrendered>>;
}

/// How what is published is reached.
pub trait Gateways: Send + Sync {
    /// What host names end with that nobody chose: `apps.fairway.localhost`.
    fn domain(&self) -> &str;

    /// The port at which clients find what Gateways and Routes want at this one: another one where it needs a privilege.
    fn port(&self, wanted: u16) -> u16;
}

/// A mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// Addresses.
    pub to: Vec<String>,
    /// What it is about.
    pub subject: String,
    /// What it says.
    pub body: String,
}

/// Sends mail in the name of a workspace.
pub trait Mailer: Send + Sync {
    /// Sends one; else why not, and whether trying again may help.
    fn send<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        mail: &'a Mail,
    ) -> BoxFuture<'a, Result<(), (String, bool)>>;
}
