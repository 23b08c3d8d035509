//! Clients of a user, each for one workspace or for all.
//!
//! There may be ten thousand workspaces, most of them idle, so only the clients that everybody needs are kept: one that
//! looks at every workspace and one for the root. Any other is made for the work at hand and ends with it, which costs
//! a few hundredths of a request.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use kube::Client;
use kube::client::Body;
use tower::Service;

use crate::key::{Reach, WorkspaceId};

type Make = dyn Fn(&Reach, &str) -> Client + Send + Sync;

/// Makes clients for the users of a process.
#[derive(Clone)]
pub struct ClientFactory {
    make: Arc<Make>,
    reach: Reach,
}

impl ClientFactory {
    /// For a plain Kubernetes cluster, which is one workspace. With a kubeconfig the same client may serve all users.
    pub fn plain(make: impl Fn(&str) -> Client + Send + Sync + 'static) -> Self {
        Self {
            make: Arc::new(move |_, user| make(user)),
            reach: Reach::One(WorkspaceId::root()),
        }
    }

    /// For an API with workspaces, given the service that each user speaks to.
    pub fn across_workspaces<S, B>(service_for: impl Fn(&str) -> S + Send + Sync + 'static) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<tower::BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        let make =
            move |reach: &Reach, user: &str| Client::new(Within::new(service_for(user), reach), "default");
        Self {
            make: Arc::new(make),
            reach: Reach::Every,
        }
    }

    /// For workspaces that are reached in some other way, such as through a virtual workspace: `make` knows how.
    pub fn made_by(make: impl Fn(&Reach, &str) -> Client + Send + Sync + 'static) -> Self {
        Self {
            make: Arc::new(make),
            reach: Reach::Every,
        }
    }

    /// How far it reaches.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The clients of a user. Must be called within a runtime.
    pub fn clients(&self, user: &str) -> Clients {
        let root = (self.make)(&Reach::One(WorkspaceId::root()), user);
        let every = match &self.reach {
            Reach::One(_) => root.clone(),
            Reach::Every => (self.make)(&Reach::Every, user),
        };
        Clients(Arc::new(Kept {
            factory: self.clone(),
            user: user.into(),
            root,
            every,
        }))
    }
}

/// The clients of one user.
#[derive(Clone)]
pub struct Clients(Arc<Kept>);

struct Kept {
    factory: ClientFactory,
    user: Box<str>,
    root: Client,
    every: Client,
}

impl Clients {
    /// The client that looks at everything within reach.
    pub fn every(&self) -> Client {
        self.0.every.clone()
    }

    /// The client of the root workspace.
    pub fn root(&self) -> Client {
        self.0.root.clone()
    }

    /// The client of a workspace. Ask once for each piece of work. Must be called within a runtime.
    pub fn of(&self, workspace: &WorkspaceId) -> Client {
        let kept = &self.0;
        match kept.factory.reach {
            Reach::Every if !workspace.is_root() => {
                (kept.factory.make)(&Reach::One(workspace.clone()), &kept.user)
            }
            _ => self.root(),
        }
    }

    /// How far they reach.
    pub fn reach(&self) -> &Reach {
        &self.0.factory.reach
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clients").field(&self.0.user).finish()
    }
}

/// A service whose requests go to a workspace, or to all.
#[derive(Clone, Debug)]
pub struct Within<S> {
    service: S,
    prefix: Option<PathAndQuery>,
}

impl<S> Within<S> {
    /// A service that reaches so far.
    pub fn new(service: S, reach: &Reach) -> Self {
        // An id is sound in a URL, so nothing is lost here.
        let prefix = reach.url_prefix().and_then(|prefix| prefix.parse().ok());
        Self { service, prefix }
    }

    /// A service whose requests all go below a path.
    pub fn below(service: S, path: PathAndQuery) -> Self {
        Self {
            service,
            prefix: Some(path),
        }
    }
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for Within<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        if let Some(prefix) = &self.prefix {
            let uri = std::mem::take(request.uri_mut());
            *request.uri_mut() = prefixed(prefix, uri);
        }
        self.service.call(request)
    }
}

/// The URL in the workspace. One that would be too long leads to the workspace's own path, never to another workspace.
fn prefixed(prefix: &PathAndQuery, uri: Uri) -> Uri {
    let mut parts = uri.into_parts();
    let rest = parts.path_and_query.as_ref().map_or("/", PathAndQuery::as_str);
    let whole = PathAndQuery::from_maybe_shared(bytes::Bytes::from(format!("{prefix}{rest}")));
    let whole = whole.unwrap_or_else(|_| prefix.clone());
    parts.path_and_query = Some(whole.clone());
    Uri::from_parts(parts).unwrap_or_else(|_| Uri::from(whole))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, ListParams};
    use serde_json::json;

    use super::{ClientFactory, prefixed};
    use crate::fake::{Failing, Script};
    use crate::key::{Reach, WorkspaceId};

    #[test]
    fn urls_stay_in_the_workspace() {
        let prefix = "/clusters/a".parse().unwrap();
        for (uri, want) in [
            ("/api/v1/pods?limit=1", "/clusters/a/api/v1/pods?limit=1"),
            ("/", "/clusters/a/"),
            ("https://h:1/apis", "https://h:1/clusters/a/apis"),
        ] {
            assert_eq!(prefixed(&prefix, uri.parse().unwrap()).to_string(), want);
        }
        let long = format!("/{}", "x".repeat(65_530)).parse().unwrap();
        assert_eq!(prefixed(&prefix, long).path(), "/clusters/a");
    }

    #[tokio::test]
    async fn each_client_speaks_to_its_workspace() {
        let list = || json!({"metadata": {}, "items": []});
        let script = Script::new()
            .expect("GET", "/clusters/*/api/v1/configmaps?", 200, list())
            .expect("GET", "/api/v1/configmaps?", 200, list())
            .expect("GET", "/clusters/team/api/v1/configmaps?", 200, list());
        let service = script.service();
        let clients = ClientFactory::across_workspaces(move |_| service.clone()).clients("u");
        let team = WorkspaceId::parse("team").unwrap();
        for client in [
            clients.every(),
            clients.of(&WorkspaceId::root()),
            clients.of(&team),
        ] {
            Api::<ConfigMap>::all(client)
                .list(&ListParams::default())
                .await
                .unwrap();
        }
        script.finish();
    }

    #[tokio::test]
    async fn a_plain_cluster_is_one_workspace_with_one_client() {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let factory = ClientFactory::plain(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            Failing::with(500, "InternalError").client()
        });
        let clients = factory.clients("u");
        clients.of(&WorkspaceId::parse("team").unwrap());
        clients.every();
        assert_eq!(made.load(Ordering::SeqCst), 1);
        assert_eq!(*clients.reach(), Reach::One(WorkspaceId::root()));
    }
}
