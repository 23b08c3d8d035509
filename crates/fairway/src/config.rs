//! Settings: the file `DIR/config.yaml`, `FAIRWAY_*` variables, flags, in rising order.

mod audit;
pub(crate) mod domain;
pub(crate) mod gateway;
pub(crate) mod machines;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, bail};
use fairway_outbound::AllowedHosts;
use serde::Deserialize;

use audit::{AuditConfig, AuditSetting};
use domain::Domain;
use gateway::{GatewayConfig, GatewayFile};
use machines::{MachinesConfig, MachinesFile};

use crate::cli::Up;
use crate::cli::oidc::OidcFlags;
use crate::data_dir::{DataDir, read_if_there};

/// What may stand in `config.yaml`. Unknown settings are refused: a typing error must not pass for a setting.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    listen: Option<SocketAddr>,
    web_listen: Option<SocketAddr>,
    domain: Option<String>,
    webhook_allowed_hosts: Option<String>,
    config_management_plugins: Option<PathBuf>,
    advertise_address: Option<IpAddr>,
    external_url: Option<String>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    #[serde(default)]
    tls_san: Vec<String>,
    cert_duration: Option<String>,
    audit: Option<AuditSetting>,
    #[serde(default)]
    machines: MachinesFile,
    #[serde(default)]
    gateway: GatewayFile,
    authentication_config: Option<PathBuf>,
    log: Option<String>,
}

/// The settings of a server.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Address of the Kubernetes API.
    pub listen: SocketAddr,
    /// Address of the web listener, if one was chosen.
    pub web_listen: Option<SocketAddr>,
    /// What its sites are named below.
    pub domain: Domain,
    /// Where webhooks of repositories may go.
    pub allowed_hosts: AllowedHosts,
    /// Plugins whose programs Applications may use, if any.
    pub config_management_plugins: Option<PathBuf>,
    /// Where others reach it; `None`: there.
    pub advertise: Option<IpAddr>,
    /// The address of the API for users, without a slash at its end; `None`: there.
    pub external_url: Option<String>,
    /// A serving certificate of the user's own, and its key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// More names for our own certificate.
    pub tls_san: Vec<String>,
    /// Seconds that our own certificates are valid, and the most for which others' are signed.
    pub cert_duration: i64,
    /// How an audit log is kept, if it is.
    pub audit: Option<AuditConfig>,
    /// How machines run here, if they do.
    pub machines: Option<MachinesConfig>,
    /// Where disk images may come from, also if machines run elsewhere only.
    pub image_hosts: AllowedHosts,
    /// How services are published here, if they are.
    pub gateway: Option<GatewayConfig>,
    /// Which OIDC issuers are trusted.
    pub oidc: OidcFlags,
    /// What is logged.
    pub log: String,
}

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6443);

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
        let external_url = flags.external_url.clone().or(file.external_url);
        let external_url = external_url.map(|url| external_url_of(&url)).transpose()?;
        // Our own certificate must be good for the address that users are told.
        let host = external_url.as_deref().map(|url| host_of(url).to_owned());
        tls_san.extend(host.filter(|host| !tls_san.contains(host)));
        let cert_duration = match flags.cert_duration.clone().or(file.cert_duration) {
            None => fairway_kernel_apiserver::pki::LEAF_SECONDS,
            Some(text) => duration(&text)?,
        };
        let hosts = flags.webhook_allowed_hosts.clone().or(file.webhook_allowed_hosts);
        let allowed_hosts = AllowedHosts::parse(hosts.as_deref().unwrap_or_default())
            .map_err(anyhow::Error::msg)
            .context("webhookAllowedHosts is wrong")?;
        let listen = flags.listen.or(file.listen).unwrap_or(DEFAULT_LISTEN);
        let domain = flags.domain.clone().or(file.domain);
        let domain = domain.map(|name| Domain::parse(&name).context("the domain is wrong"));
        let domain = domain.transpose()?.unwrap_or_default();
        let image_hosts = machines::image_hosts(&file.machines, &flags.machines.host)?;
        let mut machines = MachinesConfig::merge(file.machines, &flags.machines)?;
        if let Some(machines) = &mut machines {
            // Nodes that reach the server reach its machines there, too.
            machines.set_seen_at(listen.ip());
        }
        Ok(Self {
            allowed_hosts,
            cert_duration,
            listen,
            web_listen: flags.web_listen.or(file.web_listen),
            config_management_plugins: flags
                .config_management_plugins
                .clone()
                .or(file.config_management_plugins),
            advertise: flags.advertise_address.or(file.advertise_address),
            external_url,
            tls,
            tls_san,
            audit: AuditConfig::merge(file.audit, &flags.audit)?,
            machines,
            image_hosts,
            gateway: GatewayConfig::merge(file.gateway, &flags.gateway, &domain)?,
            domain,
            oidc: oidc(&flags.oidc, file.authentication_config),
            log: flags
                .log
                .clone()
                .or(file.log)
                .unwrap_or_else(|| "info".to_owned()),
        })
    }
}

