//! Programs that run in a browser redeem their codes from pages of another origin: the browser asks first whether those may.
//!
//! They may if they are where a public client of the realm has browsers sent with codes: whoever gets the code there may redeem it there.
//! Cookies never come along, so that a page learns nothing that its code does not entitle it to. What everybody may know
//! ([`respond::public`]) every page may read.

use fairway_api::identity::OIDC_CLIENT;
use fairway_controller::Failure;
use fairway_portal_realm::Client;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Response};
use serde_json::Value;
use tracing::warn;

use crate::discovery::{CONFIGURATION, JWKS};
use crate::provider::Provider;
use crate::respond::{self, Body};

/// The longest origin that is compared.
const MAX_ORIGIN: usize = 512;

/// Whether pages elsewhere may call what is at a path of a realm, and how: the methods.
fn methods(path: &str) -> Option<&'static str> {
    match path {
        "token" | "revoke" => Some("POST"),
        "userinfo" => Some("GET, POST"),
        _ => None,
    }
}

impl Provider {
    /// Answers a browser that asks before it calls; none if nothing there is called by pages.
    pub(crate) async fn preflight(
        &self,
        cluster: &str,
        path: &str,
        headers: &HeaderMap,
    ) -> Option<Response<Body>> {
        let is_public = matches!(path, CONFIGURATION | JWKS);
        let methods = methods(path).or_else(|| is_public.then_some("GET"))?;
        let mut response = respond::nothing();
        let allowed = match is_public {
            true => Some(HeaderValue::from_static("*")),
            false => self.allowed_origin(cluster, headers).await,
        };
        let said = response.headers_mut();
        said.insert(VARY, HeaderValue::from_static("Origin"));
        // Without these the browser does not call; the answer itself is no refusal.
        if let Some(origin) = allowed {
            for (name, value) in [
                (ACCESS_CONTROL_ALLOW_METHODS, methods),
                (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type"),
                (ACCESS_CONTROL_MAX_AGE, "600"),
            ] {
                said.insert(name, HeaderValue::from_static(value));
            }
            said.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        }
        Some(response)
    }

    /// Lets the page that has called read the answer, if it may.
    pub(crate) async fn readable(
        &self,
        cluster: &str,
        path: &str,
        headers: &HeaderMap,
        mut response: Response<Body>,
    ) -> Response<Body> {
        if methods(path).is_none() {
            return response;
        }
        let allowed = self.allowed_origin(cluster, headers).await;
        let said = response.headers_mut();
        said.append(VARY, HeaderValue::from_static("Origin"));
        if let Some(origin) = allowed {
            said.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            let exposed = HeaderValue::from_static("www-authenticate");
            said.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
        response
    }

    /// The origin of a request, if a public client of the realm is there.
    async fn allowed_origin(&self, cluster: &str, headers: &HeaderMap) -> Option<HeaderValue> {
        let value = headers.get(ORIGIN)?;
        let origin = value.to_str().ok().filter(|it| it.len() <= MAX_ORIGIN)?;
        match self.public_clients(cluster).await {
            Ok(clients) => clients
                .iter()
                .any(|client| client.has_pages_at(origin))
                .then(|| value.clone()),
            Err(failure) => {
                warn!(%failure, "the clients of a realm cannot be read");
                None
            }
        }
    }

    async fn public_clients(&self, cluster: &str) -> Result<Vec<Client>, Failure> {
        let found = self.objects.list(cluster, OIDC_CLIENT).await?;
        let read = |object: &Value| Some(Client::read(object["metadata"]["name"].as_str()?, object));
        let clients = found.iter().filter_map(read);
        Ok(clients.filter(|client| client.public).collect())
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn pages_call_what_needs_no_cookie() {
        for (path, expected) in [
            ("token", Some("POST")),
            ("userinfo", Some("GET, POST")),
            ("revoke", Some("POST")),
            ("authorize", None),
            ("logout", None),
            ("device", None),
            ("introspect", None),
        ] {
            assert_eq!(methods(path), expected, "{path}");
        }
        assert_eq!(respond::nothing().status(), StatusCode::NO_CONTENT);
    }
}
