//! Clusters as Argo CD keeps them: Secrets with an address, and a configuration in JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};
use kube::{Client, Config};
use serde::Deserialize;
use serde_json::Value;

/// The configuration of a cluster.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClusterConfig {
    username: String,
    password: String,
    bearer_token: String,
    tls_client_config: Tls,
    exec_provider_config: Value,
    aws_auth_config: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Tls {
    insecure: bool,
    server_name: String,
    ca_data: String,
    cert_data: String,
    key_data: String,
}

/// A field of a Secret as text.
pub(crate) fn text(secret: &Value, field: &str) -> Option<String> {
    let data = secret["data"][field].as_str()?;
    String::from_utf8(BASE64.decode(data).ok()?).ok()
}

/// A client of the cluster that a Secret describes; why there is none.
pub(super) fn client(secret: &Value) -> Result<Client, String> {
    let server = text(secret, "server").ok_or("it has no server")?;
    let config = match text(secret, "config") {
        Some(text) => {
            serde_json::from_str::<ClusterConfig>(&text).map_err(|error| format!("config: {error}"))?
        }
        None => ClusterConfig::default(),
    };
    if !config.exec_provider_config.is_null() || !config.aws_auth_config.is_null() {
        return Err("config: execProviderConfig and awsAuthConfig start programs, which Fairway does not; use bearerToken or \
                    tlsClientConfig"
            .to_owned());
    }
    let some = |text: String| (!text.is_empty()).then_some(text);
    let tls = config.tls_client_config;
    let kubeconfig = Kubeconfig {
        clusters: vec![NamedCluster {
            name: "destination".to_owned(),
            cluster: Some(Cluster {
                server: Some(server),
                insecure_skip_tls_verify: Some(tls.insecure),
                certificate_authority_data: some(tls.ca_data),
                tls_server_name: some(tls.server_name),
                ..Cluster::default()
            }),
            other: Default::default(),
        }],
        auth_infos: vec![NamedAuthInfo {
            name: "engine".to_owned(),
            auth_info: Some(AuthInfo {
                username: some(config.username),
                password: some(config.password).map(Into::into),
                token: some(config.bearer_token).map(Into::into),
                client_certificate_data: some(tls.cert_data),
                client_key_data: some(tls.key_data).map(Into::into),
                ..AuthInfo::default()
            }),
            other: Default::default(),
        }],
        contexts: vec![NamedContext {
            name: "destination".to_owned(),
            context: Some(Context {
                cluster: "destination".to_owned(),
                user: Some("engine".to_owned()),
                ..Context::default()
            }),
            other: Default::default(),
        }],
        current_context: Some("destination".to_owned()),
        ..Kubeconfig::default()
    };
    // Nothing in it waits: no program is started and no file is read.
    let config = futures::executor::block_on(Config::from_custom_kubeconfig(
        kubeconfig,
        &KubeConfigOptions::default(),
    ));
    let config = config.map_err(|error| error.to_string())?;
    Client::try_from(config).map_err(|error| error.to_string())
}
