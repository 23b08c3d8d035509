//! `fairway node token`: bootstrap tokens in kubeadm's form, good for one node unless said otherwise.

use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use fairway_controller::Requests;
use fairway_kernel_apiserver::authn::bootstrap::{SECRET_TYPE, parse};
use fairway_kernel_x509::Certificate;
use jiff::{SignedDuration, Timestamp};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

use super::credentials::hex;
use crate::cli::node::{NodeToken, NodeTokenCommand, TokenCreate, TokenDelete, TokenList};
use crate::cli::workspace::Where;
use crate::command::workspace::server::Server;
use crate::config::duration;

/// What anybody may read of a server: how it is trusted.
pub(super) const CLUSTER_INFO: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const ONE_TIME: &str = "fairway.dev/one-time";
/// Whoever has a token is in it; kubeadm's.
const GROUP: &str = "system:bootstrappers:kubeadm:default-node-token";
/// The role by which everybody may read it; kubeadm's.
const READERS: &str = "kubeadm:bootstrap-signer-clusterinfo";

/// Runs the command.
pub(super) async fn run(options: &NodeToken) -> anyhow::Result<ExitCode> {
    match &options.command {
        NodeTokenCommand::Create(options) => create(options).await?,
        NodeTokenCommand::List(options) => list(options).await?,
        NodeTokenCommand::Delete(options) => delete(options).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The root workspace of the server, and how it is reached.
async fn root(place: &Where) -> anyhow::Result<(Server, Requests)> {
    let server = Server::of_context(place, None).await?;
    let client = server.client(&fairway_kernel_tenancy::WorkspacePath::root())?;
    Ok((server, Requests::new(client)))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it stands where errors are handed on"
)]
fn told(failure: fairway_controller::Failure) -> anyhow::Error {
    anyhow!("{}", failure.sentence())
}

async fn create(options: &TokenCreate) -> anyhow::Result<()> {
    let life = duration(&options.ttl)?;
    let (server, requests) = root(&options.place).await?;
    let authorities: Vec<Certificate> = server
        .config()
        .root_cert
        .iter()
        .flatten()
        .filter_map(|der| Certificate::from_der(der).ok())
        .collect();
    let Some(authority) = authorities.first() else {
        bail!("the kubeconfig names no certificate authority by which nodes could trust the server");
    };
    let url = match &options.server {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => server.here.base.clone(),
    };
    publish(&requests, &url, &authorities).await?;
    let (id, secret) = (random(6)?, random(16)?);
    let end = Timestamp::now() + SignedDuration::from_secs(life);
    let made = requests
        .create(SECRETS, &token(&id, &secret, end, options.reusable))
        .await
        .map_err(told)?;
    if !made {
        bail!("the server has a token {id} already; try again");
    }
    println!(
        "fairway node join --server {url} --token {id}.{secret} --ca-hash sha256:{}",
        hex(&authority.public_key)
    );
    if url.contains("//127.") || url.contains("//localhost") || url.contains("//[::1]") {
        eprintln!(
            "This address leads only from this host to the server. Start the server with --listen and --tls-san, and name the address \
             for others with --server URL."
        );
    }
    Ok(())
}

fn token(id: &str, secret: &str, end: Timestamp, reusable: bool) -> Value {
    let annotations = if reusable {
        json!({})
    } else {
        json!({ONE_TIME: "true"})
    };
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
        "metadata": {"name": format!("bootstrap-token-{id}"), "namespace": "kube-system", "annotations": annotations},
        "stringData": {
            "token-id": id,
            "token-secret": secret,
            "expiration": end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": GROUP,
            "description": "made by fairway node token create",
        },
    })
}

