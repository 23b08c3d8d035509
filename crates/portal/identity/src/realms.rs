//! What the API server asks with every token: who is it, now.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use fairway_api::identity::SEPARATOR;
use fairway_portal_realm::claims::{self, Access};
use fairway_portal_realm::directory::Fed;
use fairway_portal_realm::proven::{Proven, mark};
use fairway_portal_realm::{Directory, Member, keys};
use serde_json::Value;
use tokio::sync::{Notify, watch};

/// The longest token that is looked at.
const MAX_TOKEN: usize = 16 * 1024;

/// Everybody who is known, for all who ask.
#[derive(Debug, Default)]
pub struct Realms {
    directory: RwLock<Directory>,
    proven: Mutex<Proven>,
    base: OnceLock<String>,
    chores: Notify,
    comings_and_goings: watch::Sender<u64>,
}

/// Whom a token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// Who.
    pub member: Member,
    /// The id of the workspace of the realm.
    pub cluster: String,
    /// What the token says.
    pub access: Access,
}

impl Realms {
    /// Says where realms are served: `https://id.fairway.localhost:7443`. Until then no token is known.
    pub fn serve_at(&self, base: &str) {
        let _ = self.base.set(base.to_owned());
    }

    /// The issuer of a realm's tokens.
    pub fn issuer(&self, realm: &str) -> String {
        let base = self.base.get().map(String::as_str).unwrap_or_default();
        format!("{base}/realms/{realm}")
    }

    /// Looks something up.
    pub fn read<T>(&self, ask: impl FnOnce(&Directory) -> T) -> T {
        ask(&self.directory.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes something in.
    pub fn write<T>(&self, change: impl FnOnce(&mut Directory) -> T) -> T {
        change(&mut self.directory.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes in an object of a realm, or that it is gone. True if somebody may have lost a right by it.
    pub fn take(&self, fed: Fed, cluster: &str, name: &str, object: Option<&Value>) -> bool {
        let is_user = fed == Fed::User;
        let (lost, has_chores, has_come_or_gone) = self.write(|all| {
            let before = is_user.then(|| all.standing(cluster, name));
            let lost = all.take(fed, cluster, name, object);
            let after = is_user.then(|| all.standing(cluster, name));
            (lost, is_user && all.has_chores(), before != after)
        });
        if has_chores {
            self.chores.notify_one();
        }
        if has_come_or_gone {
            self.comings_and_goings.send_modify(|times| *times += 1);
        }
        lost
    }

    /// Moves on whenever a user may sign in no longer, or again.
    pub fn comings_and_goings(&self) -> watch::Receiver<u64> {
        self.comings_and_goings.subscribe()
    }

    /// Whether a name as Kubernetes knows it is one of a realm, and its user is gone or disabled.
    pub fn is_out(&self, username: &str) -> bool {
        let Some((realm, name)) = username.split_once(SEPARATOR) else {
            return false;
        };
        self.read(|all| all.is_out(realm, name))
    }

    /// Waits until there is something to do about users.
    pub(crate) async fn chores_came(&self) {
        self.chores.notified().await;
    }

    /// Whom a token for the API stands for; none if no realm of ours claims to have made it.
    pub fn authenticate(&self, token: &str) -> Option<Result<SignedIn, String>> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let issuer = unverified_issuer(token)?;
        let realm = self.realm_of(&issuer)?;
        Some(self.check(token, realm, claims::API, now()))
    }

    /// Somebody who came with a token some time ago, as he is now; why he counts no longer, otherwise. His token may have expired since: what
    /// he has open lasts as long as his session.
    pub fn stands(&self, realm: &str, user: &str, uid: &str, session: &str) -> Result<Member, &'static str> {
        self.read(|all| all.signed_in(realm, user, uid, session, now()))
    }

    /// Why claims that were verified stand for nobody any longer; none if they do, or if no realm of ours claims to have made
    /// them. For those who verify tokens by the keys that realms publish, ID tokens among them.
    pub fn lapsed(&self, claims: &Value, now: i64) -> Option<&'static str> {
        let text = |claim: &str| claims[claim].as_str().unwrap_or_default();
        let realm = self.realm_of(text("iss"))?;
        self.read(|all| all.lapsed(realm, text("sub"), text("sid"), now))
    }

    /// The realm that an issuer's address, or one below it, names.
    pub(crate) fn realm_of<'a>(&self, address: &'a str) -> Option<&'a str> {
        address
            .strip_prefix(self.base.get()?.as_str())?
            .strip_prefix("/realms/")
    }

    /// Whom an access token of a realm stands for, for an audience.
    pub(crate) fn check(
        &self,
        token: &str,
        realm: &str,
        audience: &str,
        now: i64,
    ) -> Result<SignedIn, String> {
        let cluster = self.read(|all| all.cluster(realm).map(str::to_owned));
        let cluster = cluster.ok_or("there is no such realm")?;
        let claims = self.verified(token, realm, claims::ACCESS, now)?;
        let access =
            claims::judge(&claims, &self.issuer(realm), audience, now).map_err(|why| why.to_string())?;
        let member =
            self.read(|all| all.signed_in(realm, &access.user, &access.uid, &access.session, now))?;
        Ok(SignedIn {
            member,
            cluster,
            access,
        })
    }

    /// The claims of a token that a key of the realm has signed.
    pub(crate) fn verified(
        &self,
        token: &str,
        realm: &str,
        typ: &str,
        now: i64,
    ) -> Result<Arc<Value>, String> {
        if token.len() > MAX_TOKEN {
            return Err("the token is too long".to_owned());
        }
        let id = keys::key_of(token).ok_or("the token is not one")?;
        let key = self.read(|all| {
            let mut verifying = keys::verifying(all.keys(realm), now);
            verifying.find(|key| key.id == id).cloned()
        });
        let key = key.ok_or("the token was signed with a key that the realm does not have")?;
        let mark = mark(token, &format!("{realm} {typ} {id}"));
        let mut proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = proven.get(&mark) {
            return Ok(known);
        }
        drop(proven);
        let claims = key.verified(token, typ).ok_or("the signature is wrong")?;
        let claims = Arc::new(claims);
        proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        proven.add(mark, Arc::clone(&claims));
        Ok(claims)
    }
}

/// Who a token says has made it; not believed. Every request with a token comes by here, so nothing but that is read.
fn unverified_issuer(token: &str) -> Option<String> {
    use base64::Engine as _;
    let payload = token.split('.').nth(1)?;
    let payload = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(payload)
        .ok()?;
    let claims: Value = serde_json::from_slice(&payload).ok()?;
    claims["iss"].as_str().map(str::to_owned)
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
