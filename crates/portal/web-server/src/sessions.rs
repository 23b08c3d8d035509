//! The sessions of browsers that were seen lately: what their objects said, and the token that stands for each inside the process.
//!
//! Whether a session goes on is asked of the provider's directory with every request, which knows of every write before it is
//! acknowledged. What is kept here only saves reading the object again.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use fairway_portal_identity::{PortalSession, Provider};
use fairway_portal_realm::{Member, portal, secret};
use tracing::warn;

use crate::cookie::Badge;

/// Sessions that are kept. One more is read again with each request, which is slower and as good.
const KEEP: usize = 4_096;

/// Somebody who is signed in.
pub(crate) struct SignedIn {
    /// The realm.
    pub(crate) realm: String,
    /// The session.
    pub(crate) name: String,
    /// As its object says.
    pub(crate) session: PortalSession,
    /// Who.
    pub(crate) member: Member,
    /// For whatever is behind.
    pub(crate) token: String,
    /// Streams of the session at this moment.
    pub(crate) streams: Arc<AtomicUsize>,
}

/// Why nobody is.
pub(crate) enum NotSignedIn {
    /// There is no such session, or it has ended.
    Unknown,
    /// Something of ours failed.
    Failed,
}

struct Kept {
    session: PortalSession,
    /// With its end.
    token: Option<(String, i64)>,
}

#[derive(Clone)]
struct Entry {
    /// One at a time reads, renews and moves on; the others wait for it, and find it done.
    kept: Arc<tokio::sync::Mutex<Option<Kept>>>,
    streams: Arc<AtomicUsize>,
}

/// All of them.
pub(crate) struct Sessions {
    provider: Arc<Provider>,
    entries: Mutex<HashMap<String, Entry>>,
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

impl Sessions {
    pub(crate) fn new(provider: Arc<Provider>) -> Self {
        Self {
            provider,
            entries: Mutex::default(),
        }
    }

    fn entry(&self, name: &str) -> Entry {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(name) {
            return entry.clone();
        }
        if entries.len() >= KEEP {
            // Those without a stream can be read again.
            entries.retain(|_, entry| Arc::strong_count(&entry.streams) > 1);
        }
        let entry = Entry {
            kept: Arc::default(),
            streams: Arc::default(),
        };
        if entries.len() < KEEP {
            entries.insert(name.to_owned(), entry.clone());
        }
        entry
    }

    /// Forgets a session that has ended.
    pub(crate) fn forget(&self, name: &str) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.remove(name);
    }

    /// Who has a badge.
    pub(crate) async fn of(&self, badge: Badge<'_>) -> Result<SignedIn, NotSignedIn> {
        let Badge { realm, name, .. } = badge;
        // Nothing is kept for a name that is no session's.
        if !self.provider.knows_session(realm, name) {
            self.forget(name);
            return Err(NotSignedIn::Unknown);
        }
        let entry = self.entry(name);
        let failed = |failure: &dyn std::error::Error| {
            warn!(%failure, "a session could not be looked up");
            NotSignedIn::Failed
        };
        let mut kept = entry.kept.lock().await;
        if kept.is_none() {
            let read = self.provider.portal_session(realm, name).await;
            let session = read.map_err(|failure| failed(&failure))?;
            let session = session.ok_or(NotSignedIn::Unknown)?;
            *kept = Some(Kept { session, token: None });
        }
        let Some(known) = kept.as_mut() else {
            return Err(NotSignedIn::Failed);
        };
        if !secret::is_kept(&known.session.digest, badge.secret) {
            return Err(NotSignedIn::Unknown);
        }
        let member = self.provider.portal_member(realm, name, &known.session);
        let member = member.map_err(|_| NotSignedIn::Unknown)?;
        match self.provider.use_portal(realm, name, &known.session).await {
            Ok(Some(moved)) => known.session = moved,
            Ok(None) => {}
            // It ends sooner than it might; the user has not done anything wrong.
            Err(failure) => warn!(%failure, "the use of a session was not noted"),
        }
        let is_good = |token: &(String, i64)| !portal::is_due(token.1, now());
        let token = match known.token.clone().filter(is_good) {
            Some(token) => token,
            None => {
                let made = self.provider.portal_token(realm, name, &known.session).await;
                let made = made.map_err(|failure| failed(&failure))?;
                known.token = Some(made.clone());
                made
            }
        };
        Ok(SignedIn {
            realm: realm.to_owned(),
            name: name.to_owned(),
            session: known.session.clone(),
            member,
            token: token.0,
            streams: entry.streams,
        })
    }

    /// Whether somebody who was signed in still is.
    pub(crate) fn watcher(&self, signed_in: &SignedIn) -> impl Fn() -> bool + Send + Sync + 'static {
        let provider = Arc::clone(&self.provider);
        let (realm, name) = (signed_in.realm.clone(), signed_in.name.clone());
        let session = signed_in.session.clone();
        move || provider.portal_member(&realm, &name, &session).is_ok()
    }
}
