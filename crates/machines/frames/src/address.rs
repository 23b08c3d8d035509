//! MAC addresses and IPv4 networks, parsed once and compared often.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// The address of a network card.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Multicast and broadcast: an address that no single card has.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is no address.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AddressError {
    #[error("{0:?} is not a MAC address: write six pairs of hexadecimal digits, as in 02:00:00:00:00:01")]
    Mac(String),
    #[error("{0:?} is not an IPv4 network: write an address and a prefix length, as in 10.0.0.0/8")]
    Cidr(String),
}

impl FromStr for Mac {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError::Mac(text.to_owned());
        let mut bytes = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or_else(wrong)?;
            if !part.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        match parts.next() {
            None => Ok(Self(bytes)),
            Some(_) => Err(wrong()),
        }
    }
}

/// An IPv4 network: all addresses that share a prefix.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    network: u32,
    prefix: u8,
}

impl Cidr {
    pub const ALL: Self = Self {
        network: 0,
        prefix: 0,
    };

    /// The network that `address` lies in, for a prefix that somebody has checked: one that is too long is a single address.
    pub fn of(address: Ipv4Addr, prefix: u8) -> Self {
        Self::new(address, prefix).unwrap_or(Self::host(address))
    }

    /// The network that `address` lies in; bits after the prefix are ignored, as Kubernetes does.
    pub fn new(address: Ipv4Addr, prefix: u8) -> Option<Self> {
        (prefix <= 32).then(|| Self {
            network: u32::from(address) & mask(prefix),
            prefix,
        })
    }

    /// One address alone.
    pub fn host(address: Ipv4Addr) -> Self {
        Self {
            network: u32::from(address),
            prefix: 32,
        }
    }

    pub fn contains(self, address: Ipv4Addr) -> bool {
        u32::from(address) & mask(self.prefix) == self.network
    }

    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other.first()) || other.contains(self.first())
    }

    pub fn first(self) -> Ipv4Addr {
        Ipv4Addr::from(self.network)
    }

    pub fn broadcast(self) -> Ipv4Addr {
        Ipv4Addr::from(self.network | !mask(self.prefix))
    }

    pub fn netmask(self) -> Ipv4Addr {
        Ipv4Addr::from(mask(self.prefix))
    }

    pub fn prefix(self) -> u8 {
        self.prefix
    }
}

const fn mask(prefix: u8) -> u32 {
    match prefix {
        0 => 0,
        1..=31 => u32::MAX << (32 - prefix),
        _ => u32::MAX,
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first(), self.prefix)
    }
}

impl fmt::Debug for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Cidr {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let parsed = text.split_once('/').and_then(|(address, prefix)| {
            // `u8::from_str` would take "+8".
            let prefix = prefix
                .bytes()
                .all(|digit| digit.is_ascii_digit())
                .then(|| prefix.parse().ok())??;
            Self::new(address.parse().ok()?, prefix)
        });
        parsed.ok_or_else(|| AddressError::Cidr(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses_are_six_pairs() {
        for (text, expected) in [
            ("02:00:00:00:00:01", Some([2, 0, 0, 0, 0, 1])),
            ("02-00-00-AB-cd-Ef", Some([2, 0, 0, 0xab, 0xcd, 0xef])),
            ("02:00:00:00:00", None),
            ("02:00:00:00:00:01:02", None),
            ("2:0:0:0:0:1", None),
            ("+2:00:00:00:00:01", None),
            ("", None),
        ] {
            assert_eq!(text.parse().ok(), expected.map(Mac), "{text}");
        }
        assert!(Mac::BROADCAST.is_group());
        assert!(!Mac([2, 0, 0, 0, 0, 1]).is_group());
    }

    #[test]
    fn networks_contain_what_shares_their_prefix() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("10.1.2.3/32", "10.1.2.3", true),
            ("10.1.2.3/32", "10.1.2.4", false),
            ("10.1.2.200/25", "10.1.2.128", true),
            ("10.1.2.200/25", "10.1.2.127", false),
        ] {
            let cidr: Cidr = network.parse().unwrap();
            assert_eq!(
                cidr.contains(address.parse().unwrap()),
                expected,
                "{network} {address}"
            );
        }
        for wrong in [
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0/8",
            "::/0",
            "10.0.0.0/",
        ] {
            assert!(wrong.parse::<Cidr>().is_err(), "{wrong}");
        }
        let cidr: Cidr = "10.88.7.9/16".parse().unwrap();
        assert_eq!(cidr.to_string(), "10.88.0.0/16");
        assert_eq!(cidr.broadcast().to_string(), "10.88.255.255");
        assert_eq!(cidr.netmask().to_string(), "255.255.0.0");
        assert!(cidr.overlaps("10.0.0.0/8".parse().unwrap()));
        assert!(!cidr.overlaps("10.96.0.0/12".parse().unwrap()));
    }
}
