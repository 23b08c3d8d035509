//! Who asks, and what he may do: tokens are reviewed and rights are asked for in the workspace that owns the repository.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_controller::access;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use serde_json::Value;

use crate::catalog::{GROUP, PLURAL};
use crate::scopes;

/// The type of Secrets that tokens for the Git host are bound to, and what they note: a name for people, and scopes.
pub(crate) const GIT_TOKEN: &str = "fairway.dev/git-token";
pub(crate) const NAME: &str = "fairway.dev/token-name";
pub(crate) const SCOPES: &str = "fairway.dev/token-scopes";

/// What can be done with a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Clone, fetch, read.
    Get,
    /// See that it exists.
    List,
    /// Push, commit, merge, change settings.
    Update,
    /// Make one.
    Create,
    /// Remove it.
    Delete,
}

impl Verb {
    fn text(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Update => "update",
            Self::Create => "create",
            Self::Delete => "delete",
        }
    }
}

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Caller {
    /// As the API server knows him; none for somebody without a token.
    pub user: Option<UserInfo>,
}

impl Caller {
    /// His name in texts.
    pub fn name(&self) -> &str {
        let name = self.user.as_ref().and_then(|user| user.username.as_deref());
        name.unwrap_or("system:anonymous")
    }

    /// A short name: of a service account its own, without where it is.
    pub fn short_name(&self) -> &str {
        let name = self.name();
        name.rsplit(':').next().unwrap_or(name)
    }

    /// The groups that he is in.
    pub fn groups(&self) -> &[String] {
        let groups = self.user.as_ref().and_then(|user| user.groups.as_deref());
        groups.unwrap_or_default()
    }

    /// Whether he has shown who he is.
    pub fn is_known(&self) -> bool {
        self.user.is_some()
    }
}

/// The token in a request: of `Bearer` and Gitea's `token`, or the password of `Basic`, whatever the name before it. Some
/// programs put it where the name belongs.
pub fn token(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = text.split_once(' ')?;
    let rest = rest.trim();
    let found = match scheme.to_ascii_lowercase().as_str() {
        "bearer" | "token" => rest.to_owned(),
        "basic" => {
            let decoded = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
            let (name, password) = decoded.split_once(':')?;
            match password {
                "" | "x-oauth-basic" => name.to_owned(),
                _ => password.to_owned(),
            }
        }
        _ => return None,
    };
    (!found.is_empty()).then_some(found)
}

/// What a token says, which nobody has checked.
fn claims(token: &str) -> Option<Value> {
    let payload = token.split('.').nth(1)?;
    let decoded = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(payload)
        .ok()?;
    serde_json::from_slice(&decoded).ok()
}

/// The workspace that a service account's token says it is of: the claim is not believed, only used to know whom to ask.
pub fn workspace_of_token(token: &str) -> Option<String> {
    let claims = claims(token)?;
    let name = claims.pointer("/kubernetes.io/clusterName")?.as_str()?;
    let is_id = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    is_id.then(|| name.to_owned())
}

/// The Secret that a token for the Git host says it is bound to. Not believed before the token was reviewed.
fn bound_secret(token: &str) -> Option<(String, String)> {
    let claims = claims(token)?;
    let is_for_us = match &claims["aud"] {
        Value::Array(all) => all.iter().any(|audience| audience == scopes::AUDIENCE),
        one => one == scopes::AUDIENCE,
    };
    let text = |pointer: &str| claims.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let bound = text("/kubernetes.io/namespace").zip(text("/kubernetes.io/secret/name"));
    bound.filter(|_| is_for_us)
}

/// Who a token belongs to, none if it is not good in this workspace.
pub async fn review(client: Client, token: &str) -> Result<Option<UserInfo>, kube::Error> {
    let bound = bound_secret(token);
    let audiences = bound.as_ref().map(|_| vec![scopes::AUDIENCE.to_owned()]);
    let user = access::review(client.clone(), token, audiences).await?;
    let (Some(mut user), Some((namespace, name))) = (user.clone(), bound) else {
        return Ok(user);
    };
    // Without what it may be used for, it may be used for nothing.
    let secret = Api::<Secret>::namespaced(client, &namespace)
        .get_opt(&name)
        .await?;
    let Some(granted) = secret.as_ref().and_then(granted) else {
        return Ok(None);
    };
    let extra = user.extra.get_or_insert_default();
    extra.insert(scopes::EXTRA.to_owned(), granted);
    Ok(Some(user))
}

fn granted(secret: &Secret) -> Option<Vec<String>> {
    let scopes = secret.metadata.annotations.as_ref()?.get(SCOPES)?;
    let is_token = secret.type_.as_deref() == Some(GIT_TOKEN);
    is_token.then(|| scopes.split(',').map(str::to_owned).collect())
}

/// Whether somebody may do something with a repository (with any, if the name is empty) of the client's workspace.
pub async fn is_allowed(
    client: Client,
    caller: &Caller,
    verb: Verb,
    name: &str,
) -> Result<bool, kube::Error> {
    let anonymous = || UserInfo {
        username: Some("system:anonymous".to_owned()),
        groups: Some(vec!["system:unauthenticated".to_owned()]),
        ..UserInfo::default()
    };
    let user = caller.user.clone().unwrap_or_else(anonymous);
    let wish = ResourceAttributes {
        group: Some(GROUP.to_owned()),
        resource: Some(PLURAL.to_owned()),
        verb: Some(verb.text().to_owned()),
        name: (!name.is_empty()).then(|| name.to_owned()),
        ..ResourceAttributes::default()
    };
    access::may(client, user, wish).await
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn tokens_are_found() {
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let cases = [
            ("Bearer abc".to_owned(), Some("abc")),
            ("bearer  abc ".to_owned(), Some("abc")),
            ("token abc".to_owned(), Some("abc")),
            (basic("me:abc"), Some("abc")),
            (basic(":abc"), Some("abc")),
            (basic("me:a:b"), Some("a:b")),
            (basic("abc:"), Some("abc")),
            (basic("abc:x-oauth-basic"), Some("abc")),
            (basic("no colon"), None),
            (basic(":"), None),
            ("Basic %%%".to_owned(), None),
            ("Digest x".to_owned(), None),
            ("Bearer".to_owned(), None),
        ];
        for (header, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_str(&header).unwrap());
            assert_eq!(token(&headers).as_deref(), expected, "{header}");
        }
        assert_eq!(token(&HeaderMap::new()), None);
    }

    #[test]
    fn the_workspace_of_a_token_is_only_a_hint() {
        let jwt = |payload: &str| {
            let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
            format!("{}.{}.x", encode("{}"), encode(payload))
        };
        let cases = [
            (jwt(r#"{"kubernetes.io":{"clusterName":"abc"}}"#), Some("abc")),
            (jwt(r#"{"kubernetes.io":{"clusterName":"../x"}}"#), None),
            (jwt(r#"{"kubernetes.io":{"clusterName":""}}"#), None),
            (jwt("{}"), None),
            ("opaque".to_owned(), None),
        ];
        for (token, expected) in cases {
            assert_eq!(workspace_of_token(&token).as_deref(), expected, "{token}");
        }
    }
}