/// The shortest life of our own certificates: below this, renewal would be all that the server does.
const SHORTEST_LIFE: i64 = 10;

/// A span such as `720h`, `1h30m` or `45s`, in seconds.
pub(crate) fn duration(text: &str) -> anyhow::Result<i64> {
    let mut seconds: i64 = 0;
    let mut digits = String::new();
    for letter in text.chars() {
        let unit: i64 = match letter {
            '0'..='9' => {
                digits.push(letter);
                continue;
            }
            'h' => 3_600,
            'm' => 60,
            's' => 1,
            _ => bail!("{text:?} is not a time; write hours, minutes and seconds, such as 720h or 1h30m"),
        };
        let number: i64 = std::mem::take(&mut digits)
            .parse()
            .with_context(|| format!("{text:?} is not a time such as 720h or 1h30m"))?;
        seconds = number
            .checked_mul(unit)
            .and_then(|more| seconds.checked_add(more))
            .with_context(|| format!("{text:?} is too long"))?;
    }
    if !digits.is_empty() {
        bail!("{text:?} lacks a unit; write hours, minutes and seconds, such as 720h or 1h30m");
    }
    // Longer than the authority itself is no use, and far below what dates can tell.
    if !(SHORTEST_LIFE..=10 * fairway_kernel_apiserver::pki::LEAF_SECONDS).contains(&seconds) {
        bail!(
            "the life of certificates must be between {SHORTEST_LIFE} seconds and ten years, and {text:?} is not"
        );
    }
    Ok(seconds)
}

/// The address of a server: `https`, a host, perhaps a port and a path, and nothing else.
fn external_url_of(text: &str) -> anyhow::Result<String> {
    let wrong =
        || format!("{text:?} is not an address for users; write it such as https://api.example.com:6443");
    let url = text.trim_end_matches('/');
    let Some(rest) = url.strip_prefix("https://") else {
        bail!(wrong());
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
    let is_name = !host.is_empty()
        && host.split('.').all(|part| !part.is_empty())
        && host
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-.".contains(c));
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if !(is_address || is_name) || !is_port || !path.chars().all(is_plain) || path.contains("clusters/") {
        bail!(wrong());
    }
    Ok(url.to_owned())
}

/// The host in such an address.
fn host_of(url: &str) -> &str {
    let rest = url.strip_prefix("https://").unwrap_or(url);
    let authority = rest.split('/').next().unwrap_or_default();
    if let Some(inner) = authority.strip_prefix('[') {
        return inner.split(']').next().unwrap_or_default();
    }
    authority.split(':').next().unwrap_or_default()
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
    fn times_are_read() {
        for (text, want) in [
            ("8760h", Some(31_536_000)),
            ("1h30m", Some(5_400)),
            ("45s", Some(45)),
            ("5s", None),
            ("90", None),
            ("", None),
            ("h", None),
            ("1d", None),
            ("99999999999999999h", None),
            ("-1h", None),
        ] {
            assert_eq!(duration(text).ok(), want, "{text}");
        }
    }

    #[test]
    fn addresses_for_users() {
        for (text, want) in [
            ("https://api.example.com", Some("api.example.com")),
            ("https://api.example.com:6443/", Some("api.example.com")),
            ("https://10.0.0.1:6443", Some("10.0.0.1")),
            ("https://[2001:db8::1]:6443/k8s", Some("2001:db8::1")),
            ("https://[2001:db8::1]", Some("2001:db8::1")),
            ("http://api.example.com", None),
            ("api.example.com", None),
            ("https://", None),
            ("https://:6443", None),
            ("https://a..b", None),
            ("https://a:0", None),
            ("https://a:99999", None),
            ("https://user@a", None),
            ("https://a/?q", None),
            ("https://a/clusters/root", None),
            ("https://[::x]", None),
        ] {
            let got = external_url_of(text).ok();
            assert_eq!(got.as_deref().map(host_of), want, "{text}");
        }
    }

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
