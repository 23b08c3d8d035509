//! Realms joined to the kernel: their objects feed the directory before a write is acknowledged, and the kernel asks it who sent a
//! token. The kernel knows nothing of organisations; what it learns is a user, his groups, and where he is at home.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use anyhow::Context;
use fairway_api::identity::{
    CREDENTIAL, GROUP_KIND, REALM, REALM_EXTRA, SEPARATOR, SESSION, SESSION_EXTRA, USER,
};
use fairway_controller::{ClientFactory, Shutdown};
use fairway_gateway_engine::Realms as AtGateways;
use fairway_kernel_apiserver::Kernel;
use fairway_kernel_apiserver::authn::{Guests, UserInfo};
use fairway_kernel_apiserver::cache::{Change, ChangeKind};
use fairway_kernel_apiserver::key::{BUILTIN_IDENTITY, KindPrefix, split_suffix};
use fairway_kernel_tenancy::names::{TENANCY, extra};
use fairway_outbound::AllowedHosts;
use fairway_portal_identity::{
    DEPARTURES_USER, ENTRIES_USER, Options, Provider, Realms, SignedIn, departures, sweep,
};
use fairway_portal_realm::directory::{Fed, ROOT};
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::warn;

const KINDS: [(fairway_api::Kind, Fed); 5] = [
    (USER, Fed::User),
    (GROUP_KIND, Fed::Group),
    (SESSION, Fed::Session),
    (CREDENTIAL, Fed::Credential),
    (REALM, Fed::Realm),
];

/// What serves sign-in.
pub(super) struct Identity {
    /// Answers requests.
    pub(super) provider: Arc<Provider>,
    realms: Arc<Realms>,
    sweeping: JoinHandle<()>,
    departing: JoinHandle<()>,
}

impl Identity {
    /// For gateways, which verify tokens themselves.
    pub(super) fn at_gateways(&self) -> Arc<dyn AtGateways> {
        Arc::new(Known {
            provider: Arc::clone(&self.provider),
            realms: Arc::clone(&self.realms),
        })
    }

    /// Waits until everything under way is finished, once the shutdown was given.
    pub(super) async fn ended(self) {
        if let Err(error) = self.sweeping.await {
            warn!(%error, "the removal of old sessions failed");
        }
        if let Err(error) = self.departing.await {
            warn!(%error, "the removal of what users leave behind failed");
        }
    }
}

/// Feeds the directory from now on, lets the kernel ask it, and prepares the provider.
pub(super) fn start(
    kernel: &Arc<Kernel>,
    clients: &ClientFactory,
    (sign_in, portal): (String, String),
    allowed_hosts: AllowedHosts,
    shutdown: Shutdown,
) -> anyhow::Result<Identity> {
    let realms = Arc::new(Realms::default());
    follow(kernel, &realms);
    kernel.guests.add(Arc::new(Members {
        realms: Arc::clone(&realms),
        kernel: Arc::downgrade(kernel),
    }));
    let departing = departures::run(
        Arc::clone(&realms),
        clients.clients(DEPARTURES_USER),
        shutdown.clone(),
    );
    let provider = Provider::new(Options {
        base: sign_in,
        portal,
        realms: Arc::clone(&realms),
        clients: clients.clients(fairway_portal_identity::USER),
        entries: clients.clients(ENTRIES_USER),
        allowed_hosts,
    })
    .context("sign-in could not be prepared")?;
    let sweeping = tokio::spawn(sweep::run(Arc::clone(&provider), shutdown));
    Ok(Identity {
        provider,
        realms,
        sweeping,
        departing: tokio::spawn(departing),
    })
}

fn follow(kernel: &Arc<Kernel>, realms: &Arc<Realms>) {
    let cache = &kernel.storage.cache;
    for (kind, fed) in KINDS {
        let (realms, kernel) = (Arc::clone(realms), Arc::downgrade(kernel));
        let prefix = KindPrefix::new(kind.group, kind.plural, BUILTIN_IDENTITY);
        cache.kind(prefix.as_str()).observe(Box::new(move |change| {
            let (cluster, _, name) = split_suffix(&change.suffix);
            let object = object_of(change);
            let lost = realms.take(fed, cluster, name, object.as_ref());
            if let Some(kernel) = kernel.upgrade().filter(|_| lost) {
                kernel.guests.standing_changed();
            }
        }));
    }
    let realms = Arc::clone(realms);
    let prefix = KindPrefix::new(TENANCY, "workspaces", BUILTIN_IDENTITY);
    cache.kind(prefix.as_str()).observe(Box::new(move |change| {
        let (parent, _, name) = split_suffix(&change.suffix);
        let object = object_of(change);
        realms.write(|all| all.take_workspace(parent, name, object.as_ref()));
    }));
}

