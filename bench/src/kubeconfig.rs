//! Where and as whom to connect, from a kubeconfig with one cluster and one user: what `fairway up` and `peer` write.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::client::Endpoint;

/// What a client needs to know, as PEM.
pub(crate) struct Identity<'a> {
    pub(crate) ca: &'a [u8],
    pub(crate) certificate: &'a [u8],
    pub(crate) key: &'a [u8],
}

pub(crate) fn endpoint(path: &Path) -> Result<Endpoint> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let field = |key: &str| scalar(&text, key).with_context(|| format!("{} has no `{key}`", path.display()));
    let data = |key: &str| -> Result<Vec<u8>> {
        BASE64_STANDARD
            .decode(field(key)?)
            .with_context(|| format!("`{key}` is not base64"))
    };
    let server = field("server")?;
    let ca = data("certificate-authority-data")?;
    if let Some(token) = scalar(&text, "token") {
        return connect_to(server, tls(&ca, None)?, Some(token.to_owned()));
    }
    let (certificate, key) = (data("client-certificate-data")?, data("client-key-data")?);
    let identity = Identity {
        ca: &ca,
        certificate: &certificate,
        key: &key,
    };
    connect_to(server, tls(&ca, Some(&identity))?, None)
}

pub(crate) fn connect_to(server: &str, tls: ClientConfig, token: Option<String>) -> Result<Endpoint> {
    let Some(authority) = server.strip_prefix("https://") else {
        bail!("the server's address must start with https://, not `{server}`");
    };
    let authority = authority.trim_end_matches('/').to_owned();
    Ok(Endpoint {
        authority,
        tls: Arc::new(tls),
        token,
    })
}

/// TLS that trusts one CA and shows a client certificate, speaking HTTP/2 only.
pub(crate) fn tls(ca: &[u8], identity: Option<&Identity<'_>>) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca) {
        roots.add(certificate.context("the CA is not PEM")?)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let mut config = match identity {
        Some(identity) => {
            let chain =
                CertificateDer::pem_slice_iter(identity.certificate).collect::<Result<Vec<_>, _>>()?;
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(identity.key)?)?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

pub(crate) fn write(path: &Path, server: &str, identity: &Identity<'_>) -> Result<()> {
    let encode = |pem: &[u8]| BASE64_STANDARD.encode(pem);
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: peer\n\
         clusters:\n- name: peer\n  cluster:\n    server: {server}\n    certificate-authority-data: {}\n\
         users:\n- name: admin\n  user:\n    client-certificate-data: {}\n    client-key-data: {}\n\
         contexts:\n- name: peer\n  context:\n    cluster: peer\n    user: admin\n",
        encode(identity.ca),
        encode(identity.certificate),
        encode(identity.key),
    );
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The first value of a key, in YAML's block style or in JSON: enough for a file with one cluster and one user.
fn scalar<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let line = line.trim_start_matches([' ', '-', '{', '"']);
        let value = line
            .strip_prefix(key)?
            .trim_start_matches('"')
            .strip_prefix(':')?;
        let value = value.trim().trim_end_matches(',').trim_matches(['"', '\'']);
        (!value.is_empty()).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::scalar;

    #[test]
    fn finds_values_in_yaml_and_json() {
        let yaml = "clusters:\n- cluster:\n    certificate-authority-data: QQ==\n    server: 'https://x:1'\n";
        let json = "{\n  \"cluster\": {\n    \"server\": \"https://x:1\",\n    \"token\": \"t\"\n";
        assert_eq!(scalar(yaml, "server"), Some("https://x:1"));
        assert_eq!(scalar(yaml, "certificate-authority-data"), Some("QQ=="));
        assert_eq!(scalar(json, "server"), Some("https://x:1"));
        assert_eq!(scalar(json, "token"), Some("t"));
        assert_eq!(scalar(yaml, "token"), None);
        assert_eq!(scalar(yaml, "cluster"), None, "a mapping is no value");
    }
}
