//! Another provider, asked over the network: what it can do, its keys, what a code is worth, who somebody is.
//!
//! Whoever administers a realm names the provider, so it is called where the operator lets webhooks go, and may neither answer without
//! end nor keep us waiting. What it publishes is kept for a while and read again when a token names a key that is not there; between two
//! reads there is a pause, so that strangers cannot make us call somebody.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fairway_jose::{Key, Unverified, has_key_for, is_signed};
use fairway_outbound::{AllowedHosts, Message, Outbound};
use fairway_portal_realm::external::visitor::{self, Visitor};
use fairway_portal_realm::external::{Endpoints, IdentityProvider, discovery, endpoints};
use fairway_portal_realm::params;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use tokio::sync::Semaphore;

/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer.
const MAX_REPLY: usize = 256 * 1024;
/// Between two reads of what a provider publishes.
const PAUSE: Duration = Duration::from_secs(10);
/// How long it is believed.
const REFRESH: Duration = Duration::from_secs(600);
/// Browsers of a provider that are seen to at once.
const TURNS: usize = 16;
/// Providers that are remembered.
const KEEP: usize = 256;

/// The providers that were asked lately.
pub(crate) struct Upstreams {
    hosts: AllowedHosts,
    kept: Mutex<HashMap<(String, String), Arc<Upstream>>>,
}

/// A provider.
pub(crate) struct Upstream {
    provider: IdentityProvider,
    outbound: Outbound,
    known: tokio::sync::Mutex<Known>,
    turns: Semaphore,
}

#[derive(Default)]
struct Known {
    published: Option<Arc<Published>>,
    asked: Option<Instant>,
    /// Why the last read failed.
    trouble: String,
}

/// What a provider publishes.
pub(crate) struct Published {
    pub(crate) endpoints: Endpoints,
    keys: Vec<Key>,
}

/// What a browser has brought, and what belongs to it.
pub(crate) struct Brought<'a> {
    pub(crate) code: &'a str,
    /// PKCE.
    pub(crate) verifier: &'a str,
    /// Where it was sent.
    pub(crate) callback: &'a str,
    pub(crate) nonce: &'a str,
    /// What the provider knows us by, if it wants to know.
    pub(crate) secret: Option<&'a str>,
}

impl Upstreams {
    pub(crate) fn new(hosts: AllowedHosts) -> Self {
        Self {
            hosts,
            kept: Mutex::default(),
        }
    }

    /// A provider of a realm, as its settings are now.
    pub(crate) fn of(&self, realm: &str, provider: &IdentityProvider) -> Result<Arc<Upstream>, String> {
        let key = (realm.to_owned(), provider.name.clone());
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.get(&key).filter(|it| it.provider == *provider) {
            return Ok(Arc::clone(found));
        }
        let outbound = match provider.authorities.as_str() {
            "" => Outbound::new(self.hosts.clone()),
            pem => Outbound::trusting(self.hosts.clone(), pem.as_bytes())
                .map_err(|why| format!("certificateAuthority is wrong: {why}"))?,
        };
        let made = Arc::new(Upstream {
            provider: provider.clone(),
            outbound,
            known: tokio::sync::Mutex::default(),
            turns: Semaphore::new(TURNS),
        });
        if kept.len() >= KEEP {
            kept.clear();
        }
        kept.insert(key, Arc::clone(&made));
        Ok(made)
    }
}

impl Upstream {
    /// What the provider publishes; read anew if there is a reason, and it was not done a moment ago.
    pub(crate) async fn published(&self, anew: bool) -> Result<Arc<Published>, String> {
        let mut known = self.known.lock().await;
        let age = known.asked.map(|at| at.elapsed());
        let is_due = known.published.is_none() || anew || age.is_none_or(|age| age >= REFRESH);
        if is_due && age.is_none_or(|age| age >= PAUSE) {
            match self.read().await {
                Ok(published) => known.published = Some(Arc::new(published)),
                Err(why) => known.trouble = why,
            }
            known.asked = Some(Instant::now());
        }
        known.published.clone().ok_or_else(|| known.trouble.clone())
    }

    async fn read(&self) -> Result<Published, String> {
        let place = discovery(&self.provider.issuer);
        let document = self.get(&place, None).await?;
        let endpoints =
            endpoints(&document, &self.provider.issuer).map_err(|why| format!("{place}: {why}"))?;
        let keys = self.get(&endpoints.jwks, None).await?;
        let keys = fairway_jose::keys(&keys).map_err(|why| format!("{}: {why}", endpoints.jwks))?;
        Ok(Published { endpoints, keys })
    }

