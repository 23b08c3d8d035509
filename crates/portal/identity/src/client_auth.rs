//! Which program asks: it is known by its id, and shows its secret if it can keep one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_api::identity::{CREDENTIAL, OIDC_CLIENT};
use fairway_controller::Failure;
use fairway_portal_realm::{Client, client, secret};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::provider::{Call, Provider};
use crate::respond::{self, Body};

/// The name of the Credential of a client.
pub(crate) fn credential_of(client: &str) -> String {
    format!("client.{client}")
}

impl Provider {
    /// A program of a realm, by its id.
    pub(crate) async fn client(&self, call: &Call<'_>, id: &str) -> Result<Option<Client>, Failure> {
        if !client::is_name(id) {
            return Ok(None);
        }
        // An object cannot take the place of a client that is built in.
        if let Some(client) = Client::built_in(id, &self.portal) {
            return Ok(Some(client));
        }
        let object = self.objects.get(call.cluster, OIDC_CLIENT, id).await?;
        Ok(object.map(|object| Client::read(id, &object)))
    }

    /// The program that sent a request, which has shown who it is.
    pub(crate) async fn authenticated_client(&self, call: &Call<'_>) -> Result<Client, Box<Response<Body>>> {
        let (id, offered) = match basic(call.headers) {
            Some(pair) => pair,
            None => (
                call.form.text("client_id").to_owned(),
                call.form.text("client_secret").to_owned(),
            ),
        };
        let client = self
            .client(call, &id)
            .await
            .map_err(|failure| Box::new(respond::failed(&failure)))?;
        let is_right = match &client {
            None => false,
            // Nobody outside of this process is the portal, whatever secret somebody has written down for it.
            Some(client) if client.id == client::PORTAL => false,
            Some(client) if client.public => offered.is_empty(),
            Some(client) => self
                .is_secret_of(call, &client.id, &offered)
                .await
                .map_err(|failure| Box::new(respond::failed(&failure)))?,
        };
        client.filter(|_| is_right).ok_or_else(|| {
            let why = "the client is not known, or its secret is wrong";
            let mut response = respond::error(StatusCode::UNAUTHORIZED, "invalid_client", why);
            let challenge = HeaderValue::from_static("Basic realm=\"fairway\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            Box::new(response)
        })
    }

    async fn is_secret_of(&self, call: &Call<'_>, client: &str, offered: &str) -> Result<bool, Failure> {
        let kept = self
            .objects
            .get(call.cluster, CREDENTIAL, &credential_of(client))
            .await?;
        let kept = kept
            .as_ref()
            .and_then(|it| it.pointer("/spec/secretDigest").and_then(Value::as_str));
        Ok(kept.is_some_and(|kept| !offered.is_empty() && secret::is_kept(kept, offered)))
    }
}

/// Id and secret of `Basic`, each encoded as in a form (RFC 6749, section 2.3.1).
fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = text.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
    let (id, secret) = pair.split_once(':')?;
    let decoded = |part: &str| {
        let part = part.replace('+', " ");
        percent_decode_str(&part)
            .decode_utf8()
            .ok()
            .map(std::borrow::Cow::into_owned)
    };
    Some((decoded(id)?, decoded(secret)?))
}
