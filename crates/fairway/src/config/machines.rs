//! Settings of the machines that this process runs.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, bail};
use fairway_machines_plan::confinement::users::Range;
use fairway_machines_wiring::Tunnel;
use fairway_machines_wiring::frames::Cidr;
use fairway_machines_wiring::frames::outside::Outside;
use fairway_outbound::AllowedHosts;
use serde::Deserialize;

use crate::cli::machines::{HostFlags, MachineFlags, MachineNetwork};

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
    machine_users: Option<String>,
    image_allowed_hosts: Option<String>,
    tunnel_port: Option<u16>,
    machine_network: Option<MachineNetwork>,
    #[serde(default)]
    egress_allow: Vec<String>,
    #[serde(default)]
    egress_deny: Vec<String>,
    egress_closed: Option<bool>,
}

/// How machines run here.
#[derive(Clone, Debug)]
pub(crate) struct MachinesConfig {
    /// This host's name as a Node.
    pub node: String,
    /// Where node ports are opened.
    pub addresses: Vec<IpAddr>,
    /// Users of machines; nothing: they run as the user of this process.
    pub users: Option<Range>,
    /// Where disk images may come from.
    pub image_hosts: AllowedHosts,
    /// Where other nodes reach this one, if its addresses were not configured and more is known of it than its loopback.
    pub seen_at: Option<IpAddr>,
    /// Where machines of other nodes come in; if nothing is said, the usual port.
    pub tunnel_port: Option<u16>,
    /// What carries frames between machines here.
    pub network: MachineNetwork,
    /// What machines may reach beyond their workspace.
    pub egress: Outside,
}

impl MachinesConfig {
    /// From the file and the flags; `None`: no machines run here.
    pub(super) fn merge(file: MachinesFile, flags: &MachineFlags) -> anyhow::Result<Option<Self>> {
        if flags.no_machines || file.enabled == Some(false) {
            return Ok(None);
        }
        Self::of_host(file, &flags.host).map(Some)
    }

