//! What a server shows and trusts: loaded at the start, and again whenever the files have changed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use fairway_kernel_apiserver::http::listener::{self, Tls};
use fairway_kernel_apiserver::pki::{Authority, Pair};
use fairway_kernel_x509::Certificate;
use tracing::info;

use crate::certs::{self, Name, Wanted};
use crate::config::Config;
use crate::data_dir::{DataDir, read_if_there, write_private};
use crate::kubeconfig;

/// Names by which the API is reached inside and outside.
const NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Where identities come from.
pub(super) struct Source {
    data: DataDir,
    /// Who brings a serving certificate of his own.
    given: Option<(PathBuf, PathBuf)>,
    wanted: Wanted,
    /// The address in the kubeconfig.
    server: String,
}

/// What a server shows and trusts.
pub(super) struct Identity {
    /// Our own authority, which signs client certificates.
    pub authority: Arc<Authority>,
    /// What the listener serves, and whose client certificates it believes.
    pub tls: Arc<Tls>,
    /// What clients must trust to believe it.
    pub trust: Arc<str>,
    /// Whose client certificates it believes.
    pub client_trust: Arc<str>,
    /// When each certificate ends, in seconds since 1970.
    pub ends: Vec<(&'static str, i64)>,
    /// When to look at the certificates again, even if no file changes.
    pub next_renewal: i64,
}

impl Source {
    /// The certificates of a server with these settings.
    pub(super) fn new(data: &DataDir, config: &Config, listen: SocketAddr, server: String) -> Self {
        Self {
            data: data.clone(),
            given: config.tls.clone(),
            wanted: wanted(config, listen),
            server,
        }
    }

    /// Files whose change means that there is something new to load.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let (given_certificate, given_key) = self.given.clone().unzip();
        let own = [
            self.data.pki("ca").0,
            self.data.pki("ca").1,
            self.data.pki("ca-cross").0,
            self.data.pki("serving").0,
            self.data.pki("admin").0,
        ];
        own.into_iter()
            .chain(given_certificate)
            .chain(given_key)
            .collect()
    }

    /// Renews what is due, makes what is missing, and loads all of it. Certificates that were given are only read.
    pub(super) fn load(&self, now: i64) -> anyhow::Result<Identity> {
        let _lock = certs::lock(&self.data)?;
        let files = certs::authority(&self.data, now)?;
        let (authority, trusted) = (files.load()?, files.trusted()?);
        let mut ends = vec![("ca", authority.certificate().life.end)];
        let mut next_renewal = i64::MAX;
        let mut own = |name: Name| -> anyhow::Result<Pair> {
            let before = certs::read_pair(&self.data, name.text())?;
            let read = before
                .as_ref()
                .and_then(|pair| Certificate::first_from_pem(&pair.certificate).ok());
            let pair = match (
                certs::judge(name, read.as_ref(), &trusted, Some(&self.wanted), now),
                before,
            ) {
                (None, Some(pair)) => pair,
                (reason, _) => {
                    info!(certificate = name.text(), ?reason, "a certificate is made");
                    certs::renew(&self.data, &authority, name, Some(&self.wanted), now)?
                }
            };
            let certificate = Certificate::first_from_pem(&pair.certificate)?;
            ends.push((name.text(), certificate.life.end));
            next_renewal = next_renewal.min(certs::renewal(&certificate));
            Ok(pair)
        };
        let admin = own(Name::Admin)?;
        let (serving, trust) = match &self.given {
            None => {
                let mut serving = own(Name::Serving)?;
                serving.certificate.push_str(files.cross.as_deref().unwrap_or(""));
                (serving, files.pair.certificate.clone())
            }
            Some((certificate, key)) => {
                let given = Pair {
                    certificate: read(certificate)?,
                    key: read(key)?,
                };
                // Clients must trust whoever issued the given certificate; the chain in the file is the best we know.
                let trust = given.certificate.clone();
                if let Ok(first) = Certificate::first_from_pem(&given.certificate) {
                    ends.push(("given", first.life.end));
                }
                (given, trust)
            }
        };
        let tls = listener::tls(&serving, &files.pair.certificate)?;
        write_kubeconfig(&self.data, &kubeconfig::make(&self.server, &trust, &admin))?;
        Ok(Identity {
            authority: Arc::new(authority),
            tls,
            trust: trust.into(),
            client_trust: files.pair.certificate.into(),
            ends,
            next_renewal,
        })
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path)
        .with_context(|| format!("the certificate file {} could not be read", path.display()))
}

/// Puts our entries right in the administrator's kubeconfig. What somebody else has added to it stays, and if ours are right
/// already, the file is left alone.
fn write_kubeconfig(data: &DataDir, ours: &serde_json::Value) -> anyhow::Result<()> {
    let path = data.kubeconfig();
    let limits = fairway_text_yaml::Limits::default();
    let before = read_if_there(&path)?
        .and_then(|content| fairway_text_yaml::from_slice(&content, limits).ok())
        .filter(serde_json::Value::is_object);
    let mut after = before.clone().unwrap_or_default();
    kubeconfig::refresh(&mut after, ours);
    if before.as_ref() == Some(&after) {
        return Ok(());
    }
    write_private(&path, fairway_text_yaml::to_string(&after).as_bytes())
}

/// Names by which this server's API is reached.
pub(super) fn names(config: &Config) -> Vec<String> {
    let more = config.tls_san.iter().filter(|san| san.parse::<IpAddr>().is_err());
    let own = NAMES.map(str::to_owned).into_iter();
    let sites = [config.domain.to_string(), format!("*.{}", config.domain)];
    own.chain(sites).chain(more.cloned()).collect()
}

fn wanted(config: &Config, listen: SocketAddr) -> Wanted {
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
    addresses.extend(config.tls_san.iter().filter_map(|san| san.parse::<IpAddr>().ok()));
    Wanted {
        names: names(config),
        addresses,
        seconds: config.cert_duration,
    }
}
