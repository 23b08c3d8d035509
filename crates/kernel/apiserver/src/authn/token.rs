//! Service-account tokens: signed JWTs, bound to their account and, if asked for, to an object.
//!
//! A token is valid only in the workspace of its account, until it expires, and as long as the account (same UID) and
//! the object that it is bound to exist. If a user of a domain asked for it, it counts for as long as he does: who is
//! disabled keeps no way in by an account. Tokens are signed with ES256; the public keys are published as a JWKS under the
//! issuer's discovery document, so that others can verify them without asking. One key signs; keys that signed before
//! it verify until the last of their tokens has expired.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use fairway_kernel_authz::UserInfo;
use fairway_kernel_tenancy::ClusterId;
use fairway_kernel_tenancy::names::extra;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use serde_json::{Value, json};

use super::proven::Proven;
use crate::kernel::Kernel;
use crate::key::ROOT_CLUSTER;

/// Seconds that a token lives if nobody asks for anything else.
pub const DEFAULT_LIFETIME: i64 = 3_600;
/// The shortest and the longest life that a token may be asked for.
pub const LIFETIMES: std::ops::RangeInclusive<i64> = 600..=(1 << 32);
/// Longest token that is looked at.
const MAX_TOKEN: usize = 16 * 1024;

/// Expiries are remembered by the day, so that remembering is rare.
const DAY: i64 = 86_400;

/// Signs and verifies.
pub struct Tokens {
    keys: ArcSwap<Keys>,
    issuer: String,
    jwks_uri: String,
    random: SystemRandom,
    /// The key that signs, and when the last of its tokens expires at the latest.
    longest: Mutex<(String, i64)>,
    on_longer: OnceLock<OnLonger>,
}

/// Told, before a token is issued that lives longer than all before it, the id of its key and a time after which none of that
/// key's tokens is valid. If it fails, the token is not issued.
pub type OnLonger = Box<dyn Fn(&str, i64) -> Result<(), String> + Send + Sync>;

struct Keys {
    signing: EcdsaKeyPair,
    /// Those that verify; the first is the one that signs.
    verifying: Vec<PublicKey>,
    /// What they have verified.
    proven: Proven,
}

/// A key that verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// How tokens name it: the digest of its point.
    pub id: String,
    /// An uncompressed point of P-256.
    pub point: Vec<u8>,
}

impl PublicKey {
    /// From an uncompressed point.
    pub fn new(point: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, point);
        Self {
            id: B64.encode(digest.as_ref()),
            point: point.to_vec(),
        }
    }

    /// Of a PKCS#8 key.
    pub fn of(pkcs8: &[u8]) -> Result<Self, String> {
        Ok(Self::new(key_pair(pkcs8)?.public_key().as_ref()))
    }
}

fn key_pair(pkcs8: &[u8]) -> Result<EcdsaKeyPair, String> {
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &SystemRandom::new())
        .map_err(|e| format!("the service-account signing key cannot be used: {e}"))
}

impl Keys {
    fn new(pkcs8: &[u8], retired: &[PublicKey]) -> Result<Self, String> {
        let signing = key_pair(pkcs8)?;
        let own = PublicKey::new(signing.public_key().as_ref());
        let mut verifying = vec![own];
        for key in retired {
            if !verifying.contains(key) {
                verifying.push(key.clone());
            }
        }
        Ok(Self {
            signing,
            verifying,
            proven: Proven::default(),
        })
    }

    /// The claims of a token with the signature of one of the keys.
    fn claims(&self, token: &str) -> Result<Value, TokenError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        let json = |part: &str| -> Result<Value, TokenError> {
            let bytes = B64.decode(part).map_err(|_| TokenError::Malformed)?;
            serde_json::from_slice(&bytes).map_err(|_| TokenError::Malformed)
        };
        let header = json(header)?;
        let key = self.verifying.iter().find(|key| header["kid"] == key.id.as_str());
        let Some(key) = key.filter(|_| header["alg"] == "ES256") else {
            return Err(TokenError::Signature);
        };
        let signature = B64.decode(signature).map_err(|_| TokenError::Malformed)?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &key.point)
            .verify(signed.as_bytes(), &signature)
            .map_err(|_| TokenError::Signature)?;
        json(claims)
    }

    fn signing_id(&self) -> &str {
        self.verifying.first().map_or("", |key| &key.id)
    }
}