/// Says to everybody how the server is trusted: who joins checks it by the digest.
async fn publish(requests: &Requests, url: &str, authorities: &[Certificate]) -> anyhow::Result<()> {
    use base64::Engine as _;
    let pem: String = authorities
        .iter()
        .map(|it| fairway_kernel_x509::encode("CERTIFICATE", &it.der))
        .collect();
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "users": [], "contexts": [], "current-context": "", "preferences": {},
        "clusters": [{"name": "", "cluster": {
            "server": url, "certificate-authority-data": base64::engine::general_purpose::STANDARD.encode(pem),
        }}],
    });
    let data = json!({"kubeconfig": fairway_text_yaml::to_string(&kubeconfig)});
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public";
    let group = "rbac.authorization.k8s.io";
    let objects = [
        (
            format!("{rbac}/roles"),
            json!({
                "apiVersion": format!("{group}/v1"), "kind": "Role",
                "metadata": {"name": READERS, "namespace": "kube-public"},
                "rules": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cluster-info"], "verbs": ["get"]}],
            }),
        ),
        (
            format!("{rbac}/rolebindings"),
            json!({
                "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
                "metadata": {"name": READERS, "namespace": "kube-public"},
                "roleRef": {"apiGroup": group, "kind": "Role", "name": READERS},
                "subjects": [{"apiGroup": group, "kind": "User", "name": "system:anonymous"}],
            }),
        ),
        (
            CLUSTER_INFO.trim_end_matches("/cluster-info").to_owned(),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "cluster-info", "namespace": "kube-public"}, "data": data,
            }),
        ),
    ];
    for (path, object) in &objects {
        requests.create(path, object).await.map_err(told)?;
    }
    requests
        .merge(CLUSTER_INFO, &json!({ "data": data }))
        .await
        .map_err(told)?;
    Ok(())
}

/// Lower case letters and digits, each as likely as any other.
fn random(length: usize) -> anyhow::Result<String> {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let random = SystemRandom::new();
    let mut text = String::new();
    while text.len() < length {
        let mut byte = [0];
        random
            .fill(&mut byte)
            .map_err(|_| anyhow!("there is no randomness"))?;
        // What is left over after seven times 36 would favour the first letters.
        if byte[0] < 252 {
            text.push(char::from(LETTERS[usize::from(byte[0]) % LETTERS.len()]));
        }
    }
    Ok(text)
}

async fn list(options: &TokenList) -> anyhow::Result<()> {
    let (_, requests) = root(&options.place).await?;
    let found = requests.list(SECRETS).await.map_err(told)?;
    let tokens: Vec<Value> = found
        .iter()
        .filter(|it| it["type"] == SECRET_TYPE)
        .map(shown)
        .collect();
    let mut lines = vec!["ID       EXPIRES                USES".to_owned()];
    lines.extend(tokens.iter().map(|it| {
        let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
        format!("{:<8} {:<22} {}", text("id"), text("expires"), text("uses"))
    }));
    options.output.print(&json!(tokens), &lines.join("\n"));
    Ok(())
}

/// What is told of a token; never its secret.
fn shown(token: &Value) -> Value {
    use base64::Engine as _;
    let field = |name: &str| {
        let text = token["data"][name].as_str().unwrap_or_default();
        let bytes = base64::engine::general_purpose::STANDARD.decode(text);
        String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
    };
    let annotations = &token["metadata"]["annotations"];
    let uses = match (
        annotations[ONE_TIME] == "true",
        annotations["fairway.dev/used-for"].is_null(),
    ) {
        (false, _) => "many",
        (true, true) => "one",
        (true, false) => "used",
    };
    json!({"id": field("token-id"), "expires": field("expiration"), "uses": uses})
}

async fn delete(options: &TokenDelete) -> anyhow::Result<()> {
    let id = parse(&options.token).map_or(options.token.as_str(), |(id, _)| id);
    let (_, requests) = root(&options.place).await?;
    let path = format!("{SECRETS}/bootstrap-token-{id}");
    let found = requests.get(&path).await.map_err(told)?;
    found.with_context(|| format!("there is no token {id}"))?;
    requests.delete(&path).await.map_err(told)?;
    println!("The token {id} is deleted.");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_what_the_server_takes() {
        let (id, secret) = (random(6).unwrap(), random(16).unwrap());
        let text = format!("{id}.{secret}");
        assert_eq!(parse(&text), Some((id.as_str(), secret.as_str())));
        let made = token(&id, &secret, Timestamp::UNIX_EPOCH, false);
        assert_eq!(made["stringData"]["expiration"], "1970-01-01T00:00:00Z");
        assert_eq!(made["metadata"]["annotations"][ONE_TIME], "true");
        let listed = shown(&json!({
            "data": {"token-id": "YWJjZGVm", "token-secret": "eA=="},
            "metadata": {"annotations": {ONE_TIME: "true", "fairway.dev/used-for": "x"}},
        }));
        assert_eq!(listed, json!({"id": "abcdef", "expires": "", "uses": "used"}));
    }
}
