//! Serves the web application, and does only that: a browser's session, the application's files, and the way to the APIs behind it.
//!
//! A browser has a cookie and never a token. With every request the session's object says whether it goes on, and for how long; a
//! token is made for it inside the process, and stands in the request that is handed on ([`Options::behind`]). So whatever is behind
//! sees the user as it sees any other client, and judges for itself what he may.
//!
//! Decisions are pure: `place` (who answers a path, where a browser may be sent), `assets` (which file in which form), `headers` (what
//! browsers are told), `origin` (whether a request came from the application), `cookie` (what the two cookies say), `endpoints` (what
//! the application's own addresses stand for). How long sessions last is `fairway-portal-realm`'s.
//!
//! There are no tasks here; what lives as long as a stream (`leash`) lives in it. Must not know the kernel, the Git host or any sibling:
//! they are behind one handler.

mod assets;
mod auth;
mod behind;
mod cookie;
pub mod endpoints;
mod headers;
mod leash;
mod origin;
mod place;
mod respond;
mod sessions;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use fairway_portal_identity::Provider;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;

use headers::{Kind, Origins};
use place::Place;
use sessions::Sessions;

/// Any error of a connection.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A body.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;
/// Answers what is behind.
pub type Handler = Arc<dyn Fn(Request<Body>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// Where a request came from: an extension of those that are handed on.
#[derive(Debug, Clone, Copy)]
pub struct ClientAddress(pub IpAddr);

/// What the server is told at the start.
#[derive(Clone)]
pub struct Options {
    /// Where it is served, without a slash at the end: `https://portal.fairway.localhost:7443`.
    pub url: String,
    /// What the host names of the platform end with.
    pub domain: String,
    /// The version of the program.
    pub version: String,
    /// Where the Kubernetes API is for other clients.
    pub api_server: String,
    /// Where Git is.
    pub git_url: String,
    /// Who signs people in.
    pub provider: Arc<Provider>,
    /// The Kubernetes API below `/k8s` and the siblings below `/api`.
    pub behind: Handler,
}

/// The server.
pub struct WebServer {
    options: Options,
    origins: Origins,
    sessions: Sessions,
}

impl WebServer {
    /// A server; nothing is served before [`WebServer::serve`] is called.
    pub fn new(options: Options) -> Arc<Self> {
        let origins = Origins {
            own: options.url.clone(),
            sign_in: options.provider.base().to_owned(),
        };
        Arc::new(Self {
            sessions: Sessions::new(Arc::clone(&options.provider)),
            options,
            origins,
        })
    }

    /// Answers a request from an address.
    pub async fn serve(&self, mut request: Request<Body>, address: IpAddr) -> Response<Body> {
        request.extensions_mut().insert(ClientAddress(address));
        let path = request.uri().path();
        match place::place(path) {
            Place::Auth(what) => {
                let what = what.to_owned();
                // Nothing is sent there.
                let (parts, _) = request.into_parts();
                let answer = self.auth(&what, &parts).await;
                self.complete(answer, Kind::SignIn)
            }
            Place::Behind => {
                let answer = self.behind(request).await;
                self.complete(answer, Kind::Behind)
            }
            Place::Application => {
                let (answer, nonce) = respond::application(&request);
                let kind = nonce.as_deref().map_or(Kind::File, Kind::Page);
                self.complete(answer, kind)
            }
        }
    }

    /// The letters of the application for the pages of sign-in, which are at another host and have to look alike.
    pub fn font() -> Response<Body> {
        respond::font()
    }

    fn complete(&self, mut answer: Response<Body>, kind: Kind<'_>) -> Response<Body> {
        let status = answer.status();
        headers::complete(answer.headers_mut(), status, kind, &self.origins);
        answer
    }
}
