//! Who is asking: client certificates, service-account tokens, in-process identities, and who they act as.

pub mod impersonate;
pub mod token;
pub mod x509;

pub use fairway_kernel_authz::UserInfo;
use http::HeaderMap;

use crate::kernel::Kernel;
use crate::status::ApiError;

/// How a request came in, as far as it says who sent it.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The identity of a verified client certificate, or of a caller inside the process.
    pub identity: Option<UserInfo>,
    /// Whether it came with a certificate that stands for nobody: then it is not anonymous either.
    pub refused: bool,
    /// Until when the certificate is valid, in seconds since 1970: a connection may outlive it.
    pub until: Option<i64>,
    /// Where it came from, for the audit log.
    pub address: Option<std::net::IpAddr>,
}

/// Everybody who has proved who he is.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Everybody else.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Finds out who sent a request: by its certificate, else by its token, as upstream does. Without credentials it is the anonymous user; wrong credentials are refused.
pub fn authenticate(kernel: &Kernel, peer: &Peer, headers: &HeaderMap) -> Result<UserInfo, ApiError> {
    if let Some(identity) = &peer.identity {
        if peer.until.is_some_and(|end| kernel.clock.unix() > end) {
            tracing::debug!(user = identity.name, "a client certificate has expired");
            return Err(ApiError::unauthorized());
        }
        let mut user = identity.clone();
        add_group(&mut user, AUTHENTICATED);
        return Ok(user);
    }
    if let Some(bearer) = bearer(headers) {
        return match kernel.tokens.authenticate(kernel, bearer, &[]) {
            Ok(mut verified) => {
                add_group(&mut verified.user, AUTHENTICATED);
                Ok(verified.user)
            }
            Err(reason) => {
                tracing::debug!(%reason, "a bearer token was refused");
                Err(ApiError::unauthorized())
            }
        };
    }
    if peer.refused {
        return Err(ApiError::unauthorized());
    }
    Ok(UserInfo::new("system:anonymous", [UNAUTHENTICATED]))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim())
        .filter(|t| !t.is_empty())
}

fn add_group(user: &mut UserInfo, group: &str) {
    if !user.in_group(group) {
        user.groups.push(group.to_owned());
    }
}
