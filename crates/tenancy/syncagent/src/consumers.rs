//! The consumers' workspaces, as they are seen through the virtual workspace of the export.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use fairway_controller::clients::Within;
use fairway_controller::{ClientFactory, Clients, Reach, WorkspaceId};
use http::Request;
use kube::Client;
use kube::client::Body;
use tower::service_fn;

/// Makes a client for an address that an APIExportEndpointSlice names. The error is a sentence.
pub type Dial = Arc<dyn Fn(&str) -> Result<Client, String> + Send + Sync>;

/// Every consumer's workspace, behind one address or several.
#[derive(Clone)]
pub(crate) struct Consumers {
    endpoints: Arc<[Client]>,
    /// Behind which address a workspace was seen. With one address there is nothing to remember.
    homes: Arc<Mutex<HashMap<WorkspaceId, usize>>>,
}

impl Consumers {
    pub(crate) fn dial(urls: &[String], dial: &Dial) -> Result<Self, String> {
        let endpoints = urls.iter().map(|url| dial(url)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            endpoints: endpoints.into(),
            homes: Arc::default(),
        })
    }

    /// A client for each address that looks at all workspaces behind it.
    pub(crate) fn every(&self) -> impl Iterator<Item = (usize, Client)> {
        let each = self.endpoints.iter().enumerate();
        each.map(|(at, client)| (at, beneath(client, "/clusters/*")))
    }

    /// Remembers behind which address a workspace is.
    pub(crate) fn saw(&self, workspace: &WorkspaceId, endpoint: usize) {
        if self.endpoints.len() > 1 {
            let mut homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
            homes.insert(workspace.clone(), endpoint);
        }
    }

    /// The client of a workspace. Ask once for each piece of work.
    pub(crate) fn of(&self, workspace: &WorkspaceId) -> Client {
        let homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
        let at = homes.get(workspace).copied().unwrap_or(0);
        beneath(&self.endpoints[at], &format!("/clusters/{workspace}"))
    }

    /// The same as controllers want it.
    pub(crate) fn clients(&self) -> Clients {
        let this = self.clone();
        let factory = ClientFactory::made_by(move |reach, _| match reach {
            Reach::One(workspace) => this.of(workspace),
            Reach::Every => beneath(&this.endpoints[0], "/clusters/*"),
        });
        factory.clients("syncagent")
    }
}

/// A client whose requests go below a path of another's.
pub(crate) fn beneath(client: &Client, path: &str) -> Client {
    let client = client.clone();
    let service = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move { client.send(request).await }
    });
    match path.parse() {
        Ok(path) => Client::new(Within::below(service, path), "default"),
        // A workspace's id is sound in a URL, so this does not happen; if it did, nothing must be reached.
        Err(_) => Client::new(
            Within::below(service, http::uri::PathAndQuery::from_static("/clusters/-")),
            "default",
        ),
    }
}
