//! Requests for tests: real ones, made here.

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::json;

/// A request in PEM.
pub(super) fn request_with(name: &str, organisations: &[&str], dns: &[&str], emails: &[&str]) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    for organisation in organisations {
        params
            .distinguished_name
            .push(DnType::OrganizationName, *organisation);
    }
    let names = dns.iter().map(|n| SanType::DnsName((*n).try_into().unwrap()));
    let mails = emails
        .iter()
        .map(|n| SanType::Rfc822Name((*n).try_into().unwrap()));
    params.subject_alt_names = names.chain(mails).collect();
    let key = KeyPair::generate().unwrap();
    params.serialize_request(&key).unwrap().pem().unwrap()
}

/// A request that waits for its verdict.
pub(super) fn asked(signer: &str, pem: &str, usages: &[&str]) -> CertificateSigningRequest {
    let mut csr: CertificateSigningRequest = serde_json::from_value(json!({
        "metadata": {"name": "x"},
        "spec": {"request": "", "signerName": signer, "usages": usages},
    }))
    .unwrap();
    csr.spec.request = ByteString(pem.as_bytes().to_vec());
    csr
}

/// The same, approved.
pub(super) fn approved(signer: &str, pem: &str, usages: &[&str]) -> CertificateSigningRequest {
    let mut csr = asked(signer, pem, usages);
    csr.status =
        serde_json::from_value(json!({"conditions": [{"type": "Approved", "status": "True"}]})).unwrap();
    csr
}

/// A certificate in PEM that ends at this second.
pub(super) fn issued_until(unix: i64) -> String {
    let mut params = CertificateParams::default();
    params.not_after = time::OffsetDateTime::from_unix_timestamp(unix).unwrap();
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().pem()
}
