//! Where requests may go, in the form and with the meaning of Gitea's `ALLOWED_HOST_LIST`.
//!
//! A list of names, separated by commas: `external` (addresses of the public network), `private` (of a local network, and
//! those that are reserved), `loopback`, a network such as `10.1.0.0/16`, a pattern of host names or addresses such as
//! `*.example.com`, or `*` for everything. A pattern that fits the name in an address allows whatever it leads to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fairway_text_glob::matches_between;

/// What Gitea allows, too, if nobody says otherwise.
pub const DEFAULT: &str = "external";
/// The longest list that makes sense.
const MAX_ENTRIES: usize = 256;

/// Networks that no stranger has, although no standard calls them private: behind a carrier's translation, of protocols
/// and documentation, and those that carry an IPv4 address within an IPv6 one.
const RESERVED: [(IpAddr, u8); 19] = [
    (v4(0, 0, 0, 0), 8),
    (v4(100, 64, 0, 0), 10),
    (v4(168, 63, 129, 16), 32),
    (v4(192, 0, 0, 0), 24),
    (v4(192, 0, 2, 0), 24),
    (v4(192, 88, 99, 0), 24),
    (v4(198, 18, 0, 0), 15),
    (v4(198, 51, 100, 0), 24),
    (v4(203, 0, 113, 0), 24),
    (v4(240, 0, 0, 0), 4),
    (v6([0x100, 0, 0, 0]), 64),
    (v6([0x64, 0xff9b, 0, 0]), 96),
    (v6([0x64, 0xff9b, 1, 0]), 48),
    (v6([0x2001, 0, 0, 0]), 32),
    (v6([0x2001, 0x10, 0, 0]), 28),
    (v6([0x2001, 0x20, 0, 0]), 28),
    (v6([0x2001, 0xdb8, 0, 0]), 32),
    (v6([0x2002, 0, 0, 0]), 16),
    (v6([0xfec0, 0, 0, 0]), 10),
];

const fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

const fn v6(start: [u16; 4]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(start[0], start[1], start[2], start[3], 0, 0, 0, 0))
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Everything,
    External,
    Private,
    Loopback,
    Network(IpAddr, u8),
    Pattern(String),
}

/// Where requests may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHosts(Vec<Entry>);

impl Default for AllowedHosts {
    fn default() -> Self {
        Self(vec![Entry::External])
    }
}

impl AllowedHosts {
    /// Reads a list; an empty one is [`DEFAULT`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut entries = Vec::new();
        for word in text.split(',').map(|word| word.trim().to_ascii_lowercase()) {
            let entry = match word.as_str() {
                "" => continue,
                "*" => Entry::Everything,
                "external" => Entry::External,
                "private" => Entry::Private,
                "loopback" => Entry::Loopback,
                _ => match word.split_once('/') {
                    Some(_) => {
                        let (address, length) = network(&word)
                            .ok_or_else(|| format!("{word:?} is not a network such as 10.0.0.0/8"))?;
                        Entry::Network(address, length)
                    }
                    None => Entry::Pattern(word),
                },
            };
            entries.push(entry);
            if entries.len() > MAX_ENTRIES {
                return Err(format!("more than {MAX_ENTRIES} allowed hosts"));
            }
        }
        match entries.is_empty() {
            true => Ok(Self::default()),
            false => Ok(Self(entries)),
        }
    }

    /// Whether a name is allowed, whatever it leads to.
    pub fn allows_name(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        self.0.iter().any(|entry| match entry {
            Entry::Everything => true,
            Entry::Pattern(pattern) => *pattern == name || matches_between(pattern, &name, &['/']),
            _ => false,
        })
    }

    /// Whether an address is allowed.
    pub fn allows_address(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allows_name(&address.to_string())
            || self.0.iter().any(|entry| match entry {
                Entry::External => is_external(address),
                Entry::Private => is_private(address),
                Entry::Loopback => address.is_loopback(),
                Entry::Network(start, length) => is_within(address, *start, *length),
                Entry::Everything | Entry::Pattern(_) => false,
            })
    }
}

