//! Client certificates: the common name is the user, the organisations are the groups.

use fairway_kernel_authz::UserInfo;
use fairway_kernel_x509::Certificate;
use ring::digest::{SHA256, digest};

/// Which credential was shown, so that the audit log can tell one of a user's certificates from another.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// The user that a certificate stands for. The chain has been verified by TLS.
pub fn user(certificate: &[u8]) -> Option<UserInfo> {
    let subject = Certificate::from_der(certificate).ok()?.subject;
    if subject.common_name.is_empty() {
        return None;
    }
    let fingerprint: String = digest(&SHA256, certificate)
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut user = UserInfo::new(subject.common_name, subject.organisations);
    user.extra
        .insert(CREDENTIAL.to_owned(), vec![format!("X509SHA256={fingerprint}")]);
    Some(user)
}

/// Until when a certificate is valid, in seconds since 1970.
pub fn end(certificate: &[u8]) -> Option<i64> {
    Certificate::from_der(certificate).ok().map(|c| c.life.end)
}
