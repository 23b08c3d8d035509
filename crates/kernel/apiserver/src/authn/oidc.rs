//! Tokens of OIDC issuers: who is trusted ([`config`]), whether a token is genuine (`fairway-jose`), and whom it stands for
//! ([`mapping`]).
//!
//! An issuer's keys are read when it is configured and again when a token names a key that is not among them, but not more
//! often than every [`REFRESH`]: strangers must not be able to make us call somebody. The server starts without its
//! issuers; their tokens are refused until they have answered.

pub mod config;
mod fetch;
pub mod mapping;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use fairway_jose::{Key, Unverified, has_key_for, is_signed};
use fairway_kernel_authz::UserInfo;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;
use tracing::{info, warn};

use config::Authenticator;

/// Between two reads of an issuer's keys.
const REFRESH: Duration = Duration::from_secs(10);
/// How far an issuer's clock may be ahead, as upstream has it.
const EARLY: i64 = 300;

/// The trusted issuers.
#[derive(Default)]
pub struct Issuers(ArcSwap<Vec<Arc<Issuer>>>);

struct Issuer {
    authenticator: Authenticator,
    client: TlsConnector,
    keys: ArcSwapOption<Vec<Key>>,
    /// When they were last asked for, successfully or not. Held while they are.
    asked: Mutex<Option<Instant>>,
}

impl Issuers {
    /// Trusts these from now on, and nobody else. Their keys are read in the background.
    pub fn replace(&self, authenticators: Vec<Authenticator>) -> Result<(), String> {
        let before = self.0.load_full();
        let mut issuers = Vec::new();
        for authenticator in authenticators {
            // An issuer that was trusted before, and may be down just now, keeps its keys.
            let same = before
                .iter()
                .find(|i| i.authenticator.is_same_issuer(&authenticator));
            issuers.push(Arc::new(Issuer {
                client: fetch::client(authenticator.authority.as_deref())?,
                authenticator,
                keys: ArcSwapOption::new(same.and_then(|issuer| issuer.keys.load_full())),
                asked: Mutex::new(None),
            }));
        }
        for issuer in &issuers {
            tokio::spawn(initialise(Arc::downgrade(issuer)));
        }
        self.0.store(Arc::new(issuers));
        Ok(())
    }

    /// Who sent a token; `None` if no trusted issuer claims to have made it.
    pub async fn authenticate(&self, token: &str, now: i64) -> Option<Result<UserInfo, String>> {
        let issuers = self.0.load_full();
        if issuers.is_empty() {
            return None;
        }
        let token = Unverified::parse(token).ok()?;
        let issuer = issuers
            .iter()
            .find(|i| i.authenticator.issuer == token.issuer())?;
        Some(issuer.authenticate(&token, now).await)
    }
}

impl Issuer {
    async fn authenticate(&self, token: &Unverified<'_>, now: i64) -> Result<UserInfo, String> {
        let mut keys = self.keys.load_full();
        if keys.as_ref().is_none_or(|keys| !has_key_for(token, keys)) {
            self.refresh().await;
            keys = self.keys.load_full();
        }
        let keys = keys.ok_or("oidc: authenticator not initialized")?;
        if !is_signed(token, &keys) {
            return Err("oidc: verify token: failed to verify signature".to_owned());
        }
        check_claims(&self.authenticator, &token.claims, now)?;
        mapping::user(&self.authenticator, &token.claims)
    }

    /// Reads the keys, unless that was done a moment ago. Whoever comes meanwhile waits for the same answer.
    async fn refresh(&self) {
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|at| at.elapsed() < REFRESH) {
            return;
        }
        match self.read_keys().await {
            Ok(keys) => {
                info!(
                    issuer = self.authenticator.issuer,
                    keys = keys.len(),
                    "an OIDC issuer's keys were read"
                );
                self.keys.store(Some(Arc::new(keys)));
            }
            Err(why) => warn!(
                issuer = self.authenticator.issuer,
                "an OIDC issuer's keys were not read: {why}"
            ),
        }
        *asked = Some(Instant::now());
    }

    async fn read_keys(&self) -> Result<Vec<Key>, String> {
        let issuer = &self.authenticator.issuer;
        let url = self.authenticator.discovery_url.clone().unwrap_or_else(|| {
            format!(
                "{}/.well-known/openid-configuration",
                issuer.trim_end_matches('/')
            )
        });
        let document = fetch::json(&self.client, &url).await?;
        let named = document["issuer"].as_str().unwrap_or("");
        if named != issuer {
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected {issuer:?} got {named:?}"
            ));
        }
        let place = document["jwks_uri"]
            .as_str()
            .ok_or("its discovery document has no jwks_uri")?;
        let jwks = fetch::json(&self.client, place).await?;
        fairway_jose::keys(&jwks).map_err(|_| format!("{place} has no list of keys"))
    }
}

