//! IP addresses and CIDR prefixes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Opaque, arg, opaque};
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::Registry;
use crate::meter::Meter;
use crate::value::Value;

/// An address with a prefix length; host bits are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    pub(crate) prefix: u8,
}

pub(super) fn register(r: &mut Registry) {
    r.add("ip", "(string) -> ip", Cost::ScanArgument, |_, args| {
        Ok(Value::opaque(Opaque::Ip(parse_ip(arg!(args, 0, String))?)))
    });
    r.add("isIP", "(string) -> bool", Cost::ScanArgument, |_, args| {
        Ok(Value::Bool(parse_ip(arg!(args, 0, String)).is_ok()))
    });
    r.add(
        "ip.isCanonical",
        "(string) -> bool",
        Cost::ScanArgumentTwice,
        |_, args| {
            let text = arg!(args, 0, String);
            Ok(Value::Bool(parse_ip(text)?.to_string() == text.as_str()))
        },
    );
    r.add("family", "ip.() -> int", Cost::Fixed(1), |_, args| {
        Ok(Value::Int(if opaque!(args, 0, Ip).is_ipv4() { 4 } else { 6 }))
    });
    r.add("isUnspecified", "ip.() -> bool", Cost::Fixed(1), |_, args| {
        property(args, IpAddr::is_unspecified)
    });
    r.add("isLoopback", "ip.() -> bool", Cost::Fixed(1), |_, args| {
        property(args, IpAddr::is_loopback)
    });
    r.add(
        "isLinkLocalMulticast",
        "ip.() -> bool",
        Cost::Fixed(1),
        |_, args| property(args, link_local_multicast),
    );
    r.add(
        "isLinkLocalUnicast",
        "ip.() -> bool",
        Cost::Fixed(1),
        |_, args| property(args, link_local_unicast),
    );
    r.add("isGlobalUnicast", "ip.() -> bool", Cost::Fixed(1), |_, args| {
        property(args, global_unicast)
    });

    r.add("cidr", "(string) -> cidr", Cost::ScanArgument, |_, args| {
        Ok(Value::opaque(Opaque::Cidr(parse_cidr(arg!(args, 0, String))?)))
    });
    r.add("isCIDR", "(string) -> bool", Cost::ScanArgument, |_, args| {
        Ok(Value::Bool(parse_cidr(arg!(args, 0, String)).is_ok()))
    });
    r.add(
        "containsIP",
        "cidr.(string) -> bool",
        Cost::ContainsIp { text: true },
        |_, args| {
            let address = parse_ip(arg!(args, 1, String))?;
            Ok(Value::Bool(opaque!(args, 0, Cidr).contains(address)))
        },
    );
    r.add(
        "containsIP",
        "cidr.(ip) -> bool",
        Cost::ContainsIp { text: false },
        |_, args| {
            Ok(Value::Bool(
                opaque!(args, 0, Cidr).contains(*opaque!(args, 1, Ip)),
            ))
        },
    );
    r.add(
        "containsCIDR",
        "cidr.(string) -> bool",
        Cost::ContainsCidr { text: true },
        |_, args| {
            let other = parse_cidr(arg!(args, 1, String))?;
            Ok(Value::Bool(opaque!(args, 0, Cidr).contains_cidr(&other)))
        },
    );
    r.add(
        "containsCIDR",
        "cidr.(cidr) -> bool",
        Cost::ContainsCidr { text: false },
        contains_cidr,
    );
    r.add("ip", "cidr.() -> ip", Cost::Fixed(1), |_, args| {
        Ok(Value::opaque(Opaque::Ip(opaque!(args, 0, Cidr).address)))
    });
    r.add("prefixLength", "cidr.() -> int", Cost::Fixed(1), |_, args| {
        Ok(Value::Int(i64::from(opaque!(args, 0, Cidr).prefix)))
    });
    r.add("masked", "cidr.() -> cidr", Cost::Fixed(1), |_, args| {
        Ok(Value::opaque(Opaque::Cidr(opaque!(args, 0, Cidr).masked())))
    });
}

fn contains_cidr<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(
        opaque!(args, 0, Cidr).contains_cidr(opaque!(args, 1, Cidr)),
    ))
}

fn property<'a>(args: &[Value<'a>], holds: fn(&IpAddr) -> bool) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(holds(opaque!(args, 0, Ip))))
}

fn parse_ip(text: &str) -> Result<IpAddr, Error> {
    if let Some((address, zone)) = text.split_once('%')
        && !zone.is_empty()
        && address.parse::<Ipv6Addr>().is_ok()
    {
        return Err(Error::invalid(format!(
            "IP address {text:?} with zone value is not allowed"
        )));
    }
    let address: IpAddr = text.parse().map_err(|_| {
        Error::invalid(format!("IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): unable to parse IP"))
    })?;
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Err(Error::invalid(format!(
            "IPv4-mapped IPv6 address {text:?} is not allowed"
        ))),
        _ => Ok(address),
    }
}

fn parse_cidr(text: &str) -> Result<Cidr, Error> {
    // Upstream says it twice.
    let refuse = |why: &str| {
        Error::invalid(format!(
            "network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix({text:?}): {why}"
        ))
    };
    let (address, prefix) = text.rsplit_once('/').ok_or_else(|| refuse("no '/'"))?;
    let address: IpAddr = address.parse().map_err(|_| refuse("unable to parse IP"))?;
    let plain = prefix.bytes().all(|b| b.is_ascii_digit()) && (prefix == "0" || !prefix.starts_with('0'));
    let prefix: u8 =
        if plain { prefix.parse().ok() } else { None }.ok_or_else(|| refuse("bad bits after slash"))?;
    if prefix > if address.is_ipv4() { 32 } else { 128 } {
        return Err(refuse("prefix length out of range"));
    }
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Err(Error::invalid(format!(
            "IPv4-mapped IPv6 address {text:?} is not allowed"
        ))),
        _ => Ok(Cidr { address, prefix }),
    }
}

fn link_local_multicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

fn link_local_unicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn global_unicast(address: &IpAddr) -> bool {
    !(*address == IpAddr::V4(Ipv4Addr::BROADCAST)
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || link_local_unicast(address))
}

/// The address as 128 bits, aligned to the left so that prefixes of both families read alike.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn mask(prefix: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0)
}

impl Cidr {
    fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && (bits(self.address) ^ bits(address)) & mask(self.prefix) == 0
    }

    fn contains_cidr(&self, other: &Cidr) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }

    fn masked(&self) -> Cidr {
        let kept = bits(self.address) & mask(self.prefix);
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits((kept >> 96) as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(kept)),
        };
        Cidr {
            address,
            prefix: self.prefix,
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}
