//! A bootstrap token that is good for one node: the first request for a certificate uses it up.
//!
//! Upstream's tokens are good for any number of nodes until they expire, and so are those here that do not say otherwise. One that is
//! annotated [`ONE_TIME`] gets the digest of the first request that is approved with it. Whoever asks again with the same key may (its answer
//! was lost); anybody else is denied. The token stays for as long as its node needs to fetch the certificate.

use std::time::Duration;

use fairway_controller::error::{is_conflict, is_not_found};
use fairway_controller::{Attempt as _, Failure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

/// On a token that is good for one node.
const ONE_TIME: &str = "fairway.dev/one-time";
/// On a token that was used: for which request.
const USED_FOR: &str = "fairway.dev/used-for";
/// Users that came with a token.
const USER: &str = "system:bootstrap:";
/// How long a used token lets its node fetch the certificate.
const LINGER: Duration = Duration::from_secs(600);

/// What a token says about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing stands in the way.
    Good,
    /// It was used for another request.
    Used(String),
    /// Somebody is at it: to be asked again.
    Again,
}

/// What is to be done with a token.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Approve,
    Refuse,
    Mark(Value),
}

/// The token by which a user came, if he did.
pub(super) fn of(user: &str) -> Option<&str> {
    user.strip_prefix(USER)
}

fn decide(token: &Secret, request: &str, now: Timestamp) -> Step {
    let annotation = |name: &str| token.metadata.annotations.as_ref()?.get(name).map(String::as_str);
    if annotation(ONE_TIME) != Some("true") {
        return Step::Approve;
    }
    match annotation(USED_FOR) {
        Some(used) if used == request => Step::Approve,
        Some(_) => Step::Refuse,
        None => {
            let end = end(token).unwrap_or(Timestamp::MAX).min(now + LINGER);
            let end = k8s_openapi::ByteString(end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into_bytes());
            Step::Mark(json!({
                "metadata": {
                    "resourceVersion": token.metadata.resource_version,
                    "annotations": {USED_FOR: request},
                },
                "data": {"expiration": end},
            }))
        }
    }
}

fn end(token: &Secret) -> Option<Timestamp> {
    let text = token.data.as_ref()?.get("expiration")?;
    std::str::from_utf8(&text.0).ok()?.parse().ok()
}

/// Uses a token up for a request.
pub(super) async fn use_up(tokens: &Api<Secret>, id: &str, request: &[u8]) -> Result<Verdict, Failure> {
    let name = format!("bootstrap-token-{id}");
    let doing = "read the token of a node that joins";
    let Some(token) = tokens.get_opt(&name).await.attempting(doing)? else {
        return Ok(Verdict::Used(format!("the token {id} is gone")));
    };
    let digest: String = digest(&SHA256, request)
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    match decide(&token, &digest, Timestamp::now()) {
        Step::Approve => Ok(Verdict::Good),
        Step::Refuse => Ok(Verdict::Used(format!(
            "the token {id} is good for one node, and another has used it; make a new one with `fairway node token create`"
        ))),
        Step::Mark(patch) => {
            let marked = tokens
                .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
                .await;
            match marked {
                Err(error) if is_conflict(&error) || is_not_found(&error) => Ok(Verdict::Again),
                marked => marked
                    .attempting("use up the token of a node that joins")
                    .map(|_| Verdict::Good),
            }
        }
    }
}

/// Removes tokens that have expired.
pub(super) async fn sweep(tokens: &Api<Secret>) -> Result<(), Failure> {
    let all = ListParams::default().fields("type=bootstrap.kubernetes.io/token");
    let found = tokens.list(&all).await.attempting("list bootstrap tokens")?;
    let now = Timestamp::now();
    for token in found
        .items
        .iter()
        .filter(|it| end(it).is_some_and(|end| end <= now))
    {
        let name = token.metadata.name.as_deref().unwrap_or_default();
        match tokens.delete(name, &DeleteParams::default()).await {
            Err(error) if is_not_found(&error) => {}
            removed => {
                removed.attempting("remove an expired bootstrap token")?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_used_once() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let token = |annotations: Value, end: &str| -> Secret {
            let end = k8s_openapi::ByteString(end.as_bytes().to_vec());
            serde_json::from_value(json!({
                "metadata": {"resourceVersion": "7", "annotations": annotations}, "data": {"expiration": end},
            }))
            .unwrap()
        };
        let far = "2026-01-02T00:00:00Z";
        assert_eq!(decide(&token(json!({}), far), "a", now), Step::Approve);
        let used = json!({ONE_TIME: "true", USED_FOR: "a"});
        assert_eq!(decide(&token(used.clone(), far), "a", now), Step::Approve);
        assert_eq!(decide(&token(used, far), "b", now), Step::Refuse);
        for (end, expected) in [
            (far, "2026-01-01T00:10:00Z"),
            ("2026-01-01T00:05:00Z", "2026-01-01T00:05:00Z"),
        ] {
            let Step::Mark(patch) = decide(&token(json!({ONE_TIME: "true"}), end), "a", now) else {
                panic!("a fresh token is marked");
            };
            assert_eq!(patch["metadata"]["resourceVersion"], "7", "nobody else marks it");
            assert_eq!(patch["metadata"]["annotations"][USED_FOR], "a");
            let expected = k8s_openapi::ByteString(expected.as_bytes().to_vec());
            assert_eq!(patch["data"]["expiration"], json!(expected));
        }
        assert_eq!(of("system:bootstrap:abcdef"), Some("abcdef"));
        assert_eq!(of("anna"), None);
    }
}
