//! IP addresses and CIDRs as Kubernetes judges them: strict for what is new, lenient for what was stored before.

use std::net::{IpAddr, Ipv4Addr};

use crate::at::{At, Errors};

/// Reads an address the way old clients wrote it: leading zeros in IPv4 octets are ignored.
pub fn parse_sloppy(value: &str) -> Option<IpAddr> {
    if let Ok(ip) = value.parse::<IpAddr>() {
        return Some(ip);
    }
    let mut octets = [0_u8; 4];
    let mut parts = value.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || part.len() > 16 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *octet = part.parse::<u64>().ok().and_then(|n| u8::try_from(n).ok())?;
    }
    parts.next().is_none().then(|| IpAddr::V4(Ipv4Addr::from(octets)))
}

/// Whether the address is IPv4 dressed as IPv6.
fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// The address without that dress.
fn unmapped(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

/// Whether the text is an IPv6 address.
pub fn is_ipv6(value: &str) -> bool {
    parse_sloppy(value).is_some_and(|ip| unmapped(ip).is_ipv6())
}

/// An address in a field that is older than strict checks; what the stored object holds already is accepted.
pub fn validate_legacy<'a>(
    errs: &mut Errors,
    at: &At<'_>,
    value: &str,
    stored: impl IntoIterator<Item = &'a str>,
) {
    if stored.into_iter().any(|old| old == value) {
        return;
    }
    match parse_sloppy(value) {
        None => errs.invalid(
            at,
            value,
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        Some(_) if value.parse::<IpAddr>().is_err() => errs.invalid(at, value, "must not have leading 0s"),
        Some(ip) if is_mapped(ip) => errs.invalid(at, value, "must not be an IPv4-mapped IPv6 address"),
        Some(_) => {}
    }
}

/// An address in its canonical form.
pub fn validate(errs: &mut Errors, at: &At<'_>, value: &str) {
    let before = errs.len();
    validate_legacy(errs, at, value, []);
    if errs.len() != before {
        return;
    }
    if let Some(ip) = parse_sloppy(value)
        && ip.to_string() != value
    {
        errs.invalid(at, value, format!("must be in canonical form (\"{ip}\")"));
    }
}

/// A network: address and prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The address as written.
    pub ip: IpAddr,
    /// Bits of the network part.
    pub prefix: u8,
}

impl Cidr {
    /// Reads a CIDR as old clients wrote it.
    pub fn parse_sloppy(value: &str) -> Option<Self> {
        let (ip, prefix) = value.split_once('/')?;
        let ip = parse_sloppy(ip)?;
        if prefix.is_empty() || prefix.len() > 16 || !prefix.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let prefix = prefix.parse::<u64>().ok().and_then(|n| u8::try_from(n).ok())?;
        (prefix <= bits(ip)).then_some(Self { ip, prefix })
    }

    /// The address with all bits beyond the prefix cleared.
    pub fn network(self) -> IpAddr {
        let host = u32::from(bits(self.ip) - self.prefix);
        match self.ip {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(host).unwrap_or(0);
                IpAddr::V4((u32::from(ip) & mask).into())
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(host).unwrap_or(0);
                IpAddr::V6((u128::from(ip) & mask).into())
            }
        }
    }

    /// Whether an address lies in this network.
    pub fn contains(self, ip: IpAddr) -> bool {
        bits(ip) == bits(self.ip)
            && Self {
                ip,
                prefix: self.prefix,
            }
            .network()
                == self.network()
    }

    fn canonical(self) -> String {
        format!("{}/{}", self.network(), self.prefix)
    }
}

fn bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn has_leading_zero(value: &str) -> bool {
    value.split_once('/').is_none_or(|(ip, prefix)| {
        ip.parse::<IpAddr>().is_err() || (prefix.len() > 1 && prefix.starts_with('0'))
    })
}

/// A network in a field that is older than strict checks; what the stored object holds already is accepted.
pub fn validate_cidr_legacy<'a>(
    errs: &mut Errors,
    at: &At<'_>,
    value: &str,
    stored: impl IntoIterator<Item = &'a str>,
) {
    if stored.into_iter().any(|old| old == value) {
        return;
    }
    match Cidr::parse_sloppy(value) {
        None => errs.invalid(
            at,
            value,
            "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        ),
        Some(_) if has_leading_zero(value) => {
            errs.invalid(at, value, "must not have leading 0s in IP or prefix length");
        }
        Some(cidr) if is_mapped(cidr.ip) => {
            errs.invalid(at, value, "must not have an IPv4-mapped IPv6 address");
        }
        Some(cidr) if cidr.network() != cidr.ip => {
            errs.invalid(at, value, "must not have bits set beyond the prefix length");
        }
        Some(_) => {}
    }
}

/// A network in its canonical form.
pub fn validate_cidr(errs: &mut Errors, at: &At<'_>, value: &str) {
    let before = errs.len();
    validate_cidr_legacy(errs, at, value, []);
    if errs.len() != before {
        return;
    }
    if let Some(cidr) = Cidr::parse_sloppy(value)
        && cidr.canonical() != value
    {
        errs.invalid(
            at,
            value,
            format!("must be in canonical form (\"{}\")", cidr.canonical()),
        );
    }
}

/// An address that traffic may be sent to.
pub fn validate_endpoint(errs: &mut Errors, at: &At<'_>, value: &str) {
    let Some(ip) = parse_sloppy(value).map(unmapped) else {
        errs.invalid(at, value, "must be a valid IP address");
        return;
    };
    if ip.is_unspecified() {
        errs.invalid(at, value, format!("may not be unspecified ({value})"));
    }
    if ip.is_loopback() {
        errs.invalid(
            at,
            value,
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        );
    }
    let (link_local, link_local_multicast) = match ip {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] & 0xff0f == 0xff02),
    };
    if link_local {
        errs.invalid(
            at,
            value,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        );
    }
    if link_local_multicast {
        errs.invalid(
            at,
            value,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        );
    }
}