    /// Redeems a code: who has signed in there.
    pub(crate) async fn visitor(&self, brought: Brought<'_>, now: i64) -> Result<Visitor, String> {
        let turn = tokio::time::timeout(TIMEOUT, self.turns.acquire()).await;
        let _turn = turn.map_err(|_| "too many people come back from it at this moment")?;
        let published = self.published(false).await?;
        let answer = self.redeem(&published.endpoints, &brought).await?;
        let token = answer["id_token"].as_str();
        let token = token.ok_or("it gave no ID token: the scopes must have openid")?;
        let claims = self.verified(token, published.as_ref()).await?;
        visitor::judge(&claims, &self.provider, brought.nonce, now).map_err(|why| why.to_string())?;
        let more = match (&published.endpoints.userinfo, answer["access_token"].as_str()) {
            (Some(place), Some(access)) if visitor::lacks(&claims, &self.provider) => {
                self.get(place, Some(access)).await?
            }
            _ => Value::Null,
        };
        visitor::read(&claims, &more, &self.provider, now).map_err(|why| why.to_string())
    }

    async fn redeem(&self, endpoints: &Endpoints, brought: &Brought<'_>) -> Result<Value, String> {
        let (id, mut headers) = (self.provider.client_id.as_str(), HeaderMap::new());
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", brought.code),
            ("redirect_uri", brought.callback),
            ("code_verifier", brought.verifier),
        ];
        match brought.secret {
            Some(secret) if endpoints.takes_basic => {
                headers.insert(AUTHORIZATION, basic(id, secret)?);
            }
            Some(secret) => form.extend([("client_id", id), ("client_secret", secret)]),
            None => form.push(("client_id", id)),
        }
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, kind);
        let body = Bytes::from(params::query(form));
        self.send(Method::POST, &endpoints.token, headers, body).await
    }

    /// The claims of a token that a key of the provider has signed.
    async fn verified(&self, token: &str, published: &Published) -> Result<Value, String> {
        let read = Unverified::parse(token).map_err(|why| why.to_string())?;
        if is_signed(&read, &published.keys) {
            return Ok(read.claims);
        }
        let published = self.published(true).await?;
        match is_signed(&read, &published.keys) {
            true => Ok(read.claims),
            false if has_key_for(&read, &published.keys) => Err("the token's signature is wrong".to_owned()),
            false => Err("the token is signed with a key that it does not publish".to_owned()),
        }
    }

    async fn get(&self, url: &str, access: Option<&str>) -> Result<Value, String> {
        let mut headers = HeaderMap::new();
        if let Some(access) = access {
            let bearer = HeaderValue::from_str(&format!("Bearer {access}"));
            let bearer = bearer.map_err(|_| "its access token is not one")?;
            headers.insert(AUTHORIZATION, bearer);
        }
        self.send(Method::GET, url, headers, Bytes::new()).await
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Value, String> {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let message = Message {
            method,
            url: url.to_owned(),
            headers,
            body,
            timeout: TIMEOUT,
            max_reply: MAX_REPLY,
        };
        let reply = self.outbound.send(message).await;
        let reply = reply.map_err(|why| format!("{url}: {why}"))?;
        let answer: Result<Value, _> = serde_json::from_slice(&reply.body);
        match (reply.status, answer) {
            (200, Ok(answer)) if answer.is_object() => Ok(answer),
            (200, _) => Err(format!(
                "{url} did not answer with a JSON object of at most {MAX_REPLY} bytes"
            )),
            (status, answer) => {
                let said = |field: &str| {
                    let said = answer.as_ref().ok().and_then(|it| it[field].as_str());
                    said.unwrap_or_default().chars().take(200).collect::<String>()
                };
                Err(format!(
                    "{url} answered {status} {:?} {:?}",
                    said("error"),
                    said("error_description")
                ))
            }
        }
    }
}

/// Id and secret as `Basic` has them, each encoded as in a form (RFC 6749, section 2.3.1).
fn basic(id: &str, secret: &str) -> Result<HeaderValue, String> {
    let encoded = |text: &str| params::query([("x", text)]).split_off("x=".len());
    let pair = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
    let value = HeaderValue::from_str(&format!("Basic {pair}"));
    value.map_err(|_| "the client's secret cannot be sent".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_may_have_any_letters() {
        let sent = basic("my:id", "a b%ä").unwrap();
        let (_, text) = sent.to_str().unwrap().split_once(' ').unwrap();
        let text = String::from_utf8(STANDARD.decode(text).unwrap()).unwrap();
        assert_eq!(text, "my%3Aid:a+b%25%C3%A4");
    }
}
