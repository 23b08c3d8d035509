//! The keys of an issuer: found by OpenID Connect discovery or at a known place, refreshed, and never asked for twice at once.
//!
//! Keys are read when the first guard needs them, again when a token names a key that is not among them, and every so often.
//! Between two reads there is a pause, which grows while the server does not answer: strangers with made-up tokens must not be
//! able to make us call somebody. Keys that were read once are kept while their server is away.
//!
//! Realms of this installation are not called at all: what they publish is known, and so is whether a token's user and session
//! still count, which is looked at with every request, however often the token was verified before.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use fairway_gateway_policy::auth::{JwtMethod, KeySource};
use fairway_jose::{Expected, Key, Unverified, has_key_for, is_signed, judge};
use fairway_outbound::Message;
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::Value;
use tracing::{info, warn};

use crate::lock;
use crate::outside::{Outside, Realms, Web};
use crate::tokens::{Token, Tokens};

/// Between two reads, if the first went well.
const PAUSE: Duration = Duration::from_secs(10);
/// Between two reads at most, while the server does not answer.
const MAX_PAUSE: Duration = Duration::from_secs(300);
/// How often keys are read without anybody asking. Keys that were withdrawn stop counting then.
const REFRESH: Duration = Duration::from_secs(600);
/// The longest document.
const MAX_DOCUMENT: usize = 256 * 1024;
/// How far an issuer's clock may be ahead, as upstream has it.
const LEEWAY: i64 = 300;

/// An issuer, with what it has published and what was verified by it.
pub struct KeyServer {
    method: JwtMethod,
    web: Arc<dyn Web>,
    realms: Arc<dyn Realms>,
    published: ArcSwapOption<Published>,
    generation: AtomicU64,
    tokens: Tokens,
    /// Held while it is asked: whoever comes meanwhile waits for the same answer.
    asking: tokio::sync::Mutex<Asking>,
    trouble: Mutex<Option<String>>,
}

struct Published {
    keys: Vec<Key>,
    /// Kinds of keys that it has and nobody here can verify with.
    skipped: Vec<String>,
    userinfo: Option<String>,
    generation: u64,
}

/// What an issuer says.
struct Said {
    keys: Vec<Key>,
    skipped: Vec<String>,
    userinfo: Option<String>,
}

#[derive(Default)]
struct Asking {
    last: Option<Instant>,
    failures: u32,
}

impl Asking {
    fn may_ask(&self) -> bool {
        let pause = PAUSE.saturating_mul(1 << self.failures.min(5)).min(MAX_PAUSE);
        self.last.is_none_or(|at| at.elapsed() >= pause)
    }
}

/// What a token comes to.
pub(crate) enum Proof {
    Good(Arc<Token>),
    /// Not, and why.
    Bad(String),
    /// The keys have to be read first.
    Ask,
}

