//! Certificates and keys of the installation: made on the first start, kept from then on.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context, anyhow};
use fairway_kernel_apiserver::chance::Clock;
use fairway_kernel_apiserver::pki::{self, Pair};

use crate::config::Config;
use crate::data_dir::{DataDir, read_if_there, write_private};

/// Names by which the API is reached inside and outside.
const NAMES: [&str; 6] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "fairway.localhost",
];

/// What a server shows and trusts.
pub(super) struct Identity {
    /// Our own authority, which signs client certificates.
    pub authority: Pair,
    /// The certificate that is served.
    pub serving: Pair,
    /// What clients must trust to believe it.
    pub trust: String,
    /// The administrator's client certificate.
    pub admin: Pair,
    /// Signs service-account tokens (PKCS#8).
    pub token_key: Vec<u8>,
}

/// Loads what is there and makes what is not.
pub(super) fn load(data: &DataDir, config: &Config, listen: SocketAddr) -> anyhow::Result<Identity> {
    let now = Clock.unix();
    let authority = pair(data, "ca", || pki::new_authority(now))?;
    let admin = pair(data, "admin", || {
        pki::client(&authority, "fairway-admin", &["system:masters"], now)
    })?;
    let (serving, trust) = match &config.tls {
        Some((certificate, key)) => {
            let read = |path: &std::path::Path| {
                std::fs::read_to_string(path)
                    .with_context(|| format!("the certificate file {} could not be read", path.display()))
            };
            let given = Pair {
                certificate: read(certificate)?,
                key: read(key)?,
            };
            // Clients must trust whoever issued the given certificate; the chain in the file is the best we know.
            let trust = given.certificate.clone();
            (given, trust)
        }
        None => (
            serving(&authority, config, listen, now)?,
            authority.certificate.clone(),
        ),
    };
    Ok(Identity {
        authority,
        serving,
        trust,
        admin,
        token_key: crate::signing_keys::load_or_create(data)?,
    })
}

/// The serving certificate is made on every start: it costs a millisecond and always fits the address.
fn serving(authority: &Pair, config: &Config, listen: SocketAddr, now: i64) -> anyhow::Result<Pair> {
    let mut addresses = vec![
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
    ];
    addresses.push(IpAddr::V4(
        fairway_kernel_apiserver::admission::service::ServiceNetwork::default().api_address(),
    ));
    if !listen.ip().is_unspecified() && !addresses.contains(&listen.ip()) {
        addresses.push(listen.ip());
    }
    let mut names: Vec<&str> = NAMES.to_vec();
    for san in &config.tls_san {
        match san.parse() {
            Ok(address) => addresses.push(address),
            Err(_) => names.push(san),
        }
    }
    Ok(pki::serving(authority, &addresses, &names, now)?)
}

fn pair(
    data: &DataDir,
    name: &str,
    make: impl FnOnce() -> Result<Pair, pki::PkiError>,
) -> anyhow::Result<Pair> {
    let (certificate_path, key_path) = data.pki(name);
    let text =
        |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|_| anyhow!("{name} in the pki folder is damaged"));
    match (read_if_there(&certificate_path)?, read_if_there(&key_path)?) {
        (Some(certificate), Some(key)) => Ok(Pair {
            certificate: text(certificate)?,
            key: text(key)?,
        }),
        _ => {
            let made = make()?;
            // The key first: a certificate without its key would be taken for a complete pair.
            write_private(&key_path, made.key.as_bytes())?;
            write_private(&certificate_path, made.certificate.as_bytes())?;
            Ok(made)
        }
    }
}
