//! `fairway node join`: trust the server by the digest of its authority, show the token, ask for a certificate, keep it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_kernel_x509::{Certificate, encode};
use http::Uri;
use kube::config::{AuthInfo, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

use super::credentials::{self, hex};
use super::token::CLUSTER_INFO;
use crate::cli::machines::HostFlags;
use crate::cli::node::NodeJoin;
use crate::config::machines::{MachinesConfig, MachinesFile};
use crate::data_dir::{DataDir, read_if_there, write_private};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the command.
pub(super) async fn run(options: &NodeJoin) -> anyhow::Result<ExitCode> {
    let data = DataDir::find(options.data.dir.as_deref())?;
    let host = HostFlags {
        node_name: options.node_name.clone(),
        ..HostFlags::default()
    };
    let node = MachinesConfig::of_host(MachinesFile::default(), &host)?.node;
    let path = data.node_kubeconfig();
    if !options.again && read_if_there(&path)?.is_some() {
        bail!(
            "this host has joined already ({}); join again with --again",
            path.display()
        );
    }
    let server: Uri = options
        .server
        .parse()
        .ok()
        .filter(|it: &Uri| it.scheme_str() == Some("https") && it.host().is_some())
        .with_context(|| {
            format!(
                "--server {:?} is no address such as https://10.0.0.1:6443",
                options.server
            )
        })?;
    let trusted = trusted(&server, &options.ca_hash).await?;
    let mut config = Config::new(server);
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.root_cert = Some(trusted.iter().map(|it| it.der.clone()).collect());
    config.auth_info = AuthInfo {
        token: Some(options.token.clone().into()),
        ..AuthInfo::default()
    };
    let client = Client::try_from(config).context("the server cannot be used")?;
    let pair = credentials::ask(&client, &node, Duration::from_secs(options.timeout))
        .await
        .context("this host did not join; if the token is old or was used, make a new one with `fairway node token create`")?;
    let authority: String = trusted.iter().map(|it| encode("CERTIFICATE", &it.der)).collect();
    let kubeconfig = credentials::kubeconfig(&options.server, &authority, &node, &pair);
    data.create()?;
    write_private(&path, fairway_text_yaml::to_string(&kubeconfig).as_bytes())?;
    println!("This host has joined as node {node}. Run its machines with:\n");
    println!("    fairway node --data {}", data.path().display());
    Ok(ExitCode::SUCCESS)
}

/// The authorities of the server that the digest vouches for. What is read before they are known is believed in nothing else.
async fn trusted(server: &Uri, digest: &str) -> anyhow::Result<Vec<Certificate>> {
    let mut config = Config::new(server.clone());
    config.accept_invalid_certs = true;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let client = Client::try_from(config).context("the server cannot be used")?;
    let request = http::Request::get(CLUSTER_INFO).body(Vec::new())?;
    let found: Value = client.request(request).await.map_err(credentials::told).with_context(|| {
        format!("{server} does not tell who it is; make a token there with `fairway node token create`, and join with what it prints")
    })?;
    let text = found["data"]["kubeconfig"].as_str().unwrap_or_default();
    let authorities = authorities(text)?;
    vouched(authorities, digest)
}

/// The authorities in what a server says of itself.
fn authorities(text: &str) -> anyhow::Result<Vec<Certificate>> {
    let kubeconfig = Kubeconfig::from_yaml(text).context("the server's cluster-info cannot be understood")?;
    let data = kubeconfig
        .clusters
        .first()
        .and_then(|it| it.cluster.as_ref()?.certificate_authority_data.clone())
        .context("the server's cluster-info names no certificate authority")?;
    let pem = STANDARD
        .decode(data)
        .ok()
        .and_then(|it| String::from_utf8(it).ok());
    Certificate::all_from_pem(&pem.unwrap_or_default())
        .context("the server's cluster-info holds no certificates")
}

/// Those whose public key has the digest.
fn vouched(authorities: Vec<Certificate>, digest: &str) -> anyhow::Result<Vec<Certificate>> {
    let expected = digest
        .strip_prefix("sha256:")
        .filter(|it| it.len() == 64)
        .with_context(|| format!("--ca-hash {digest:?} is not sha256: and 64 hexadecimal digits"))?
        .to_lowercase();
    let (good, others): (Vec<_>, Vec<_>) = authorities
        .into_iter()
        .partition(|it| hex(&it.public_key) == expected);
    if good.is_empty() {
        let found: Vec<String> = others
            .iter()
            .map(|it| format!("sha256:{}", hex(&it.public_key)))
            .collect();
        bail!(
            "this is not the server that the token is from: its certificate authority is {}, and not {digest}",
            found.join(", ")
        );
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use fairway_kernel_apiserver::pki::new_authority;

    use super::*;

    #[test]
    fn only_what_is_vouched_for_is_trusted() {
        let make = || Certificate::first_from_pem(&new_authority(1_000_000).unwrap().certificate).unwrap();
        let (ours, theirs) = (make(), make());
        let digest = format!("sha256:{}", hex(&ours.public_key));
        let all = vec![theirs.clone(), ours.clone()];
        assert_eq!(vouched(all, &digest).unwrap(), [ours]);
        assert!(vouched(vec![theirs.clone()], &digest).is_err());
        assert!(vouched(vec![theirs], "abc").is_err());
    }
}