/// What is odd about an address that is accepted all the same.
pub fn warning(at: &At<'_>, value: &str) -> Option<String> {
    let ip = parse_sloppy(value)?;
    if value.parse::<IpAddr>().is_err() || is_mapped(ip) {
        return Some(format!(
            "{at}: non-standard IP address {value:?} is invalid: use \"{}\"",
            unmapped(ip)
        ));
    }
    (ip.is_ipv6() && ip.to_string() != value)
        .then(|| format!("{at}: IPv6 address {value:?} should be in RFC 5952 canonical format (\"{ip}\")"))
}

/// What is odd about a network that is accepted all the same.
pub fn cidr_warning(at: &At<'_>, value: &str) -> Option<String> {
    let cidr = Cidr::parse_sloppy(value)?;
    if cidr.network() != cidr.ip {
        return Some(format!(
            "{at}: CIDR value {value:?} is ambiguous in this context (should be \"{}\" or \"{}/{}\"?)",
            cidr.canonical(),
            cidr.ip,
            bits(cidr.ip)
        ));
    }
    if has_leading_zero(value) || is_mapped(cidr.ip) {
        return Some(format!(
            "{at}: non-standard CIDR value {value:?} is invalid: use \"{}\"",
            cidr.canonical()
        ));
    }
    (cidr.ip.is_ipv6() && cidr.canonical() != value).then(|| {
        format!(
            "{at}: IPv6 CIDR value {value:?} should be in RFC 5952 canonical format (\"{}\")",
            cidr.canonical()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{validate, validate_cidr_legacy, validate_endpoint, validate_legacy};
    use crate::at::{At, Errors};

    fn details(check: impl Fn(&mut Errors, &At<'_>)) -> Vec<String> {
        let mut errs = Errors::new();
        check(&mut errs, &At::new("ip"));
        errs.into_vec().into_iter().map(|e| e.detail).collect()
    }

    #[test]
    fn addresses() {
        let cases: [(&str, Option<&str>); 7] = [
            ("10.0.0.1", None),
            ("2001:DB8::1", None),
            ("010.0.0.1", Some("must not have leading 0s")),
            ("::ffff:1.2.3.4", Some("must not be an IPv4-mapped IPv6 address")),
            (
                "10.0.0",
                Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
            ),
            (
                "10.0.0.256",
                Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
            ),
            (
                "1.2.3.4.5",
                Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
            ),
        ];
        for (value, expected) in cases {
            let found = details(|errs, at| validate_legacy(errs, at, value, []));
            assert_eq!(
                found,
                expected.map(str::to_owned).into_iter().collect::<Vec<_>>(),
                "{value}"
            );
        }
        let found = details(|errs, at| validate_legacy(errs, at, "010.0.0.1", ["010.0.0.1"]));
        assert!(found.is_empty(), "what was stored before stays valid");
        let found = details(|errs, at| validate(errs, at, "2001:DB8::1"));
        assert_eq!(found, ["must be in canonical form (\"2001:db8::1\")"]);
    }

    #[test]
    fn networks() {
        let cases: [(&str, Option<&str>); 5] = [
            ("10.0.0.0/8", None),
            (
                "10.0.0.1/8",
                Some("must not have bits set beyond the prefix length"),
            ),
            (
                "10.0.0.0/08",
                Some("must not have leading 0s in IP or prefix length"),
            ),
            (
                "10.0.0.0/33",
                Some("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
            ),
            ("::/0", None),
        ];
        for (value, expected) in cases {
            let found = details(|errs, at| validate_cidr_legacy(errs, at, value, []));
            assert_eq!(
                found,
                expected.map(str::to_owned).into_iter().collect::<Vec<_>>(),
                "{value}"
            );
        }
    }

    #[test]
    fn endpoints_are_reachable_addresses() {
        for (value, faults) in [
            ("10.1.2.3", 0),
            ("0.0.0.0", 1),
            ("127.0.0.1", 1),
            ("169.254.1.1", 1),
            ("224.0.0.1", 1),
            ("fe80::1", 1),
            ("x", 1),
        ] {
            assert_eq!(
                details(|errs, at| validate_endpoint(errs, at, value)).len(),
                faults,
                "{value}"
            );
        }
    }
}