/// Tries until the issuer has answered once, or is not trusted any more.
async fn initialise(issuer: std::sync::Weak<Issuer>) {
    loop {
        let Some(issuer) = issuer.upgrade() else { return };
        issuer.refresh().await;
        if issuer.keys.load().is_some() {
            return;
        }
        drop(issuer);
        tokio::time::sleep(REFRESH).await;
    }
}

/// For whom and when a token is valid.
fn check_claims(authenticator: &Authenticator, claims: &Value, now: i64) -> Result<(), String> {
    let given: Vec<&str> = match &claims["aud"] {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !authenticator
        .audiences
        .iter()
        .any(|a| given.contains(&a.as_str()))
    {
        return Err(format!(
            "oidc: verify token: oidc: expected audience in {:?} got {given:?}",
            authenticator.audiences
        ));
    }
    // Times may have fractions.
    let time = |claim: &str| claims[claim].as_f64();
    #[allow(
        clippy::cast_precision_loss,
        reason = "seconds since 1970 are exact in 53 bits"
    )]
    let now = now as f64;
    match time("exp") {
        Some(expiry) if now < expiry => {}
        _ => return Err("oidc: verify token: oidc: token is expired".to_owned()),
    }
    #[allow(clippy::cast_precision_loss, reason = "a small number")]
    let early = EARLY as f64;
    if time("nbf").is_some_and(|from| now + early < from) {
        return Err("oidc: verify token: oidc: current time before the nbf (not before) time".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_is_for_one_of_the_audiences_and_for_a_time() {
        let flags = config::Flags {
            issuer_url: "https://i".to_owned(),
            client_id: "me".to_owned(),
            ..config::Flags::default()
        };
        let authenticator = config::from_flags(&flags, "https://own").unwrap().remove(0);
        for (claims, expected) in [
            (json!({"aud": "me", "exp": 101}), ""),
            (json!({"aud": ["x", "me"], "exp": 100.5, "nbf": 400}), ""),
            (json!({"aud": "you", "exp": 101}), "expected audience"),
            (json!({"exp": 101}), "expected audience"),
            (json!({"aud": "me", "exp": 100}), "expired"),
            (json!({"aud": "me"}), "expired"),
            (json!({"aud": "me", "exp": "101"}), "expired"),
            (json!({"aud": "me", "exp": 999, "nbf": 401}), "before the nbf"),
        ] {
            let got = check_claims(&authenticator, &claims, 100)
                .err()
                .unwrap_or_default();
            assert_eq!(got.is_empty(), expected.is_empty(), "{claims}: {got}");
            assert!(got.contains(expected), "{claims}: {got}");
        }
    }

    #[tokio::test]
    async fn an_issuer_that_does_not_answer_is_asked_once_and_its_tokens_are_refused() {
        let flags = config::Flags {
            // Nothing listens there.
            issuer_url: "https://127.0.0.1:9".to_owned(),
            client_id: "me".to_owned(),
            ..config::Flags::default()
        };
        let issuers = Issuers::default();
        assert!(issuers.authenticate("a.b.c", 0).await.is_none());
        issuers
            .replace(config::from_flags(&flags, "https://own").unwrap())
            .unwrap();
        use base64::Engine as _;
        let part = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
        let token = |issuer: &str| {
            format!(
                "{}.{}.{}",
                part("{\"alg\":\"RS256\"}"),
                part(&format!("{{\"iss\":\"{issuer}\"}}")),
                part("s")
            )
        };
        let answer = issuers.authenticate(&token("https://127.0.0.1:9"), 0).await;
        assert_eq!(
            answer.unwrap().unwrap_err(),
            "oidc: authenticator not initialized"
        );
        assert!(issuers.authenticate(&token("https://other"), 0).await.is_none());
    }
}
