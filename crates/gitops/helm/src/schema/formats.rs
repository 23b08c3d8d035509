//! `format`: the ones that Helm's library knows. Others pass.

use std::net::{Ipv4Addr, Ipv6Addr};

use fairway_text_gotemplate::sprig::regexes::compile;
use fairway_text_gotemplate::time::{Zone, parse_layout};

pub(super) fn is_valid(format: &str, text: &str) -> bool {
    let is_date = |layouts: &[&str]| {
        layouts
            .iter()
            .any(|layout| parse_layout(layout, text, &Zone::Utc).is_ok())
    };
    match format {
        "date" => is_date(&["2006-01-02"]),
        "time" => is_date(&["15:04:05", "15:04:05Z07:00"]),
        "date-time" => is_date(&["2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05.999999999Z07:00"]),
        "hostname" => is_host_name(text),
        "email" | "idn-email" => {
            let parts = text
                .trim_end_matches('>')
                .rsplit('<')
                .next()
                .unwrap_or(text)
                .split_once('@');
            parts.is_some_and(|(user, host)| !user.is_empty() && !host.is_empty() && !host.contains('@'))
        }
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "uri" | "iri" => is_uri(text) && text.contains(':') && !text.starts_with(':'),
        "uri-reference" | "iri-reference" => is_uri(text),
        "uuid" => {
            let parts: Vec<&str> = text.split('-').collect();
            let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
            lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
        }
        "regex" => text.is_empty() || compile(text).is_ok(),
        "json-pointer" => text.is_empty() || text.starts_with('/'),
        _ => true,
    }
}

fn is_uri(text: &str) -> bool {
    !text.contains('\\') && text.bytes().all(|byte| byte > b' ' && byte != 0x7f)
}

fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let edge = |c: char| c.is_ascii_alphanumeric();
        label.len() <= 63
            && label.starts_with(edge)
            && label.ends_with(edge)
            && label.chars().all(|c| edge(c) || c == '-')
    };
    text.len() < 256 && text.split('.').all(is_label)
}
