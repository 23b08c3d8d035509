//! Addresses, host names and URIs.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

use regex::Regex;

/// IPv4 with leading zeros allowed (old clients write them), or IPv6.
pub(super) fn is_ip_sloppy(text: &str) -> bool {
    if text.contains(':') {
        text.parse::<Ipv6Addr>().is_ok()
    } else {
        ipv4_sloppy(text).is_some()
    }
}

fn ipv4_sloppy(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let significant = part.trim_start_matches('0');
        *octet = if significant.is_empty() {
            0
        } else {
            significant.parse().ok()?
        };
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// An address and a prefix length.
pub(super) fn is_cidr_sloppy(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else {
        return false;
    };
    if prefix.is_empty() || !prefix.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    let bits = if address.contains(':') { 128 } else { 32 };
    is_ip_sloppy(address) && prefix.parse::<u32>().is_ok_and(|n| n <= bits)
}

/// 6, 8 or 20 bytes as `00:00:..`, `00-00-..` or `0000.0000..`.
pub(super) fn is_mac(text: &str) -> bool {
    let b = text.as_bytes();
    if b.len() < 14 {
        return false;
    }
    let (separator, group) = match (b[2], b[4]) {
        (b':', _) => (b':', 2),
        (b'-', _) => (b'-', 2),
        (_, b'.') => (b'.', 4),
        _ => return false,
    };
    if !(b.len() + 1).is_multiple_of(group + 1) {
        return false;
    }
    let bytes = (b.len() + 1) / (group + 1) * (group / 2);
    matches!(bytes, 6 | 8 | 20)
        && b.iter().enumerate().all(|(i, c)| {
            if i % (group + 1) == group {
                *c == separator
            } else {
                c.is_ascii_hexdigit()
            }
        })
}

/// Letters, digits and symbols of any script.
fn host_char(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~');
    }
    non_ascii_class(c, r"\p{S}\p{L}", &SYMBOL_OR_LETTER)
}

fn letter(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphabetic()
    } else {
        non_ascii_class(c, r"\p{L}", &LETTER)
    }
}

static SYMBOL_OR_LETTER: OnceLock<Option<Regex>> = OnceLock::new();
static LETTER: OnceLock<Option<Regex>> = OnceLock::new();

fn non_ascii_class(c: char, class: &str, cell: &OnceLock<Option<Regex>>) -> bool {
    let mut buffer = [0; 4];
    cell.get_or_init(|| Regex::new(&format!("[{class}]")).ok())
        .as_ref()
        .is_some_and(|regex| regex.is_match(c.encode_utf8(&mut buffer)))
}

/// A single label with at most one dash, after its first character; or labels that end in a top-level domain of
/// letters.
pub(super) fn is_hostname(text: &str) -> bool {
    if text.len() > 255 || text.split('.').any(|label| label.len() > 63) {
        return false;
    }
    let mut chars = text.chars();
    if !chars.next().is_some_and(host_char) {
        return false;
    }
    let single = chars.as_str();
    if single.strip_prefix('-').unwrap_or(single).chars().all(host_char) {
        return true;
    }
    let Some((labels, top)) = text.rsplit_once('.') else {
        return false;
    };
    top.chars().count() >= 2
        && top.chars().all(letter)
        && labels.split('.').all(|label| {
            label.chars().next().is_some_and(host_char)
                && label.chars().next_back().is_some_and(host_char)
                && label.chars().all(|c| c == '-' || host_char(c))
        })
}

/// An absolute URI or an absolute path, as an HTTP request line carries it.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return false;
    };
    let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
    if !rest.starts_with('/') {
        return scheme;
    }
    let path = if scheme && rest.starts_with("//") {
        let rest = &rest[2..];
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if !is_authority(authority) {
            return false;
        }
        path
    } else {
        rest
    };
    percent_encoding_is_valid(path)
}

/// Whether there is a scheme, and what follows it; `None`: the scheme is malformed.
fn split_scheme(text: &str) -> Option<(bool, &str)> {
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return None,
            b':' => return Some((true, &text[i + 1..])),
            _ => return Some((false, text)),
        }
    }
    Some((false, text))
}

fn percent_encoding_is_valid(text: &str) -> bool {
    let b = text.as_bytes();
    (0..b.len()).filter(|&i| b[i] == b'%').all(|i| {
        b.get(i + 1).is_some_and(u8::is_ascii_hexdigit) && b.get(i + 2).is_some_and(u8::is_ascii_hexdigit)
    })
}

fn is_authority(text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').map_or((None, text), |(u, h)| (Some(u), h));
    let user_is_valid = user.is_none_or(|user| {
        percent_encoding_is_valid(user)
            && user
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b))
    });
    user_is_valid && is_host_and_port(host)
}

fn is_host_and_port(text: &str) -> bool {
    let port_is_valid = |port: &str| {
        port.is_empty()
            || port
                .strip_prefix(':')
                .is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()))
    };
    let host = if let Some(inner) = text.strip_prefix('[') {
        let Some((address, port)) = inner.rsplit_once(']') else {
            return false;
        };
        if !port_is_valid(port) {
            return false;
        }
        let (address, zone) = address
            .split_once("%25")
            .map_or((address, None), |(a, z)| (a, Some(z)));
        return zone.is_none_or(percent_encoding_is_valid) && address.parse::<Ipv6Addr>().is_ok();
    } else {
        match text.rfind(':') {
            Some(colon) if !port_is_valid(&text[colon..]) => return false,
            _ => text,
        }
    };
    let mut bytes = host.bytes();
    while let Some(byte) = bytes.next() {
        let valid = match byte {
            // Only non-ASCII bytes and the percent sign may be escaped in hosts.
            b'%' => {
                let digits: Vec<u8> = bytes.by_ref().take(2).collect();
                digits == b"25"
                    || matches!(&*digits, [b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', d] if d.is_ascii_hexdigit())
            }
            0x80.. => true,
            _ => byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte),
        };
        if !valid {
            return false;
        }
    }
    true
}
