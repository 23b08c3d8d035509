//! Client certificates: the common name is the user, the organisations are the groups.

use fairway_kernel_authz::UserInfo;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The user that a certificate stands for. The chain has been verified by TLS.
pub fn user(certificate: &[u8]) -> Option<UserInfo> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let name = subject
        .iter_common_name()
        .next()?
        .as_str()
        .ok()
        .filter(|name| !name.is_empty())?
        .to_owned();
    let groups: Vec<String> = subject
        .iter_organization()
        .filter_map(|o| o.as_str().ok())
        .map(str::to_owned)
        .collect();
    Some(UserInfo::new(name, groups))
}