/// Why a token is not accepted; for the log, not for the client.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TokenError {
    /// Not a JWT of ours.
    #[error("the token is malformed")]
    Malformed,
    /// Signed by somebody else.
    #[error("the token's signature is not ours")]
    Signature,
    /// Issued by somebody else.
    #[error("the token was issued by {0:?}")]
    Issuer(String),
    /// For somebody else.
    #[error("the token's audiences are {0:?}")]
    Audience(Vec<String>),
    /// Too late, or too early.
    #[error("the token has expired or is not valid yet")]
    Time,
    /// An account of another workspace.
    #[error("the token belongs to a service account of another workspace")]
    Workspace,
    /// The account or the bound object is gone.
    #[error("what the token is bound to does not exist any more: {0}")]
    Unbound(String),
    /// The user who asked for it is gone or disabled.
    #[error("who asked for the token counts no longer: {0}")]
    Requester(String),
}

/// Which workspace an account is of, among the claims of its tokens. Tokens of the root workspace are as Kubernetes' own.
const CLUSTER_CLAIM: &str = "clusterName";
/// Who asked for a token, among its claims, if it counts for as long as he does.
const REQUESTER_CLAIM: &str = "requestedBy";

/// The workspace that a token says its account is of, unverified; nothing for tokens of the root workspace and of others.
pub(crate) fn claimed_home(token: &str) -> Option<ClusterId> {
    let claims = unverified(token)?;
    ClusterId::parse(claims["kubernetes.io"][CLUSTER_CLAIM].as_str()?).ok()
}

/// Whether the time of a token is over, as it says itself.
pub(crate) fn has_expired(token: &str, now: i64) -> bool {
    unverified(token).is_some_and(|claims| claims["exp"].as_i64().is_some_and(|end| end <= now))
}

fn unverified(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let claims = B64.decode(claims).ok()?;
    serde_json::from_slice(&claims).ok()
}

/// A token that was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The account.
    pub user: UserInfo,
    /// Which of the wanted audiences the token is for.
    pub audiences: Vec<String>,
}

/// What a new token shall say.
#[derive(Clone, Debug)]
pub struct Grant<'a> {
    /// Workspace of the account.
    pub cluster: &'a str,
    /// Namespace of the account.
    pub namespace: &'a str,
    /// Its name.
    pub account: &'a str,
    /// Its UID.
    pub uid: &'a str,
    /// For whom; empty: for this API.
    pub audiences: Vec<String>,
    /// Now, in Unix seconds.
    pub now: i64,
    /// Seconds to live.
    pub lifetime: i64,
    /// Kind, name and UID of the object that it is bound to.
    pub bound: Option<(&'a str, &'a str, &'a str)>,
    /// The user whom it stands and falls with.
    pub requester: Option<&'a str>,
    /// A fresh id.
    pub id: &'a str,
}

impl Tokens {
    /// From a PKCS#8 key.
    pub fn new(pkcs8: &[u8], issuer: impl Into<String>, jwks_uri: impl Into<String>) -> Result<Self, String> {
        Ok(Self {
            keys: ArcSwap::from_pointee(Keys::new(pkcs8, &[])?),
            issuer: issuer.into(),
            jwks_uri: jwks_uri.into(),
            random: SystemRandom::new(),
            longest: Mutex::default(),
            on_longer: OnceLock::new(),
        })
    }

    /// From now on this key (PKCS#8) signs, and it and the retired ones verify.
    pub fn replace_keys(&self, pkcs8: &[u8], retired: &[PublicKey]) -> Result<(), String> {
        self.keys.store(Arc::new(Keys::new(pkcs8, retired)?));
        Ok(())
    }

