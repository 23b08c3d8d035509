//! Settings of what publishes services.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, bail};
use fairway_gateway_engine::Settings;
use fairway_outbound::AllowedHosts;
use serde::Deserialize;

use super::domain::Domain;
use crate::cli::gateway::GatewayFlags;

/// Where names are answered, unless somebody chooses another place.
const DNS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 10053);

/// What `config.yaml` may say of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct GatewayFile {
    enabled: Option<bool>,
    address: Option<IpAddr>,
    pool: Option<String>,
    domain: Option<String>,
    dns_listen: Option<SocketAddr>,
    allowed_hosts: Option<String>,
    access_log: Option<PathBuf>,
    start_traces: Option<bool>,
    refuse_uncounted: Option<bool>,
}

/// How services are published here.
#[derive(Clone, Debug)]
pub(crate) struct GatewayConfig {
    pub settings: Settings,
    /// Where published names are answered.
    pub dns: SocketAddr,
    /// Where policies may ask for keys, metadata and the like.
    pub allowed_hosts: AllowedHosts,
    /// Where requests are told of.
    pub access_log: Option<PathBuf>,
    /// Whether requests that come without a trace get one.
    pub start_traces: bool,
}

impl GatewayConfig {
    /// From the file and the flags; `None`: none are.
    pub(super) fn merge(
        file: GatewayFile,
        flags: &GatewayFlags,
        domain: &Domain,
    ) -> anyhow::Result<Option<Self>> {
        if flags.no_gateway || file.enabled == Some(false) {
            return Ok(None);
        }
        let mut settings = Settings::default();
        if let Some(address) = flags.gateway_address.or(file.address) {
            settings.address = address;
        }
        if let Some(text) = flags.gateway_pool.clone().or(file.pool) {
            settings.pool = Some(network(&text)?);
        }
        settings.domain = match flags.gateway_domain.clone().or(file.domain) {
            Some(name) => Domain::parse(&name)
                .context("the domain of Routes is wrong")?
                .to_string(),
            None => domain.apps(),
        };
        settings.refuse_uncounted = flags.gateway_refuse_uncounted || file.refuse_uncounted == Some(true);
        let hosts = flags.gateway_allowed_hosts.clone().or(file.allowed_hosts);
        let allowed_hosts = AllowedHosts::parse(hosts.as_deref().unwrap_or_default())
            .map_err(anyhow::Error::msg)
            .context("the allowed hosts of policies are wrong")?;
        Ok(Some(Self {
            settings,
            allowed_hosts,
            dns: flags.dns_listen.or(file.dns_listen).unwrap_or(DNS),
            access_log: flags.gateway_access_log.clone().or(file.access_log),
            start_traces: flags.gateway_start_traces || file.start_traces == Some(true),
        }))
    }
}

/// `192.0.2.0/27`.
fn network(text: &str) -> anyhow::Result<(Ipv4Addr, u8)> {
    let wrong = || format!("{text:?} is not a network for Gateways; write it such as 192.0.2.0/27");
    let (address, bits) = text.split_once('/').with_context(wrong)?;
    let address: Ipv4Addr = address.parse().with_context(wrong)?;
    let bits: u8 = bits.parse().with_context(wrong)?;
    // More than sixteen bits of addresses are no pool but a mistake.
    if !(16..=32).contains(&bits) {
        bail!("{}; it must have between 16 and 32 bits", wrong());
    }
    Ok((address, bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read() {
        for (text, want) in [
            ("192.0.2.0/27", Some((Ipv4Addr::new(192, 0, 2, 0), 27))),
            ("192.0.2.0", None),
            ("192.0.2.0/8", None),
            ("192.0.2.0/33", None),
            ("fd00::/64", None),
        ] {
            assert_eq!(network(text).ok(), want, "{text}");
        }
    }

    #[test]
    fn flags_go_first() {
        let domain = Domain::default();
        let file = GatewayFile {
            address: Some(Ipv4Addr::new(192, 0, 2, 1).into()),
            domain: Some("apps.example.com".to_owned()),
            ..GatewayFile::default()
        };
        let flags = GatewayFlags {
            gateway_address: Some(Ipv4Addr::new(192, 0, 2, 2).into()),
            ..GatewayFlags::default()
        };
        let merged = GatewayConfig::merge(file.clone(), &flags, &domain)
            .unwrap()
            .unwrap();
        assert_eq!(merged.settings.address, Ipv4Addr::new(192, 0, 2, 2));
        assert_eq!(merged.settings.domain, "apps.example.com");
        let unnamed = GatewayConfig::merge(GatewayFile::default(), &flags, &domain);
        assert_eq!(
            unnamed.unwrap().unwrap().settings.domain,
            "apps.fairway.localhost"
        );
        let off = GatewayFlags {
            no_gateway: true,
            ..flags
        };
        assert!(GatewayConfig::merge(file, &off, &domain).unwrap().is_none());
    }
}
