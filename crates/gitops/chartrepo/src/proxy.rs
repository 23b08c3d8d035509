//! Whether a request goes through a proxy, as Go's programs decide it.

use std::net::IpAddr;

use crate::Url;

/// Whether an address is reached directly although there is a proxy: it is of this machine, or `no_proxy` names it. Entries
/// are host names, which mean what is below them, too; addresses; `*`; and any of them with a port.
pub fn is_direct(no_proxy: &str, url: &Url) -> bool {
    let host = url.host();
    let is_own = host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_own
        || no_proxy
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .any(|entry| fits(entry, host, url.port()))
}

fn fits(entry: &str, host: &str, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = entry.split_once('/') {
        return is_within(network, bits, host).unwrap_or(false);
    }
    let (name, wanted) = match entry.rsplit_once(':') {
        Some((name, wanted)) if !name.contains(':') || name.ends_with(']') => (name, wanted.parse().ok()),
        _ => (entry, None),
    };
    if wanted.is_some_and(|wanted: u16| wanted != port) {
        return false;
    }
    let name = name
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_ascii_lowercase();
    let name = name
        .strip_prefix("*.")
        .map_or(name.clone(), |rest| format!(".{rest}"));
    match name.strip_prefix('.') {
        // With a dot, only what is below.
        Some(_) => host.ends_with(&name),
        None => host == name || host.ends_with(&format!(".{name}")),
    }
}

fn is_within(network: &str, bits: &str, host: &str) -> Option<bool> {
    let bits: u32 = bits.parse().ok()?;
    let wide = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let (network, length) = wide(network.parse().ok()?);
    let (host, same) = wide(host.parse().ok()?);
    if length != same || bits > length {
        return Some(false);
    }
    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
    Some(network & mask == host & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_gone_round() {
        for (no_proxy, url, expected) in [
            ("", "https://h.example", false),
            ("", "https://127.0.0.1:5000", true),
            ("", "http://git.fairway.localhost", true),
            ("*", "https://h.example", true),
            ("example", "https://h.example", true),
            (".example", "https://example", false),
            (".example", "https://h.example", true),
            ("*.example", "https://h.example", true),
            ("h.example:444", "https://h.example", false),
            ("h.example:443", "https://h.example", true),
            ("ample", "https://h.example", false),
            ("10.0.0.0/8, x", "http://10.2.3.4", true),
            ("10.0.0.0/8", "http://11.2.3.4", false),
            ("fd00::/8", "http://[fd00::1]", true),
            ("0.0.0.0/0", "http://9.9.9.9", true),
        ] {
            assert_eq!(
                is_direct(no_proxy, &Url::parse(url).unwrap()),
                expected,
                "{no_proxy} {url}"
            );
        }
    }
}
