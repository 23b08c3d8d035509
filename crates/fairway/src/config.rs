//! Settings: the file `DIR/config.yaml`, `FAIRWAY_*` variables, flags, in rising order.

mod audit;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, bail};
use serde::Deserialize;

use audit::{AuditConfig, AuditSetting};

use crate::cli::Up;
use crate::cli::oidc::OidcFlags;
use crate::data_dir::{DataDir, read_if_there};

/// What may stand in `config.yaml`. Unknown settings are refused: a typing error must not pass for a setting.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    listen: Option<SocketAddr>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    #[serde(default)]
    tls_san: Vec<String>,
    audit: Option<AuditSetting>,
    authentication_config: Option<PathBuf>,
    log: Option<String>,
}

/// The settings of a server.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Address of the Kubernetes API.
    pub listen: SocketAddr,
    /// A serving certificate of the user's own, and its key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// More names for our own certificate.
    pub tls_san: Vec<String>,
    /// How an audit log is kept, if it is.
    pub audit: Option<AuditConfig>,
    /// Which OIDC issuers are trusted.
    pub oidc: OidcFlags,
    /// What is logged.
    pub log: String,
}

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 6443);

impl Config {
    /// Reads them all. Flags and environment have been merged by the command line already.
    pub(crate) fn read(data: &DataDir, flags: &Up) -> anyhow::Result<Self> {
        let path = data.config();
        let file = match read_if_there(&path)? {
            None => File::default(),
            Some(content) => {
                parse(&content).with_context(|| format!("the settings in {} are wrong", path.display()))?
            }
        };
        let tls = match (
            flags.tls_cert.clone().or(file.tls_cert),
            flags.tls_key.clone().or(file.tls_key),
        ) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => bail!("a serving certificate and its key must be given together (tlsCert, tlsKey)"),
        };
        let mut tls_san = file.tls_san;
        tls_san.extend(flags.tls_san.iter().cloned());
        Ok(Self {
            listen: flags.listen.or(file.listen).unwrap_or(DEFAULT_LISTEN),
            tls,
            tls_san,
            audit: AuditConfig::merge(file.audit, &flags.audit)?,
            oidc: oidc(&flags.oidc, file.authentication_config),
            log: flags
                .log
                .clone()
                .or(file.log)
                .unwrap_or_else(|| "info".to_owned()),
        })
    }
}

/// The file's issuers, unless flags name some.
fn oidc(flags: &OidcFlags, file: Option<PathBuf>) -> OidcFlags {
    let mut oidc = flags.clone();
    if oidc.oidc_issuer_url.is_none() && oidc.authentication_config.is_none() {
        oidc.authentication_config = file;
    }
    oidc
}

fn parse(content: &[u8]) -> anyhow::Result<File> {
    let value = fairway_text_yaml::from_slice(content, fairway_text_yaml::Limits::default())?;
    if value.is_null() {
        return Ok(File::default());
    }
    Ok(serde_json::from_value(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_typing_errors_are_told() {
        let file = parse(b"listen: 127.0.0.1:7000\naudit: false\n").unwrap();
        assert_eq!(file.listen, Some("127.0.0.1:7000".parse().unwrap()));
        assert!(matches!(file.audit, Some(AuditSetting::Kept(false))));
        let file = parse(b"audit: {policyFile: p.yaml, logMaxage: 3}\n").unwrap();
        assert!(matches!(file.audit, Some(AuditSetting::As(_))));
        assert!(parse(b"audit: {policy: p.yaml}\n").is_err());
        assert!(parse(b"").unwrap().listen.is_none());
        let error = parse(b"lisen: 127.0.0.1:7000\n").unwrap_err().to_string();
        assert!(error.contains("lisen"), "{error}");
    }
}
