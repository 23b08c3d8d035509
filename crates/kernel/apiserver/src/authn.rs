//! Who is asking: client certificates, service-account tokens, tokens of OIDC issuers, bootstrap tokens, in-process identities, and who
//! they act as.

pub mod bootstrap;
pub mod impersonate;
pub mod oidc;
mod proven;
pub mod token;
pub mod x509;

use std::sync::Arc;

use arc_swap::ArcSwap;
pub use fairway_kernel_authz::UserInfo;
use fairway_kernel_tenancy::names::extra;
use futures::future::BoxFuture;
use http::HeaderMap;
use token::Verified;
use tokio::sync::watch;

use crate::kernel::Kernel;
use crate::status::ApiError;

/// How a request came in, as far as it says who sent it.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The identity of a verified client certificate, or of a caller inside the process.
    pub identity: Option<Arc<UserInfo>>,
    /// Whether it came with a certificate that stands for nobody: then it is not anonymous either.
    pub refused: bool,
    /// Until when the certificate is valid, in seconds since 1970: a connection may outlive it.
    pub until: Option<i64>,
    /// Where it came from, for the audit log.
    pub address: Option<std::net::IpAddr>,
    /// Whether it is a part of the platform, which works in all workspaces. No request can claim that.
    pub inside: bool,
}

impl Peer {
    /// A caller who has proved who he is. Known from the start and shared by all of his requests.
    pub fn known(mut user: UserInfo) -> Self {
        add_group(&mut user, AUTHENTICATED);
        Self {
            identity: Some(Arc::new(user)),
            ..Self::default()
        }
    }

    /// The same, as a part of the platform.
    #[must_use]
    pub fn inside(self) -> Self {
        Self { inside: true, ..self }
    }
}

/// Whose tokens a domain knows: those of its own making, that are not a service account's and no issuer's.
pub trait Guests: Send + Sync {
    /// Who sent a token, in a workspace; `None` if it does not claim to be one of theirs. The user is known there alone.
    fn authenticate<'a>(
        &'a self,
        cluster: &'a str,
        token: &'a str,
    ) -> BoxFuture<'a, Option<Result<UserInfo, String>>>;

    /// Who a user is by now in a workspace, who has a stream open since he came with a token that may have expired; `None` if they do not
    /// know him without it.
    fn stands(&self, _cluster: &str, _user: &UserInfo) -> Option<Result<UserInfo, String>> {
        None
    }

    /// What the token of a service account says of the user who asks for it, if it is to count for as long as he does; `None` if they do
    /// not know him.
    fn bond(&self, _user: &UserInfo) -> Option<String> {
        None
    }

    /// Whether the user whom a bond names still counts, whatever became of his sessions; `None` if it is none of theirs.
    fn holds(&self, _bond: &str) -> Option<Result<(), String>> {
        None
    }
}

/// Those who know guests. They are asked in the order in which they came.
#[derive(Default)]
pub struct GuestBooks {
    all: ArcSwap<Vec<Arc<dyn Guests>>>,
    standing: watch::Sender<u64>,
}

impl GuestBooks {
    /// Asks one more from now on.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "it is kept; only the closure may run twice and needs a copy each time"
    )]
    pub fn add(&self, guests: Arc<dyn Guests>) {
        self.all.rcu(|all| {
            let mut all = Vec::clone(all);
            all.push(Arc::clone(&guests));
            all
        });
    }

    /// Somebody may have lost a right, or be known no longer: whoever has a stream open by a token is asked again who he is.
    pub fn standing_changed(&self) {
        self.standing.send_modify(|times| *times += 1);
    }

    /// Tells when somebody may have lost a right.
    pub(crate) fn follow_standing(&self) -> watch::Receiver<u64> {
        self.standing.subscribe()
    }

    pub(crate) fn stands(&self, cluster: &str, user: &UserInfo) -> Option<Result<UserInfo, String>> {
        let all = self.all.load();
        all.iter().find_map(|guests| guests.stands(cluster, user))
    }

    /// What a token that a user asks for says of him. Whoever is here by such a token, or for somebody, hands his bond on: nobody gets
    /// rid of it by a second token.
    pub(crate) fn bond(&self, user: &UserInfo) -> Option<String> {
        let handed_on = user.extra.get(extra::REQUESTED_BY).and_then(|all| all.first());
        handed_on.cloned().or_else(|| {
            let all = self.all.load();
            all.iter().find_map(|guests| guests.bond(user))
        })
    }

    /// Whether a bond holds. One that nobody knows does not.
    pub(crate) fn holds(&self, bond: &str) -> Result<(), String> {
        let all = self.all.load();
        let found = all.iter().find_map(|guests| guests.holds(bond));
        found.unwrap_or_else(|| Err(format!("nobody knows {bond}")))
    }

    pub(crate) async fn authenticate(&self, cluster: &str, token: &str) -> Option<Result<UserInfo, String>> {
        for guests in self.all.load_full().iter() {
            if let Some(found) = guests.authenticate(cluster, token).await {
                return Some(found);
            }
        }
        None
    }
}