    /// Sets who remembers how long tokens live, once.
    pub fn remember_with(&self, on_longer: OnLonger) {
        let _ = self.on_longer.set(on_longer);
    }

    /// The key that signs, and a time after which none of its tokens issued by this process is valid.
    pub fn longest(&self) -> (String, i64) {
        self.longest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn remember(&self, key: &str, expiry: i64) -> Result<(), String> {
        let mut longest = self.longest.lock().unwrap_or_else(PoisonError::into_inner);
        if longest.0 == key && expiry <= longest.1 {
            return Ok(());
        }
        let until = (expiry / DAY + 1).saturating_mul(DAY);
        if let Some(on_longer) = self.on_longer.get() {
            on_longer(key, until)?;
        }
        *longest = (key.to_owned(), until);
        Ok(())
    }

    /// A new key, as PKCS#8.
    pub fn generate_key() -> Result<Vec<u8>, String> {
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map(|document| document.as_ref().to_vec())
            .map_err(|e| format!("no signing key could be made: {e}"))
    }

    /// The issuer, which is also the audience of tokens for this API.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Makes a token.
    pub fn issue(&self, grant: &Grant<'_>) -> Result<String, String> {
        let mut kubernetes = json!({
            "namespace": grant.namespace,
            "serviceaccount": {"name": grant.account, "uid": grant.uid},
        });
        if grant.cluster != ROOT_CLUSTER {
            kubernetes[CLUSTER_CLAIM] = grant.cluster.into();
        }
        if let Some((kind, name, uid)) = grant.bound {
            kubernetes[kind.to_lowercase()] = json!({"name": name, "uid": uid});
        }
        if let Some(requester) = grant.requester {
            kubernetes[REQUESTER_CLAIM] = requester.into();
        }
        let audiences = if grant.audiences.is_empty() {
            vec![self.issuer.clone()]
        } else {
            grant.audiences.clone()
        };
        let claims = json!({
            "aud": audiences,
            "exp": grant.now + grant.lifetime,
            "iat": grant.now,
            "nbf": grant.now,
            "iss": self.issuer,
            "jti": grant.id,
            "sub": format!("system:serviceaccount:{}:{}", grant.namespace, grant.account),
            "kubernetes.io": kubernetes,
        });
        let keys = self.keys.load();
        self.remember(keys.signing_id(), grant.now.saturating_add(grant.lifetime))?;
        let header = json!({"alg": "ES256", "kid": keys.signing_id(), "typ": "JWT"});
        let signed = format!(
            "{}.{}",
            B64.encode(header.to_string()),
            B64.encode(claims.to_string())
        );
        let signature = keys
            .signing
            .sign(&self.random, signed.as_bytes())
            .map_err(|e| format!("the token could not be signed: {e}"))?;
        Ok(format!("{signed}.{}", B64.encode(signature.as_ref())))
    }

    /// The claims of a token with our signature, at this time. What it is bound to is not looked at.
    pub fn verify(&self, token: &str, now: i64) -> Result<Arc<Value>, TokenError> {
        if token.len() > MAX_TOKEN {
            return Err(TokenError::Malformed);
        }
        let keys = self.keys.load();
        let claims = keys.proven.get_or(token, || keys.claims(token))?;
        let issuer = claims["iss"].as_str().unwrap_or("");
        if issuer != self.issuer {
            return Err(TokenError::Issuer(issuer.to_owned()));
        }
        let time = |claim: &str| claims[claim].as_i64().ok_or(TokenError::Malformed);
        if now >= time("exp")? || now < time("nbf")? - 10 {
            return Err(TokenError::Time);
        }
        Ok(claims)
    }

    /// Accepts a token for one of these audiences (none: for this API).
    pub fn authenticate(
        &self,
        kernel: &Kernel,
        cluster: &str,
        token: &str,
        wanted: &[String],
    ) -> Result<Verified, TokenError> {
        let claims = self.verify(token, kernel.clock.unix())?;
        let home = claims["kubernetes.io"][CLUSTER_CLAIM]
            .as_str()
            .unwrap_or(ROOT_CLUSTER);
        if home != cluster {
            return Err(TokenError::Workspace);
        }
        let given: Vec<String> = claims["aud"]
            .as_array()
            .map(|a| a.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
            .unwrap_or_default();
        let own = [self.issuer.clone()];
        let wanted = if wanted.is_empty() { &own } else { wanted };
        let audiences: Vec<String> = wanted.iter().filter(|w| given.contains(w)).cloned().collect();
        if audiences.is_empty() {
            return Err(TokenError::Audience(given));
        }
        Ok(Verified {
            user: self.bound_user(kernel, cluster, &claims)?,
            audiences,
        })
    }

    fn bound_user(&self, kernel: &Kernel, cluster: &str, claims: &Value) -> Result<UserInfo, TokenError> {
        let private = &claims["kubernetes.io"];
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let namespace = text(&private["namespace"]);
        let account = text(&private["serviceaccount"]["name"]);
        let uid = text(&private["serviceaccount"]["uid"]);
        must_exist(kernel, cluster, "serviceaccounts", &namespace, &account, &uid)?;
        let mut user = UserInfo::new(
            format!("system:serviceaccount:{namespace}:{account}"),
            [
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ],
        );
        user.uid = uid;
        if cluster != ROOT_CLUSTER {
            user.extra
                .insert(extra::CLUSTER_NAME.to_owned(), vec![cluster.to_owned()]);
        }
        for (claim, resource, key) in [
            ("pod", "pods", "pod-name"),
            ("secret", "secrets", "secret-name"),
            ("node", "nodes", "node-name"),
        ] {
            let bound = &private[claim];
            if bound.is_object() {
                let (name, uid) = (text(&bound["name"]), text(&bound["uid"]));
                let namespace = if claim == "node" { "" } else { namespace.as_str() };
                must_exist(kernel, cluster, resource, namespace, &name, &uid)?;
                user.extra
                    .insert(format!("authentication.kubernetes.io/{key}"), vec![name]);
            }
        }
        if let Some(requester) = private[REQUESTER_CLAIM].as_str() {
            kernel.guests.holds(requester).map_err(TokenError::Requester)?;
            user.extra
                .insert(extra::REQUESTED_BY.to_owned(), vec![requester.to_owned()]);
        }
        let id = text(&claims["jti"]);
        if !id.is_empty() {
            user.extra.insert(
                "authentication.kubernetes.io/credential-id".to_owned(),
                vec![format!("JTI={id}")],
            );
        }
        Ok(user)
    }

    /// The public keys, as a JWKS; the one that signs comes first.
    pub fn jwks(&self) -> Value {
        let jwk = |key: &PublicKey| {
            // An uncompressed point: 0x04, x, y.
            let coordinates = key.point.get(1..).unwrap_or_default();
            let (x, y) = coordinates.split_at(coordinates.len() / 2);
            json!({
                "use": "sig", "kty": "EC", "kid": key.id, "crv": "P-256", "alg": "ES256",
                "x": B64.encode(x), "y": B64.encode(y),
            })
        };
        json!({"keys": self.keys.load().verifying.iter().map(jwk).collect::<Vec<_>>()})
    }

    /// The issuer's discovery document.
    pub fn discovery(&self) -> Value {
        json!({
            "issuer": self.issuer,
            "jwks_uri": self.jwks_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }
}

fn must_exist(
    kernel: &Kernel,
    cluster: &str,
    resource: &str,
    namespace: &str,
    name: &str,
    uid: &str,
) -> Result<(), TokenError> {
    let found = (kernel.storage.cache).built_in("", resource, cluster, namespace, name);
    let same = found
        .and_then(|object| object.value().ok())
        .is_some_and(|object| {
            object["metadata"]["uid"] == uid && object["metadata"]["deletionTimestamp"].is_null()
        });
    if same {
        Ok(())
    } else {
        Err(TokenError::Unbound(format!("{resource} {namespace}/{name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> Tokens {
        Tokens::new(
            &Tokens::generate_key().unwrap(),
            "https://issuer",
            "https://issuer/jwks",
        )
        .unwrap()
    }

    fn tokens_of_somebody_else() -> Tokens {
        tokens()
    }

    fn grant<'a>() -> Grant<'a> {
        Grant {
            cluster: ROOT_CLUSTER,
            namespace: "n",
            account: "a",
            uid: "u",
            audiences: Vec::new(),
            now: 1_000,
            lifetime: 600,
            bound: None,
            requester: None,
            id: "i",
        }
    }

    #[test]
    fn a_token_is_good_until_it_expires() {
        let tokens = tokens();
        let token = tokens.issue(&grant()).unwrap();
        assert_eq!(
            tokens.verify(&token, 1_599).unwrap()["sub"],
            "system:serviceaccount:n:a"
        );
        assert_eq!(tokens.verify(&token, 1_600), Err(TokenError::Time));
        assert_eq!(tokens.verify(&token, 900), Err(TokenError::Time));
    }

    #[test]
    fn a_retired_key_verifies_and_does_not_sign() {
        let (old, new) = (Tokens::generate_key().unwrap(), Tokens::generate_key().unwrap());
        let tokens = Tokens::new(&old, "https://issuer", "https://issuer/jwks").unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&told);
        tokens.remember_with(Box::new(move |key, until| {
            record.lock().unwrap().push((key.to_owned(), until));
            Ok(())
        }));
        let before = tokens.issue(&grant()).unwrap();
        tokens.issue(&grant()).unwrap();
        let retired = PublicKey::of(&old).unwrap();
        tokens.replace_keys(&new, std::slice::from_ref(&retired)).unwrap();
        let after = tokens.issue(&grant()).unwrap();
        let fresh = PublicKey::of(&new).unwrap();
        // Once per key and day, and before the token is given out.
        assert_eq!(
            *told.lock().unwrap(),
            [(retired.id.clone(), DAY), (fresh.id.clone(), DAY)]
        );
        assert!(tokens.verify(&before, 1_000).is_ok() && tokens.verify(&after, 1_000).is_ok());
        let jwks = tokens.jwks();
        let ids: Vec<&str> = jwks["keys"]
            .as_array()
            .unwrap()
            .iter()
            .map(|k| k["kid"].as_str().unwrap())
            .collect();
        assert_eq!(ids, [fresh.id.as_str(), retired.id.as_str()]);
        tokens.replace_keys(&new, &[]).unwrap();
        assert_eq!(tokens.verify(&before, 1_000), Err(TokenError::Signature));
        assert!(tokens.verify(&after, 1_000).is_ok());
    }

    #[test]
    fn a_token_that_cannot_be_remembered_is_not_issued() {
        let tokens = tokens();
        tokens.remember_with(Box::new(|_, _| Err("no space".to_owned())));
        assert!(tokens.issue(&grant()).is_err());
    }

    #[test]
    fn a_token_that_was_tampered_with_is_refused() {
        let tokens = tokens();
        let token = tokens.issue(&grant()).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let (header, _) = signed.split_once('.').unwrap();
        let forged = format!(
            "{header}.{}.{signature}",
            B64.encode("{\"iss\":\"https://issuer\"}")
        );
        assert_eq!(tokens.verify(&forged, 1_000), Err(TokenError::Signature));
        let none = format!("{}.{}.", B64.encode("{\"alg\":\"none\"}"), B64.encode("{}"));
        assert_eq!(tokens.verify(&none, 1_000), Err(TokenError::Signature));
        let foreign = tokens_of_somebody_else();
        assert_eq!(foreign.verify(&token, 1_000), Err(TokenError::Signature));
        assert_eq!(tokens.verify("x", 1_000), Err(TokenError::Malformed));
    }
}
