//! What a node shows to its server: a certificate of its own, asked for by a request that the server approves and signs.

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_kernel_apiserver::pki::{Pair, client_request};
use fairway_kernel_x509::Certificate;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Client;
use kube::api::{Api, PostParams};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

/// Who nodes are, and the group of all.
pub(super) const USER: &str = "system:node:";
const GROUP: &str = "system:nodes";
const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// How often a request is looked at.
const LOOK: Duration = Duration::from_millis(300);

/// Asks for a certificate of a node, and waits for it.
pub(super) async fn ask(client: &Client, node: &str, patience: Duration) -> anyhow::Result<Pair> {
    let user = format!("{USER}{node}");
    let (request, key) = client_request(&user, GROUP)?;
    let name = format!("node-csr-{}", &hex(request.as_bytes())[..32]);
    let body: CertificateSigningRequest = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "request": ByteString(request.into_bytes()), "signerName": SIGNER,
            "usages": ["digital signature", "client auth"],
        },
    }))?;
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    requests
        .create(&PostParams::default(), &body)
        .await
        .map_err(told)
        .with_context(|| format!("the server takes no request for a certificate of {user}"))?;
    let give_up = Instant::now() + patience;
    loop {
        let found = requests
            .get(&name)
            .await
            .map_err(told)
            .with_context(|| format!("the certificate request {name} cannot be read"))?;
        if let Some(certificate) = verdict(&found)? {
            Certificate::first_from_pem(&certificate)
                .context("the server signed something that is no certificate")?;
            return Ok(Pair { certificate, key });
        }
        if Instant::now() > give_up {
            bail!(
                "the certificate request {name} is not signed after {} s; look at it with `kubectl describe csr {name}`",
                patience.as_secs()
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What a server answered, in its own words.
#[expect(
    clippy::needless_pass_by_value,
    reason = "it stands where errors are handed on"
)]
pub(super) fn told(error: kube::Error) -> anyhow::Error {
    anyhow!("{}", fairway_controller::error::sentence(&error))
}

/// The certificate, if there is one; an error if there will be none.
fn verdict(request: &CertificateSigningRequest) -> anyhow::Result<Option<String>> {
    let Some(status) = &request.status else {
        return Ok(None);
    };
    for condition in status.conditions.iter().flatten() {
        if matches!(condition.type_.as_str(), "Denied" | "Failed") {
            let why = condition.message.as_deref().unwrap_or("no reason is given");
            bail!("the server gives this host no certificate: {why}");
        }
    }
    match &status.certificate {
        Some(bytes) if !bytes.0.is_empty() => {
            let text = String::from_utf8(bytes.0.clone());
            text.map(Some).context("the certificate is no text")
        }
        _ => Ok(None),
    }
}

/// A digest in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A node's kubeconfig.
pub(super) fn kubeconfig(server: &str, authority: &str, node: &str, pair: &Pair) -> Value {
    let user = format!("{USER}{node}");
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fairway", "cluster": {
            "server": server,
            "certificate-authority-data": STANDARD.encode(authority),
        }}],
        "users": [{"name": user, "user": {
            "client-certificate-data": STANDARD.encode(&pair.certificate),
            "client-key-data": STANDARD.encode(&pair.key),
        }}],
        "contexts": [{"name": "node", "context": {"cluster": "fairway", "user": user}}],
        "current-context": "node",
    })
}

/// The certificate in a node's kubeconfig, and the name of its node; nothing if the kubeconfig is somebody else's.
pub(super) fn of_kubeconfig(kubeconfig: &Value) -> Option<(Certificate, String)> {
    let text = kubeconfig
        .pointer("/users/0/user/client-certificate-data")?
        .as_str()?;
    let pem = String::from_utf8(STANDARD.decode(text).ok()?).ok()?;
    let certificate = Certificate::first_from_pem(&pem).ok()?;
    let node = certificate.subject.common_name.strip_prefix(USER)?.to_owned();
    Some((certificate, node))
}

#[cfg(test)]
mod tests {
    use fairway_kernel_apiserver::pki::{Authority, new_authority};

    use super::*;

    #[test]
    fn a_kubeconfig_says_whose_it_is() {
        let authority = Authority::load(&new_authority(1_000_000).unwrap()).unwrap();
        let of = |user: &str| {
            let pair = authority.client(user, &[GROUP], 3_600, 1_000_000).unwrap();
            of_kubeconfig(&kubeconfig("https://h:1", "", "n1", &pair)).map(|(_, node)| node)
        };
        assert_eq!(of("system:node:n1"), Some("n1".to_owned()));
        assert_eq!(of("anna"), None);
        assert!(of_kubeconfig(&json!({})).is_none());
    }

    #[test]
    fn a_request_comes_to_something() {
        let of = |status: Value| {
            let request =
                json!({"metadata": {}, "spec": {"request": "", "signerName": ""}, "status": status});
            verdict(&serde_json::from_value(request).unwrap())
        };
        assert_eq!(of(json!({})).unwrap(), None);
        assert_eq!(of(json!({"certificate": "YQ=="})).unwrap(), Some("a".to_owned()));
        let denied = json!({"conditions": [{"type": "Denied", "status": "True", "message": "used"}]});
        assert!(of(denied).unwrap_err().to_string().contains("used"));
    }
}