impl KeyServer {
    pub(crate) fn start(method: JwtMethod, outside: &Outside, max_tokens: usize) -> Arc<Self> {
        let server = Arc::new(Self {
            method,
            web: outside.web.clone(),
            realms: outside.realms.clone(),
            published: ArcSwapOption::empty(),
            generation: AtomicU64::new(0),
            tokens: Tokens::new(max_tokens),
            asking: tokio::sync::Mutex::default(),
            trouble: Mutex::default(),
        });
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(keep_fresh(Arc::downgrade(&server)));
        }
        server
    }

    /// Judges a token by what is known. `now` is seconds since 1970.
    pub(crate) fn verify(&self, token: &str, now: i64) -> Proof {
        match self.verify_alone(token, now) {
            Proof::Good(token) => match token.ended(now) {
                Some(why) => Proof::Bad(why.to_owned()),
                None => Proof::Good(token),
            },
            other => other,
        }
    }

    /// By the keys and the token alone.
    fn verify_alone(&self, token: &str, now: i64) -> Proof {
        let Some(published) = self.published.load_full() else {
            return Proof::Ask;
        };
        if let Some(known) = self.tokens.find(token, now, published.generation) {
            return Proof::Good(known);
        }
        let unverified = match Unverified::parse(token) {
            Ok(unverified) => unverified,
            Err(error) => return Proof::Bad(error.to_string()),
        };
        if !has_key_for(&unverified, &published.keys) {
            return Proof::Ask;
        }
        if !is_signed(&unverified, &published.keys) {
            // The issuer may have another key under the same name, or give its keys no names.
            return match self.may_ask() {
                true => Proof::Ask,
                false => Proof::Bad("the token's signature is wrong".to_owned()),
            };
        }
        let expected = Expected {
            issuer: match &self.method.keys {
                KeySource::Issuer(issuer) => Some(issuer),
                KeySource::Jwks(_) => None,
            },
            audience: None,
            leeway: LEEWAY,
        };
        match judge(&unverified.claims, expected, now) {
            Err(error) => Proof::Bad(error.to_string()),
            Ok(expires) => {
                let verified = Arc::new(Token::new(unverified.claims, expires, &self.realms));
                self.tokens
                    .keep(token, Arc::clone(&verified), now, published.generation);
                Proof::Good(verified)
            }
        }
    }

    /// Judges a token after reading the keys, if that was not done a moment ago.
    pub(crate) async fn verify_later(&self, token: &str, now: i64) -> Result<Arc<Token>, String> {
        // What cannot be a token of this issuer is not worth a call.
        let unverified = Unverified::parse(token).map_err(|error| error.to_string())?;
        if let KeySource::Issuer(issuer) = &self.method.keys
            && unverified.issuer() != issuer
        {
            return Err(format!("the token's issuer is not {issuer:?}"));
        }
        self.refresh(false).await;
        match self.verify(token, now) {
            Proof::Good(token) => Ok(token),
            Proof::Bad(why) => Err(why),
            Proof::Ask if self.published.load().is_none() => {
                Err("the issuer's keys could not be read yet".to_owned())
            }
            Proof::Ask => {
                let published = self.published.load();
                let skipped = published.as_ref().map_or(&[][..], |published| &published.skipped);
                Err(format!("no key of the issuer fits the token{}", without(skipped)))
            }
        }
    }

    /// Where the issuer tells about users.
    pub(crate) async fn userinfo(&self) -> Option<String> {
        if self.published.load().is_none() {
            self.refresh(false).await;
        }
        self.published.load().as_ref()?.userinfo.clone()
    }

    /// Why keys could not be read the last time, if they could not.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    pub(crate) fn sweep(&self, now: u128) {
        self.tokens
            .sweep(i64::try_from(now / 1_000_000_000).unwrap_or(i64::MAX));
    }

    /// Whether the last read is long enough ago. Who finds somebody reading waits for what comes of it.
    fn may_ask(&self) -> bool {
        let asking = self.asking.try_lock();
        asking.map_or(true, |asking| asking.may_ask())
    }

    async fn refresh(&self, due: bool) {
        let mut asking = self.asking.lock().await;
        if !due && !self.is_own() && !asking.may_ask() {
            return;
        }
        match self.read().await {
            Ok(Said {
                keys,
                skipped,
                userinfo,
            }) => {
                asking.failures = 0;
                *lock(&self.trouble) = None;
                let known = self.published.load();
                let is_new = known.as_ref().is_none_or(|known| {
                    (&known.keys, &known.skipped, &known.userinfo) != (&keys, &skipped, &userinfo)
                });
                if is_new {
                    info!(
                        issuer = self.place(),
                        keys = keys.len(),
                        skipped = skipped.join(", "),
                        "an issuer's keys were read"
                    );
                    let generation = self.generation.fetch_add(1, Ordering::Relaxed) + 1;
                    self.published.store(Some(Arc::new(Published {
                        keys,
                        skipped,
                        userinfo,
                        generation,
                    })));
                }
            }
            Err(why) => {
                asking.failures = asking.failures.saturating_add(1);
                warn!(issuer = self.place(), "an issuer's keys were not read: {why}");
                *lock(&self.trouble) = Some(format!("the keys of {} cannot be read: {why}", self.place()));
            }
        }
        asking.last = Some(Instant::now());
    }

    /// Whether a realm of this installation is meant, of which nothing has to be fetched.
    fn is_own(&self) -> bool {
        let place = match &self.method.keys {
            KeySource::Jwks(url) => url.clone(),
            KeySource::Issuer(issuer) => discovery(issuer),
        };
        self.realms.document(&place).is_some()
    }

    fn place(&self) -> &str {
        match &self.method.keys {
            KeySource::Issuer(place) | KeySource::Jwks(place) => place,
        }
    }

    async fn read(&self) -> Result<Said, String> {
        let (jwks, userinfo) = match &self.method.keys {
            KeySource::Jwks(url) => (url.clone(), None),
            KeySource::Issuer(issuer) => {
                let document = self.document(&discovery(issuer)).await?;
                let named = document["issuer"].as_str().unwrap_or("");
                if named != issuer {
                    return Err(format!("its configuration says that it is {named:?}"));
                }
                let place = document["jwks_uri"]
                    .as_str()
                    .ok_or("its configuration has no jwks_uri")?;
                let userinfo = document["userinfo_endpoint"].as_str().map(str::to_owned);
                (place.to_owned(), userinfo)
            }
        };
        let document = self.document(&jwks).await?;
        let keys = fairway_jose::keys(&document).map_err(|error| format!("{jwks}: {error}"))?;
        let skipped = fairway_jose::skipped(&document);
        // A realm of ours has no keys before somebody signs in, and that is no trouble.
        match keys.is_empty() && !self.is_own() {
            true => Err(format!(
                "{jwks} has no key that signatures can be verified with{}",
                without(&skipped)
            )),
            false => Ok(Said {
                keys,
                skipped,
                userinfo,
            }),
        }
    }

    async fn document(&self, url: &str) -> Result<Value, String> {
        if let Some(document) = self.realms.document(url) {
            return Ok(document);
        }
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let message = Message {
            method: Method::GET,
            url: url.to_owned(),
            headers,
            body: bytes::Bytes::new(),
            timeout: self.method.timeout,
            max_reply: MAX_DOCUMENT,
        };
        let reply = self
            .web
            .send(message)
            .await
            .map_err(|why| format!("{url}: {why}"))?;
        if reply.status != 200 {
            return Err(format!("{url} answered {}", reply.status));
        }
        serde_json::from_slice(&reply.body).map_err(|_| format!("{url} did not answer with JSON"))
    }
}

/// What to add about keys that are not supported.
fn without(skipped: &[String]) -> String {
    match skipped {
        [] => String::new(),
        kinds => format!("; it has keys that are not supported: {}", kinds.join(", ")),
    }
}

/// Where an issuer says what it can do.
fn discovery(issuer: &str) -> String {
    format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    )
}

/// Reads the keys now and then, as long as somebody needs them.
async fn keep_fresh(server: Weak<KeyServer>) {
    loop {
        let wait = {
            let Some(server) = server.upgrade() else {
                return;
            };
            server.refresh(true).await;
            let ttl = server.method.ttl;
            let failures = server.asking.lock().await.failures;
            match failures {
                0 if ttl.is_zero() => REFRESH,
                0 => REFRESH.min(ttl.max(PAUSE)),
                failures => PAUSE.saturating_mul(1 << failures.min(5)).min(MAX_PAUSE),
            }
        };
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests;