    /// The same for a host that is there to run machines.
    pub(crate) fn of_host(file: MachinesFile, flags: &HostFlags) -> anyhow::Result<Self> {
        let image_hosts = image_hosts(&file, flags)?;
        let node = match flags.node_name.clone().or(file.node_name) {
            Some(name) => checked(name)?,
            None => host_name(),
        };
        let mut addresses = match flags.node_addresses.clone() {
            flags if !flags.is_empty() => flags,
            _ => file.node_addresses,
        };
        let seen_at = addresses.first().copied();
        if addresses.is_empty() {
            addresses.push(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        Ok(Self {
            node,
            addresses,
            users: users(flags.machine_users.as_deref().or(file.machine_users.as_deref()))?,
            image_hosts,
            seen_at,
            tunnel_port: flags.tunnel_port.or(file.tunnel_port),
            network: flags.machine_network.or(file.machine_network).unwrap_or_default(),
            egress: Outside {
                allowed: destinations("egressAllow", &flags.egress_allow, &file.egress_allow)?,
                denied: destinations("egressDeny", &flags.egress_deny, &file.egress_deny)?,
                closed: flags.egress_closed || file.egress_closed == Some(true),
            },
        })
    }

    /// Says where other nodes reach this one, unless that was configured.
    pub(crate) fn set_seen_at(&mut self, address: IpAddr) {
        self.seen_at.get_or_insert(address);
    }

    /// Machines of this host do not reach the host of its server either, unless the operator allows it by name.
    pub(crate) fn deny_server(&mut self, url: &str) {
        let hosts = addresses_of(url).into_iter().filter_map(|far| match far.ip() {
            IpAddr::V4(host) => Some(Cidr::host(host)),
            IpAddr::V6(_) => None,
        });
        self.egress.denied.extend(hosts);
    }

    /// How other nodes reach this one.
    pub(crate) fn tunnel(&self) -> Option<Tunnel> {
        let address = self.seen_at.or(self.addresses.first().copied())?;
        Some(Tunnel {
            address,
            port: self.tunnel_port,
        })
    }
}

/// Users of machines, as somebody wrote them.
fn users(text: Option<&str>) -> anyhow::Result<Option<Range>> {
    match text {
        None => Ok(Some(Range::default())),
        Some("none") => Ok(None),
        Some(text) => Ok(Some(text.parse().context("machineUsers is wrong")?)),
    }
}

/// Where disk images may come from.
pub(super) fn image_hosts(file: &MachinesFile, flags: &HostFlags) -> anyhow::Result<AllowedHosts> {
    let hosts = flags
        .image_allowed_hosts
        .as_deref()
        .or(file.image_allowed_hosts.as_deref());
    AllowedHosts::parse(hosts.unwrap_or_default())
        .map_err(anyhow::Error::msg)
        .context("imageAllowedHosts is wrong")
}

/// The addresses that a URL leads to.
fn addresses_of(url: &str) -> Vec<SocketAddr> {
    let Ok(uri) = url.parse::<http::Uri>() else {
        return Vec::new();
    };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let found = (host, uri.port_u16().unwrap_or(443)).to_socket_addrs();
    found.map(Iterator::collect).unwrap_or_default()
}

/// The address of this host that another sees when this one calls it. Nothing is sent.
pub(crate) fn towards(url: &str) -> Option<IpAddr> {
    let far = *addresses_of(url).first()?;
    let any: IpAddr = match far {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(far).ok()?;
    socket.local_addr().ok().map(|own| own.ip())
}

/// Destinations of the flags, or else of the file.
fn destinations<T: FromStr<Err: Display>>(
    what: &str,
    flags: &[String],
    file: &[String],
) -> anyhow::Result<Vec<T>> {
    let texts = if flags.is_empty() { file } else { flags };
    let read = |text: &String| {
        let wrong = |error| anyhow::anyhow!("{what} is wrong: {error}");
        text.trim().parse().map_err(wrong)
    };
    texts.iter().map(read).collect()
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
    fn users_of_machines_are_a_range() {
        for (file, flag, expected) in [
            ("{}", None, Some(Some("1900000000:1000000"))),
            (r#"{"machineUsers": "2000000:5"}"#, None, Some(Some("2000000:5"))),
            (r#"{"machineUsers": "2000000:5"}"#, Some("none"), Some(None)),
            ("{}", Some("0:5"), None),
        ] {
            let mut flags = MachineFlags::default();
            flags.host.machine_users = flag.map(str::to_owned);
            let found = merged(file, &flags).ok().flatten();
            let found = found.map(|it| it.users.map(|it| it.to_string()));
            let expected = expected.map(|it| it.map(str::to_owned));
            assert_eq!(found, expected, "{file} {flag:?}");
        }
    }

    #[test]
    fn flags_go_before_the_file() {
        let file =
            r#"{"nodeName": "a", "nodeAddresses": ["10.0.0.1"], "tunnelPort": 7, "machineNetwork": "tap"}"#;
        let by_file = merged(file, &MachineFlags::default()).unwrap().unwrap();
        assert_eq!(by_file.network, MachineNetwork::Tap);
        let tunnel = by_file.tunnel().unwrap().usual();
        assert_eq!(tunnel.to_string(), "10.0.0.1:7");
        assert_eq!((by_file.node.as_str(), by_file.addresses.len()), ("a", 1));
        let flags = MachineFlags {
            host: HostFlags {
                node_name: Some("b.example".to_owned()),
                machine_network: Some(MachineNetwork::Auto),
                node_addresses: vec!["0.0.0.0".parse().unwrap(), "::".parse().unwrap()],
                ..HostFlags::default()
            },
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
        assert_eq!(
            (plain.network, by_flags.network),
            (MachineNetwork::User, MachineNetwork::Auto)
        );
        let tunnel = |mut config: MachinesConfig| {
            config.set_seen_at("192.0.2.9".parse().unwrap());
            config.tunnel().unwrap().usual().to_string()
        };
        assert_eq!(
            tunnel(plain),
            "192.0.2.9:10262",
            "what is known where nothing is said"
        );
        assert_eq!(tunnel(by_file), "10.0.0.1:7", "what is said");
        let local = towards("https://127.0.0.1:6443");
        assert_eq!(local, Some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }

    #[test]
    fn wrong_names_are_told() {
        for name in ["", "A", "a_b", "-a", "a..b"] {
            let flags = MachineFlags {
                host: HostFlags {
                    node_name: Some(name.to_owned()),
                    ..HostFlags::default()
                },
                ..MachineFlags::default()
            };
            let error = merged("{}", &flags).unwrap_err().to_string();
            assert!(error.contains("--node-name"), "{error}");
        }
    }

    #[test]
    fn the_host_of_the_server_is_closed_to_machines_of_other_hosts() {
        use fairway_machines_wiring::frames::outside::{Judgement, Refusal};
        let server = Ipv4Addr::new(192, 0, 2, 1);
        let allow = |named: &[&str]| MachineFlags {
            host: HostFlags {
                egress_allow: named.iter().map(|it| (*it).to_owned()).collect(),
                ..HostFlags::default()
            },
            ..MachineFlags::default()
        };
        for (allowed, port, expected) in [
            (&[][..], 6443, Judgement::Refused(Refusal::Denied)),
            (&[], 22, Judgement::Refused(Refusal::Denied)),
            (&["192.0.2.1:443"], 443, Judgement::Named),
            (&["192.0.2.1:443"], 6443, Judgement::Refused(Refusal::Denied)),
        ] {
            let mut config = merged("{}", &allow(allowed)).unwrap().unwrap();
            config.deny_server("https://192.0.2.1:6443");
            assert_eq!(config.egress.judge(server, port), expected, "{allowed:?} {port}");
            let other = config.egress.judge(Ipv4Addr::new(192, 0, 2, 2), port);
            assert_eq!(other, Judgement::UnlessOwn);
        }
    }

    #[test]
    fn ways_out_are_read() {
        let file =
            r#"{"egressAllow": ["192.0.2.7:443"], "egressDeny": ["10.0.0.0/8"], "egressClosed": true}"#;
        let found = merged(file, &MachineFlags::default()).unwrap().unwrap().egress;
        assert!(found.closed);
        assert_eq!((found.allowed[0].port, found.denied.len()), (Some(443), 1));
        let flags = MachineFlags {
            host: HostFlags {
                egress_allow: vec!["127.0.0.1".to_owned(), "10.0.0.0/8".to_owned()],
                ..HostFlags::default()
            },
            ..MachineFlags::default()
        };
        assert_eq!(merged(file, &flags).unwrap().unwrap().egress.allowed.len(), 2);
        for wrong in [
            r#"{"egressAllow": ["here"]}"#,
            r#"{"egressDeny": ["10.0.0.0/80"]}"#,
        ] {
            let error = merged(wrong, &MachineFlags::default()).unwrap_err().to_string();
            assert!(error.contains("is wrong"), "{error}");
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
