//! Settings of the machines that this process runs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context, bail};
use fairway_outbound::AllowedHosts;
use serde::Deserialize;

use crate::cli::machines::MachineFlags;

/// The port of name servers.
const DNS: u16 = 53;
/// The longest name of a Node.
const LONGEST_NAME: usize = 253;

/// What `config.yaml` may say of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct MachinesFile {
    enabled: Option<bool>,
    node_name: Option<String>,
    #[serde(default)]
    node_addresses: Vec<IpAddr>,
    image_allowed_hosts: Option<String>,
}

/// How machines run here.
#[derive(Clone, Debug)]
pub(crate) struct MachinesConfig {
    /// This host's name as a Node.
    pub node: String,
    /// Where node ports are opened.
    pub addresses: Vec<IpAddr>,
    /// Where disk images may come from.
    pub image_hosts: AllowedHosts,
}

impl MachinesConfig {
    /// From the file and the flags; `None`: no machines run here.
    pub(super) fn merge(file: MachinesFile, flags: &MachineFlags) -> anyhow::Result<Option<Self>> {
        if flags.no_machines || file.enabled == Some(false) {
            return Ok(None);
        }
        let node = match flags.node_name.clone().or(file.node_name) {
            Some(name) => checked(name)?,
            None => host_name(),
        };
        let addresses = match (flags.node_addresses.clone(), file.node_addresses) {
            (flags, _) if !flags.is_empty() => flags,
            (_, file) if !file.is_empty() => file,
            _ => vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        };
        let hosts = flags.image_allowed_hosts.clone().or(file.image_allowed_hosts);
        let image_hosts = AllowedHosts::parse(hosts.as_deref().unwrap_or_default())
            .map_err(anyhow::Error::msg)
            .context("imageAllowedHosts is wrong")?;
        Ok(Some(Self {
            node,
            addresses,
            image_hosts,
        }))
    }
}

fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty() && label.chars().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    name.len() <= LONGEST_NAME && name.split('.').all(is_label)
}

fn checked(name: String) -> anyhow::Result<String> {
    if !is_name(&name) {
        bail!(
            "{name:?} cannot be the name of a Node; use lower case letters, digits, - and . (--node-name NAME)"
        );
    }
    Ok(name)
}

/// The host's own name, in the letters that a Node's name may have.
fn host_name() -> String {
    let name = rustix::system::uname();
    let letters = name.nodename().to_string_lossy().to_lowercase();
    let letters: String = letters
        .chars()
        .map(|c| match c {
            'a'..='z' | '0'..='9' | '.' | '-' => c,
            _ => '-',
        })
        .collect();
    let name = letters.trim_matches(['-', '.']).to_owned();
    if is_name(&name) { name } else { "node".to_owned() }
}

/// The name servers of this host: machines' questions about names elsewhere go to them. None are no reason to fail.
pub(crate) fn resolvers(path: &Path) -> Vec<SocketAddr> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let addresses = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then_some(())?;
        words.next()?.parse::<IpAddr>().ok()
    });
    addresses.map(|address| SocketAddr::new(address, DNS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(text: &str, flags: &MachineFlags) -> anyhow::Result<Option<MachinesConfig>> {
        MachinesConfig::merge(serde_json::from_str(text).unwrap(), flags)
    }

    #[test]
    fn flags_go_before_the_file() {
        let file = r#"{"nodeName": "a", "nodeAddresses": ["10.0.0.1"]}"#;
        let by_file = merged(file, &MachineFlags::default()).unwrap().unwrap();
        assert_eq!((by_file.node.as_str(), by_file.addresses.len()), ("a", 1));
        let flags = MachineFlags {
            node_name: Some("b.example".to_owned()),
            node_addresses: vec!["0.0.0.0".parse().unwrap(), "::".parse().unwrap()],
            ..MachineFlags::default()
        };
        let by_flags = merged(file, &flags).unwrap().unwrap();
        assert_eq!(
            (by_flags.node.as_str(), by_flags.addresses.len()),
            ("b.example", 2)
        );
        assert!(
            merged(r#"{"enabled": false}"#, &MachineFlags::default())
                .unwrap()
                .is_none()
        );
        let plain = merged("{}", &MachineFlags::default()).unwrap().unwrap();
        assert!(is_name(&plain.node));
        assert_eq!(plain.addresses, [IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    }

    #[test]
    fn wrong_names_are_told() {
        for name in ["", "A", "a_b", "-a", "a..b"] {
            let flags = MachineFlags {
                node_name: Some(name.to_owned()),
                ..MachineFlags::default()
            };
            let error = merged("{}", &flags).unwrap_err().to_string();
            assert!(error.contains("--node-name"), "{error}");
        }
    }

    #[test]
    fn name_servers_are_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "# x\nsearch a\nnameserver 10.0.0.2\nnameserver ::1 \nnameserver x\n",
        )
        .unwrap();
        let found: Vec<String> = resolvers(file.path()).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["10.0.0.2:53", "[::1]:53"]);
        assert!(resolvers(Path::new("/nowhere")).is_empty());
    }
}
