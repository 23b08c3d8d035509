//! Certificates from the platform's own authority: those that TLSPolicies ask for, as Secrets, and the one of Routes that bring
//! none. Both are made anew before they end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{Clients, Failure, ObjectKey, Requests, Shutdown, WorkspaceId};
use fairway_gateway_policy::tls::Certificate as Asked;
use fairway_gateway_routes::table::Certificate;
use fairway_kernel_x509::Certificate as Read;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::warn;

use crate::statuses::MANAGER;

/// Who makes certificates, in the API.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-gateway-certificates";

/// How often is looked whether a certificate is due.
const LOOK_EVERY: Duration = Duration::from_secs(600);
/// Before what failed is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// Says who looks after a Secret. One without it is somebody else's, and stays as it is.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// For how many seconds a certificate was asked for. The authority may give less.
const DURATION: &str = "fairway.dev/tls-duration";
/// The policy that a certificate was made for.
const POLICY: &str = "fairway.dev/tls-policy";
/// How long the certificate of Routes is good, and when it is made anew.
const ROUTER_SECONDS: i64 = 90 * 86_400;

/// The platform's own authority.
pub trait Issuer: Send + Sync + 'static {
    /// A certificate for these names, and its key, in PEM.
    fn issue(&self, names: &[String], seconds: i64) -> Result<Certificate, String>;
}

/// What TLSPolicies ask for, by the Secret that it goes to.
pub(crate) type Wanted = Arc<BTreeMap<ObjectKey, Asked>>;

/// Keeps the Secrets that TLSPolicies ask for, until the end.
pub(crate) async fn keep(
    clients: Clients,
    issuer: Arc<dyn Issuer>,
    mut wanted: watch::Receiver<Wanted>,
    mut shutdown: Shutdown,
) {
    let mut pause = None;
    loop {
        let later = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shutdown.wait() => return,
            changed = wanted.changed() => if changed.is_err() { return },
            () = later => {}
        }
        let now = Arc::clone(&wanted.borrow_and_update());
        let mut failed = false;
        for (key, asked) in now.iter() {
            if let Err(failure) = settle(&clients, &*issuer, key, asked).await {
                warn!(secret = %key, policy = %asked.policy, %failure, "a certificate is not there");
                failed = true;
            }
        }
        pause = match (now.is_empty(), failed) {
            (true, _) => None,
            (false, true) => Some(RETRY),
            (false, false) => Some(LOOK_EVERY),
        };
    }
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("{}", .0.sentence())]
    Api(#[from] Failure),
    #[error("the authority did not sign: {0}")]
    Refused(String),
}

async fn settle(
    clients: &Clients,
    issuer: &dyn Issuer,
    key: &ObjectKey,
    asked: &Asked,
) -> Result<(), Problem> {
    let requests = Requests::new(clients.of(&key.workspace));
    let all = format!("/api/v1/namespaces/{}/secrets", key.namespace);
    let path = format!("{all}/{}", key.name);
    let there = requests.get(&path).await?;
    if !is_due(there.as_ref(), asked, Timestamp::now().as_second()) {
        return Ok(());
    }
    let seconds = i64::try_from(asked.duration.as_secs()).unwrap_or(i64::MAX);
    let made = issuer
        .issue(&asked.dns_names, seconds)
        .map_err(Problem::Refused)?;
    let data = json!({"tls.crt": *made.chain, "tls.key": *made.key});
    match there {
        Some(there) => {
            let patch = json!({
                "metadata": {
                    "resourceVersion": there["metadata"]["resourceVersion"],
                    "annotations": {DURATION: seconds.to_string()},
                },
                "stringData": data,
            });
            requests
                .merge(&format!("{path}?fieldManager={MANAGER}"), &patch)
                .await?;
        }
        None => {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                "metadata": {
                    "name": key.name, "namespace": key.namespace, "labels": {MANAGED_BY: MANAGER},
                    "annotations": {
                        POLICY: format!("{}/{}", asked.policy.namespace, asked.policy.name),
                        DURATION: seconds.to_string(),
                    },
                },
                "stringData": data,
            });
            requests
                .create(&format!("{all}?fieldManager={MANAGER}"), &secret)
                .await?;
        }
    }
    Ok(())
}

/// Whether a Secret with these labels is looked after here.
pub(crate) fn is_ours(labels: &BTreeMap<String, String>) -> bool {
    labels.get(MANAGED_BY).is_some_and(|it| it == MANAGER)
}

