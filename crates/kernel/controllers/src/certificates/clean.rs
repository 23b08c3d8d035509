//! Requests that have done their service, or never will, are removed.

use std::time::Duration;

use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile};
use fairway_kernel_x509::Certificate;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, Preconditions};

use super::{Requests, api_of, certificate, conditions, written};

pub(super) const NAME: &str = "certificate-cleaning";

/// What has been issued, denied or has failed.
const JUDGED: SignedDuration = SignedDuration::from_hours(1);
/// What waits for a verdict, or for a signer.
const WAITING: SignedDuration = SignedDuration::from_hours(24);

pub(super) struct Cleaner {
    pub(super) clients: Clients,
    pub(super) requests: Requests,
}

/// When a request is removed; `None`: its conditions are none that we know, and it stays.
fn decide(csr: &CertificateSigningRequest) -> Option<Timestamp> {
    let after = |time: Option<&Time>, span: SignedDuration| time.and_then(|t| t.0.checked_add(span).ok());
    let issued = certificate(csr);
    if conditions(csr).next().is_none() {
        return after(csr.metadata.creation_timestamp.as_ref(), WAITING);
    }
    let mut ends = Vec::new();
    for condition in conditions(csr) {
        let span = match (condition.type_.as_str(), issued) {
            ("Denied" | "Failed", _) | ("Approved", Some(_)) => JUDGED,
            ("Approved", None) => WAITING,
            _ => continue,
        };
        ends.extend(after(condition.last_update_time.as_ref(), span));
        if condition.type_ == "Approved" {
            ends.extend(issued.and_then(expiry));
        }
    }
    ends.into_iter().min()
}

fn expiry(pem: &[u8]) -> Option<Timestamp> {
    let certificate = Certificate::first_from_pem(std::str::from_utf8(pem).ok()?).ok()?;
    Timestamp::from_second(certificate.life.end).ok()
}

impl Reconcile<ObjectKey> for Cleaner {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let Some(csr) = self.requests.get(key) else {
            return Ok(Outcome::Done);
        };
        let Some(end) = decide(&csr) else {
            return Ok(Outcome::Done);
        };
        let left = end.duration_since(Timestamp::now());
        if let Ok(left) = Duration::try_from(left)
            && !left.is_zero()
        {
            return Ok(Outcome::Again(left));
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: csr.metadata.uid.clone(),
                resource_version: csr.metadata.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        let answer = api_of(&self.clients, key).delete(&key.name, &params).await;
        written(answer, "remove a certificate request that is over")
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use serde_json::json;

    use super::super::fixtures::issued_until;
    use super::decide;

    #[test]
    fn requests_end_as_upstream_ends_them() {
        let at = "2026-01-01T00:00:00Z";
        let late = issued_until(1_893_456_000);
        let soon = issued_until(1_767_225_660);
        for (name, kinds, certificate, want) in [
            (
                "waiting for a verdict",
                &[][..],
                None,
                Some("2026-01-02T00:00:00Z"),
            ),
            ("denied", &["Denied"][..], None, Some("2026-01-01T01:00:00Z")),
            (
                "failed",
                &["Approved", "Failed"][..],
                None,
                Some("2026-01-01T01:00:00Z"),
            ),
            (
                "waiting for a signer",
                &["Approved"][..],
                None,
                Some("2026-01-02T00:00:00Z"),
            ),
            (
                "issued",
                &["Approved"][..],
                Some(&late),
                Some("2026-01-01T01:00:00Z"),
            ),
            (
                "issued and over",
                &["Approved"][..],
                Some(&soon),
                Some("2026-01-01T00:01:00Z"),
            ),
            ("something else", &["Odd"][..], None, None),
        ] {
            let conditions: Vec<_> = kinds
                .iter()
                .map(|k| json!({"type": k, "status": "True", "lastUpdateTime": at}))
                .collect();
            let mut csr: k8s_openapi::api::certificates::v1::CertificateSigningRequest =
                serde_json::from_value(json!({
                    "metadata": {"name": "x", "creationTimestamp": at},
                    "spec": {"request": "", "signerName": "a.b/c"},
                    "status": {"conditions": conditions},
                }))
                .unwrap();
            csr.status.as_mut().unwrap().certificate =
                certificate.map(|c| ByteString(c.clone().into_bytes()));
            assert_eq!(decide(&csr).map(|t| t.to_string()).as_deref(), want, "{name}");
        }
    }
}
