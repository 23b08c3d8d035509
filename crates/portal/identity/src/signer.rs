//! The keys of a realm: made when the first token is, replaced when they are old, and kept for the next token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use fairway_api::identity::CREDENTIAL;
use fairway_controller::Failure;
use fairway_portal_realm::directory::REALM_OBJECT;
use fairway_portal_realm::keys::{self, PUBLISHED, PublicKey};
use fairway_portal_realm::time;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

use crate::objects::Objects;
use crate::random;
use crate::realms::Realms;

/// Signers that are kept; then they are read again.
const KEEP: usize = 4_096;
/// How often a write is tried again because somebody else was quicker.
const ATTEMPTS: usize = 5;

/// Signs for a realm.
pub(crate) struct Signer {
    id: String,
    pair: EcdsaKeyPair,
    /// Authenticates refresh tokens.
    pub(crate) refresh_key: Vec<u8>,
}

impl Signer {
    /// A token.
    pub(crate) fn sign(&self, typ: &str, claims: &Value) -> Result<String, Failure> {
        let header = json!({"alg": "ES256", "kid": self.id, "typ": typ});
        let signed = format!(
            "{}.{}",
            B64.encode(header.to_string()),
            B64.encode(claims.to_string())
        );
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = signature.map_err(|_| Failure::NotYet("a token could not be signed".to_owned()))?;
        Ok(format!("{signed}.{}", B64.encode(signature)))
    }
}

/// The signers of realms that were used lately.
#[derive(Default)]
pub(crate) struct Signers(Mutex<HashMap<String, Arc<Signer>>>);

impl Signers {
    fn kept(&self, realm: &str, id: &str) -> Option<Arc<Signer>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(realm).filter(|signer| signer.id == id).cloned()
    }

    fn keep(&self, realm: &str, signer: &Arc<Signer>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEEP {
            kept.clear();
        }
        kept.insert(realm.to_owned(), Arc::clone(signer));
    }

    /// The signer of a realm. Its keys are made if there are none, or if they are old.
    pub(crate) async fn of(
        &self,
        realms: &Realms,
        objects: &Objects,
        realm: &str,
        now: i64,
    ) -> Result<Arc<Signer>, Failure> {
        let (cluster, current) = realms.read(|all| {
            let current = keys::signing(all.keys(realm), now).map(|key| key.public.id.clone());
            (all.cluster(realm).map(str::to_owned), current)
        });
        let cluster = cluster.ok_or_else(|| Failure::NotYet(format!("there is no realm {realm}")))?;
        if let Some(kept) = current.and_then(|id| self.kept(realm, &id)) {
            return Ok(kept);
        }
        for _ in 0..ATTEMPTS {
            let read = objects.get(&cluster, CREDENTIAL, REALM_OBJECT).await?;
            if let Some(signer) = read.as_ref().and_then(|it| signer_in(it, now)) {
                let signer = Arc::new(signer);
                self.keep(realm, &signer);
                return Ok(signer);
            }
            make(objects, &cluster, read.as_ref(), now).await?;
        }
        Err(Failure::NotYet(format!(
            "the keys of the realm {realm} change too often; try again"
        )))
    }
}

fn signer_in(credential: &Value, now: i64) -> Option<Signer> {
    let known = keys::read(credential);
    let id = &keys::signing(&known, now)?.public.id;
    let entry = credential
        .pointer("/spec/keys")?
        .as_array()?
        .iter()
        .find(|it| it["id"] == id.as_str())?;
    let pkcs8 = STANDARD.decode(entry["privateKey"].as_str()?).ok()?;
    let pair =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8, &SystemRandom::new()).ok()?;
    let refresh_key = STANDARD
        .decode(credential.pointer("/spec/refreshKey")?.as_str()?)
        .ok()?;
    (refresh_key.len() >= 32).then(|| Signer {
        id: id.clone(),
        pair,
        refresh_key,
    })
}

/// Makes a key beside those that there are. Somebody else may be quicker, which is as good.
pub(crate) async fn make(
    objects: &Objects,
    cluster: &str,
    read: Option<&Value>,
    now: i64,
) -> Result<(), Failure> {
    let failed = |what: &str| Failure::NotYet(format!("{what} could not be made"));
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
        .map_err(|_| failed("a signing key"))?;
    let pair = EcdsaKeyPair::from_pkcs8(
        &ECDSA_P256_SHA256_FIXED_SIGNING,
        pkcs8.as_ref(),
        &SystemRandom::new(),
    );
    let pair = pair.map_err(|_| failed("a signing key"))?;
    let point = pair.public_key().as_ref();
    let public = PublicKey::new(point).ok_or_else(|| failed("a signing key"))?;
    let mut all = vec![json!({
        "id": public.id, "publicKey": STANDARD.encode(point), "privateKey": STANDARD.encode(pkcs8.as_ref()),
        "createdAt": time::write(now),
    })];
    let before = read.and_then(|it| it.pointer("/spec/keys")?.as_array());
    for key in before.map(Vec::as_slice).unwrap_or_default() {
        let mut key = key.clone();
        let retired = key["retiredAt"].as_str().and_then(time::read);
        if retired.is_some_and(|at| now >= at + PUBLISHED) {
            continue;
        }
        if retired.is_none() {
            key["retiredAt"] = json!(time::write(now));
        }
        all.push(key);
    }
    let refresh = read.and_then(|it| it.pointer("/spec/refreshKey")?.as_str());
    let refresh = match refresh {
        Some(key) => key.to_owned(),
        None => STANDARD.encode(random::bytes::<32>().map_err(|_| failed("a key"))?),
    };
    let spec = json!({"keys": all, "refreshKey": refresh});
    match read {
        Some(read) => objects.change(cluster, CREDENTIAL, read, &spec).await?,
        None => objects.create(cluster, CREDENTIAL, REALM_OBJECT, &spec).await?,
    };
    Ok(())
}