fn object_of(change: &Change) -> Option<Value> {
    match change.kind {
        ChangeKind::Deleted => None,
        _ => change.object.value().ok(),
    }
}

/// People who come with a token of a realm.
struct Members {
    realms: Arc<Realms>,
    kernel: Weak<Kernel>,
}

impl Guests for Members {
    fn authenticate<'a>(
        &'a self,
        cluster: &'a str,
        token: &'a str,
    ) -> BoxFuture<'a, Option<Result<UserInfo, String>>> {
        let found = self.realms.authenticate(token);
        Box::pin(std::future::ready(found.map(|found| {
            let found = found?;
            match self.is_at_home(&found.cluster, cluster) {
                true => Ok(user(found)),
                false => Err(format!(
                    "{} is known in the workspaces of the organisation {} alone",
                    found.member.username(),
                    found.member.realm
                )),
            }
        })))
    }

    fn stands(&self, cluster: &str, user: &UserInfo) -> Option<Result<UserInfo, String>> {
        let said = |key: &str| user.extra.get(key)?.first().map(String::as_str);
        // Whatever else he comes with: he is here by somebody who has gone.
        let is_held = said(extra::REQUESTED_BY).and_then(|bond| self.holds(bond));
        if let Some(Err(why)) = is_held {
            return Some(Err(why));
        }
        let (realm, session) = (said(REALM_EXTRA)?, said(SESSION_EXTRA)?);
        let name = user.name.strip_prefix(realm)?.strip_prefix('/')?;
        let home = self.realms.read(|all| all.cluster(realm).map(str::to_owned));
        let found = self.realms.stands(realm, name, &user.uid, session);
        Some(match found {
            Ok(member) if home.is_some_and(|home| self.is_at_home(&home, cluster)) => Ok(UserInfo {
                groups: member.usergroups(),
                ..user.clone()
            }),
            Ok(_) => Err("the workspace is no longer one of the organisation".to_owned()),
            Err(why) => Err(why.to_owned()),
        })
    }

    fn bond(&self, user: &UserInfo) -> Option<String> {
        let realm = user.extra.get(REALM_EXTRA)?.first()?;
        let name = user.name.strip_prefix(realm)?.strip_prefix(SEPARATOR)?;
        Some(format!("{realm}{SEPARATOR}{name}{SEPARATOR}{}", user.uid))
    }

    fn holds(&self, bond: &str) -> Option<Result<(), String>> {
        let (user, uid) = bond.rsplit_once(SEPARATOR)?;
        let (realm, name) = user.split_once(SEPARATOR)?;
        let counts = self.realms.read(|all| all.counts(realm, name, uid));
        let why = || format!("{user} is gone or disabled");
        Some(counts.then_some(()).ok_or_else(why))
    }
}

impl Members {
    /// Users of the root's realm are known everywhere, those of an organisation in its workspaces.
    fn is_at_home(&self, home: &str, cluster: &str) -> bool {
        let kernel = self.kernel.upgrade();
        home == ROOT || kernel.is_some_and(|kernel| kernel.workspaces.is_within(cluster, home))
    }
}

fn user(found: SignedIn) -> UserInfo {
    let mut user = UserInfo::new(found.member.username(), found.member.usergroups());
    user.uid = found.member.uid;
    let credential = "authentication.kubernetes.io/credential-id".to_owned();
    user.extra = BTreeMap::from([
        (credential, vec![format!("JTI={}", found.access.id)]),
        (REALM_EXTRA.to_owned(), vec![found.member.realm]),
        (SESSION_EXTRA.to_owned(), vec![found.access.session]),
    ]);
    // The root is above every workspace, so to be at home there would be to be let in everywhere.
    if found.cluster != ROOT {
        user.extra.insert(extra::HOME.to_owned(), vec![found.cluster]);
    }
    user
}

/// What gateways know of realms.
struct Known {
    provider: Arc<Provider>,
    realms: Arc<Realms>,
}

impl AtGateways for Known {
    fn document(&self, url: &str) -> Option<Value> {
        self.provider.published(url)
    }

    fn lapsed(&self, claims: &Value, now: i64) -> Option<&'static str> {
        self.realms.lapsed(claims, now)
    }

    fn is_out(&self, user: &str) -> bool {
        self.realms.is_out(user)
    }

    fn comings_and_goings(&self) -> Option<watch::Receiver<u64>> {
        Some(self.realms.comings_and_goings())
    }
}