/// Everybody who has proved who he is.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Everybody else.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Finds out who sent a request: by its certificate, else by its token, as upstream does. Without credentials it is the
/// anonymous user; wrong credentials are refused.
pub async fn authenticate(
    kernel: &Kernel,
    cluster: &str,
    peer: &Peer,
    headers: &HeaderMap,
) -> Result<Arc<UserInfo>, ApiError> {
    if let Some(identity) = &peer.identity {
        if peer.until.is_some_and(|end| kernel.clock.unix() > end) {
            tracing::debug!(user = identity.name, "a client certificate has expired");
            return Err(ApiError::unauthorized());
        }
        return Ok(Arc::clone(identity));
    }
    if let Some(bearer) = bearer(headers) {
        return match authenticate_token(kernel, cluster, bearer, &[]).await {
            Ok(verified) => Ok(proven(verified.user)),
            Err(reason) => {
                tracing::debug!(%reason, "a bearer token was refused");
                Err(ApiError::unauthorized())
            }
        };
    }
    if peer.refused {
        return Err(ApiError::unauthorized());
    }
    Ok(Arc::new(UserInfo::new("system:anonymous", [UNAUTHENTICATED])))
}

/// Accepts a token of ours, of an issuer that is trusted, or of a domain, for one of these audiences (none: for this API).
///
/// A service account is known only in its own workspace; the users of an issuer are the same everywhere.
pub async fn authenticate_token(
    kernel: &Kernel,
    cluster: &str,
    token: &str,
    wanted: &[String],
) -> Result<Verified, String> {
    let own = kernel.tokens.issuer();
    let is_for_others = !wanted.is_empty() && !wanted.iter().any(|audience| audience == own);
    let found = match bootstrap::authenticate(kernel, cluster, token) {
        None => {
            let found = kernel.issuers.authenticate(token, kernel.clock.unix()).await;
            found.map(|found| found.and_then(|user| at_home(kernel, cluster, user)))
        }
        found => found,
    };
    let found = match found {
        None => kernel.guests.authenticate(cluster, token).await,
        found => found,
    };
    match found {
        None => kernel
            .tokens
            .authenticate(kernel, cluster, token, wanted)
            .map_err(|error| error.to_string()),
        Some(Err(reason)) => Err(reason),
        Some(Ok(user)) => {
            // Its own audience says which client it was made for; as far as our callers are concerned, it is for this API.
            if is_for_others {
                return Err(format!("the token is for this API and not for {wanted:?}"));
            }
            Ok(Verified {
                user,
                audiences: vec![own.to_owned()],
            })
        }
    }
}

/// An issuer whose mapping names the workspace that its users are at home in, by path or id, is trusted there and below alone.
fn at_home(kernel: &Kernel, cluster: &str, mut user: UserInfo) -> Result<UserInfo, String> {
    let Some(named) = user.extra.get_mut(extra::HOME) else {
        return Ok(user);
    };
    let homes: Vec<String> = named
        .iter()
        .filter_map(|home| kernel.workspaces.resolve(home))
        .map(Into::into)
        .collect();
    if !homes
        .iter()
        .any(|home| kernel.workspaces.is_within(cluster, home))
    {
        return Err(format!("oidc: {} is known in {named:?} alone", user.name));
    }
    *named = homes;
    Ok(user)
}

/// The path of a request that names no workspace, in the workspace that its token claims to be of. The claim is only
/// followed here; whether it is true is found out there.
pub(crate) fn path_at_home(path: &str, headers: &HeaderMap) -> Option<String> {
    if path.starts_with("/clusters/") || path.starts_with("/services/") {
        return None;
    }
    let home = token::claimed_home(bearer(headers)?)?;
    Some(format!("/clusters/{home}{path}"))
}

pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim())
        .filter(|t| !t.is_empty())
}

/// A user who has proved who he is.
pub(crate) fn proven(mut user: UserInfo) -> Arc<UserInfo> {
    add_group(&mut user, AUTHENTICATED);
    Arc::new(user)
}

fn add_group(user: &mut UserInfo, group: &str) {
    if !user.in_group(group) {
        user.groups.push(group.to_owned());
    }
}