/// Whether the first certificate of a chain is good for all of these names.
pub(crate) fn is_for(chain: &str, names: &[String]) -> bool {
    let Ok(read) = Read::first_from_pem(chain) else {
        return false;
    };
    names.iter().all(|name| {
        let parent = name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        read.names
            .iter()
            .any(|own| own == name || Some(own) == parent.as_ref())
    })
}

/// Whether a certificate has to be made. A Secret that is not ours stays as it is, whatever is in it.
fn is_due(there: Option<&Value>, asked: &Asked, now: i64) -> bool {
    let Some(there) = there else { return true };
    if there["metadata"]["labels"][MANAGED_BY] != MANAGER {
        return false;
    }
    let read = there["data"]["tls.crt"].as_str().and_then(decoded);
    let Some(read) = read.and_then(|text| Read::first_from_pem(&text).ok()) else {
        return true;
    };
    let mut names: Vec<&str> = read.names.iter().map(String::as_str).collect();
    names.sort_unstable();
    let before = i64::try_from(asked.renew_before.as_secs()).unwrap_or(i64::MAX);
    // One that was made before this was written down keeps its time.
    let is_longer_or_shorter = there["metadata"]["annotations"][DURATION]
        .as_str()
        .is_some_and(|asked_for| asked_for != asked.duration.as_secs().to_string());
    names != asked.dns_names || is_longer_or_shorter || read.life.end.saturating_sub(before) <= now
}

fn decoded(text: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
    String::from_utf8(bytes).ok()
}

/// The certificate of Routes that bring none.
#[derive(Default)]
pub(crate) struct OfRouter {
    made: Option<(Arc<Certificate>, i64)>,
}

impl OfRouter {
    /// The certificate, made if it is due; none, if the authority does not sign.
    pub(crate) fn get(&mut self, issuer: &dyn Issuer, domain: &str) -> Option<Arc<Certificate>> {
        let now = Timestamp::now().as_second();
        if let Some((made, renew_at)) = &self.made
            && now < *renew_at
        {
            return Some(Arc::clone(made));
        }
        match issuer.issue(&[format!("*.{domain}"), domain.to_owned()], ROUTER_SECONDS) {
            Ok(made) => {
                let made = Arc::new(made);
                self.made = Some((Arc::clone(&made), now + ROUTER_SECONDS * 2 / 3));
                Some(made)
            }
            Err(why) => {
                warn!(why, "Routes have no certificate");
                self.made.as_ref().map(|(made, _)| Arc::clone(made))
            }
        }
    }
}

/// The Secrets that are asked for, by their keys; of two policies for one the first counts.
pub(crate) fn by_secret(asked: Vec<Asked>) -> BTreeMap<ObjectKey, Asked> {
    let mut found = BTreeMap::new();
    for one in asked {
        let Ok(workspace) = WorkspaceId::parse(&one.policy.workspace) else {
            continue;
        };
        let key = ObjectKey::new(&workspace, &one.namespace, &one.secret);
        found.entry(key).or_insert(one);
    }
    found
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn a_certificate_is_made_anew_when_something_else_is_asked_for() {
        const CHAIN: &str = include_str!("policies/objects/tests/any.crt");
        let name = "*.apps.fairway.localhost";
        let day = Duration::from_secs(86_400);
        let asked = |name: &str, days: u32| Asked {
            namespace: "n".to_owned(),
            secret: "web".to_owned(),
            dns_names: vec![name.to_owned()],
            duration: days * day,
            renew_before: day,
            policy: fairway_gateway_policy::object::PolicyKey {
                workspace: "root".to_owned(),
                kind: fairway_gateway_policy::object::Kind::TlsPolicy,
                namespace: "n".to_owned(),
                name: "web".to_owned(),
            },
        };
        let ours = json!({MANAGED_BY: MANAGER});
        let seconds = |days: u32| json!({DURATION: (days * 86_400).to_string()});
        for (labels, annotations, asked, expected, reason) in [
            (
                &ours,
                seconds(90),
                asked(name, 90),
                false,
                "all as it is asked for",
            ),
            (&ours, seconds(90), asked(name, 30), true, "a shorter time"),
            (&ours, seconds(90), asked("other", 90), true, "another name"),
            (
                &ours,
                json!({}),
                asked(name, 30),
                false,
                "from before times were written down",
            ),
            (
                &json!({}),
                seconds(90),
                asked("other", 30),
                false,
                "somebody else's",
            ),
        ] {
            let there = json!({
                "metadata": {"labels": labels, "annotations": annotations},
                "data": {"tls.crt": STANDARD.encode(CHAIN)},
            });
            assert_eq!(is_due(Some(&there), &asked, 0), expected, "{reason}");
        }
        assert!(is_due(None, &asked(name, 90), 0), "there is none");
    }
}
