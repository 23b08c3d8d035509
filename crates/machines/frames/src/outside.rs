//! Where guests may go beyond the machines of their workspace.
//!
//! A guest is a stranger on the host. The host's own addresses, its loopback, link-local addresses (where clouds keep
//! their metadata services) and other machines' networks are refused unless the operator allows them by name.
//! Whether an address is the host's own is known to the shell only, which asks the kernel's routing table right before
//! it connects; everything that can be said from the address alone is said here.

use std::net::Ipv4Addr;

use crate::address::Cidr;

/// An exception that the operator made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    pub network: Cidr,
    /// Every port if none is named.
    pub port: Option<u16>,
}

/// Why a text is no exception.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} is not a destination: write an address or a network, and a port if only one is meant, as in 192.0.2.7:443 or 10.0.0.0/8"
)]
pub struct NotADestination(String);

impl std::str::FromStr for Allowed {
    type Err = NotADestination;

    fn from_str(text: &str) -> Result<Self, NotADestination> {
        let wrong = || NotADestination(text.to_owned());
        let (place, port) = match text.split_once(':') {
            // `u16::from_str` would take "+80".
            Some((place, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => {
                (place, Some(port.parse().map_err(|_| wrong())?))
            }
            Some(_) => return Err(wrong()),
            None => (text, None),
        };
        let network = match place.parse::<Ipv4Addr>() {
            Ok(address) => Cidr::host(address),
            Err(_) => place.parse().map_err(|_| wrong())?,
        };
        Ok(Self { network, port })
    }
}

/// What the operator allows and forbids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outside {
    /// Comes before everything else, also before the host's own addresses.
    pub allowed: Vec<Allowed>,
    /// Forbidden beside what always is.
    pub denied: Vec<Cidr>,
    /// No connection leaves at all, except to what is allowed.
    pub closed: bool,
}

/// What is to be done with a connection to the outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// The operator named it: not even the host's own addresses are excepted.
    Named,
    /// Allowed if it is not an address of the host.
    UnlessOwn,
    Refused(Refusal),
}

/// Why a destination is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// 0.0.0.0/8 and 127.0.0.0/8: the host itself.
    Loopback,
    /// 169.254.0.0/16: neighbours without a router, and metadata services.
    LinkLocal,
    /// Multicast, broadcast and reserved addresses.
    NotUnicast,
    /// In a network that the operator denies.
    Denied,
    /// The operator has closed the way out.
    Closed,
}

impl Outside {
    pub fn judge(&self, address: Ipv4Addr, port: u16) -> Judgement {
        let named = self
            .allowed
            .iter()
            .any(|allowed| allowed.network.contains(address) && allowed.port.is_none_or(|only| only == port));
        if named {
            return Judgement::Named;
        }
        let first = address.octets()[0];
        let refusal = if first == 0 || address.is_loopback() {
            Refusal::Loopback
        } else if address.is_link_local() {
            Refusal::LinkLocal
        } else if first >= 224 {
            Refusal::NotUnicast
        } else if self.denied.iter().any(|network| network.contains(address)) {
            Refusal::Denied
        } else if self.closed {
            Refusal::Closed
        } else {
            return Judgement::UnlessOwn;
        };
        Judgement::Refused(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_addresses_or_networks_with_or_without_a_port() {
        for (text, expected) in [
            ("192.0.2.7:443", Some(("192.0.2.7/32", Some(443)))),
            ("192.0.2.7", Some(("192.0.2.7/32", None))),
            ("10.0.0.0/8", Some(("10.0.0.0/8", None))),
            ("10.0.0.0/8:53", Some(("10.0.0.0/8", Some(53)))),
            ("10.0.0.0/8:", None),
            ("10.0.0.0/8:+5", None),
            ("10.0.0.0/8:70000", None),
            ("example.org:80", None),
            ("::1", None),
        ] {
            let expected = expected.map(|(network, port)| Allowed {
                network: network.parse().unwrap(),
                port,
            });
            assert_eq!(text.parse::<Allowed>().ok(), expected, "{text}");
        }
    }

    #[test]
    fn guests_do_not_reach_the_host_or_its_metadata() {
        use Judgement::{Named, Refused, UnlessOwn};
        let open = Outside {
            allowed: vec![Allowed {
                network: "127.0.0.1/32".parse().unwrap(),
                port: Some(8080),
            }],
            denied: vec!["192.168.7.0/24".parse().unwrap()],
            closed: false,
        };
        let closed = Outside {
            closed: true,
            ..open.clone()
        };
        for (outside, address, port, expected) in [
            (&open, "1.1.1.1", 443, UnlessOwn),
            (&open, "10.0.0.5", 443, UnlessOwn),
            (&open, "127.0.0.1", 8080, Named),
            (&open, "127.0.0.1", 6443, Refused(Refusal::Loopback)),
            (&open, "127.8.9.1", 8080, Refused(Refusal::Loopback)),
            (&open, "0.0.0.0", 8080, Refused(Refusal::Loopback)),
            (&open, "169.254.169.254", 80, Refused(Refusal::LinkLocal)),
            (&open, "224.0.0.251", 5353, Refused(Refusal::NotUnicast)),
            (&open, "255.255.255.255", 67, Refused(Refusal::NotUnicast)),
            (&open, "240.1.1.1", 80, Refused(Refusal::NotUnicast)),
            (&open, "192.168.7.9", 22, Refused(Refusal::Denied)),
            (&closed, "1.1.1.1", 443, Refused(Refusal::Closed)),
            (&closed, "127.0.0.1", 8080, Named),
        ] {
            assert_eq!(
                outside.judge(address.parse().unwrap(), port),
                expected,
                "{address}:{port}"
            );
        }
    }
}