fn network(word: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = word.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let length: u8 = length.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    (length <= most).then_some((address, length))
}

fn is_within(address: IpAddr, start: IpAddr, length: u8) -> bool {
    let (one, other, bits) = match (address, start) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (u128::from(one.to_bits()), u128::from(other.to_bits()), 32),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits(), other.to_bits(), 128),
        _ => return false,
    };
    let rest = u32::from(bits - length.min(bits));
    one.checked_shr(rest) == other.checked_shr(rest)
}

fn is_private(address: IpAddr) -> bool {
    let by_standard = match address {
        IpAddr::V4(address) => address.is_private(),
        IpAddr::V6(address) => address.is_unique_local(),
    };
    by_standard
        || RESERVED
            .iter()
            .any(|(start, length)| is_within(address, *start, *length))
}

fn is_external(address: IpAddr) -> bool {
    let is_special = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !is_special
        && !address.is_loopback()
        && !address.is_unspecified()
        && !address.is_multicast()
        && !is_private(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_judged() {
        // list, address, allowed
        let cases = [
            ("", "1.1.1.1", true),
            ("", "127.0.0.1", false),
            ("", "::1", false),
            ("", "10.0.0.1", false),
            ("", "172.31.0.1", false),
            ("", "172.32.0.1", true),
            ("", "192.168.1.1", false),
            ("", "169.254.169.254", false),
            ("", "100.64.1.1", false),
            ("", "0.0.0.0", false),
            ("", "0.1.2.3", false),
            ("", "255.255.255.255", false),
            ("", "224.0.0.1", false),
            ("", "2606:4700::1111", true),
            ("", "fd00::1", false),
            ("", "fe80::1", false),
            ("", "::", false),
            ("", "::ffff:127.0.0.1", false),
            ("", "::ffff:10.0.0.1", false),
            ("", "64:ff9b::7f00:1", false),
            ("", "2002:7f00:1::", false),
            ("loopback", "127.8.0.1", true),
            ("loopback", "::ffff:127.0.0.1", true),
            ("loopback", "1.1.1.1", false),
            ("private", "10.0.0.1", true),
            ("private", "100.64.0.1", true),
            ("private", "127.0.0.1", false),
            ("external, loopback", "127.0.0.1", true),
            ("10.1.0.0/16", "10.1.2.3", true),
            ("10.1.0.0/16", "10.2.0.1", false),
            ("0.0.0.0/0", "127.0.0.1", true),
            ("::/0", "127.0.0.1", false),
            ("fd00::/8", "fd12::1", true),
            ("192.168.100.*", "192.168.100.7", true),
            ("192.168.100.*", "192.168.101.7", false),
            ("*", "127.0.0.1", true),
            ("*.example.com", "1.1.1.1", false),
        ];
        for (list, address, expected) in cases {
            let hosts = AllowedHosts::parse(list).unwrap();
            let found = hosts.allows_address(address.parse().unwrap());
            assert_eq!(found, expected, "{list:?} {address}");
        }
    }

    #[test]
    fn names_are_judged() {
        for (list, name, expected) in [
            ("", "example.com", false),
            ("*.example.com", "ci.example.com", true),
            ("*.example.com", "CI.Example.com.", true),
            ("*.example.com", "example.com", false),
            ("ci.internal", "ci.internal", true),
            ("loopback", "localhost", false),
            ("*", "anything", true),
        ] {
            assert_eq!(
                AllowedHosts::parse(list).unwrap().allows_name(name),
                expected,
                "{list:?} {name}"
            );
        }
        for wrong in ["10.0.0.0/33", "x/8", "10.0.0.0/"] {
            assert!(AllowedHosts::parse(wrong).is_err(), "{wrong}");
        }
        assert!(AllowedHosts::parse(&"a,".repeat(300)).is_err());
    }
}
