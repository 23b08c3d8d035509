//! URLs, parsed as Go's `net/url` parses request URIs: absolute URIs and absolute paths.

use std::collections::HashMap;

use super::{Opaque, arg, opaque};
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::{Function, Registry};
use crate::value::{MapBuilder, Value};

/// The parts of a URL that CEL can see, and the others as far as equality needs them.
#[derive(Debug, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    user: String,
    host: String,
    opaque: String,
    path: String,
    query: String,
    fragment: String,
}

pub(super) fn register(r: &mut Registry) {
    r.add("url", "(string) -> url", Cost::ScanUrl, |_, args| {
        let url = Url::parse(arg!(args, 0, String));
        let url = url
            .map_err(|why| Error::invalid(format!("URL parse error during conversion from string: {why}")))?;
        Ok(Value::opaque(Opaque::Url(url)))
    });
    r.add("isURL", "(string) -> bool", Cost::Fixed(1), |_, args| {
        Ok(Value::Bool(Url::parse_request(arg!(args, 0, String)).is_ok()))
    });
    let getters: [(&'static str, Function); 5] = [
        ("getScheme", |_, args| {
            Ok(Value::string(opaque!(args, 0, Url).scheme.as_str()))
        }),
        ("getHost", |_, args| {
            Ok(Value::string(opaque!(args, 0, Url).host.as_str()))
        }),
        ("getHostname", |_, args| {
            Ok(Value::string(split_port(&opaque!(args, 0, Url).host).0))
        }),
        ("getPort", |_, args| {
            Ok(Value::string(split_port(&opaque!(args, 0, Url).host).1))
        }),
        ("getEscapedPath", |_, args| {
            Ok(Value::string(escaped_path(&opaque!(args, 0, Url).path)))
        }),
    ];
    for (name, getter) in getters {
        r.add(name, "url.() -> string", Cost::Fixed(1), getter);
    }
    r.add(
        "getQuery",
        "url.() -> map<string, list<string>>",
        Cost::Fixed(1),
        |meter, args| {
            let url = opaque!(args, 0, Url);
            meter.work(url.query.len() * 8)?;
            query(&url.query)
        },
    );
}

/// Whether a string is a valid URI reference for the `uri` format, with Go's words if it is not.
pub(super) fn validate(text: &str) -> Result<(), String> {
    Url::parse_request(text).map(|_| ())
}

fn complain(text: &str, why: &str) -> String {
    format!("parse {text:?}: {why}")
}

impl Url {
    fn parse(text: &str) -> Result<Url, String> {
        Url::parse_request(text)?;
        // Request URIs have no fragment; only after that check may one be cut off.
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        unescape(fragment, false).ok_or_else(|| complain(text, "invalid URL escape"))?;
        let url = Url::read(rest, false).map_err(|why| complain(text, &why))?;
        Ok(Url {
            fragment: fragment.to_owned(),
            ..url
        })
    }

    fn parse_request(text: &str) -> Result<Url, String> {
        Url::read(text, true).map_err(|why| complain(text, &why))
    }

    fn read(text: &str, request: bool) -> Result<Url, String> {
        if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && request {
            return Err("empty url".to_owned());
        }
        let (scheme, rest) = scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Url {
            scheme: scheme.to_ascii_lowercase(),
            user: String::new(),
            host: String::new(),
            opaque: String::new(),
            path: String::new(),
            query: query.to_owned(),
            fragment: String::new(),
        };
        if text == "*" {
            url.path = "*".to_owned();
            return Ok(url);
        }
        let mut rest = rest;
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                url.opaque = rest.to_owned();
                return Ok(url);
            }
            if request {
                return Err("invalid URI for request".to_owned());
            }
        }
        let has_authority = !url.scheme.is_empty() || (!request && !rest.starts_with("///"));
        if has_authority && let Some(after) = rest.strip_prefix("//") {
            let end = after.find('/').unwrap_or(after.len());
            (url.user, url.host) = authority(&after[..end])?;
            rest = &after[end..];
        }
        unescape(rest, false).ok_or_else(|| bad_escape(rest))?;
        url.path = rest.to_owned();
        Ok(url)
    }
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, character) in text.char_indices() {
        match character {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if index > 0 => {}
            ':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn authority(text: &str) -> Result<(String, String), String> {
    let (user, host) = text
        .rsplit_once('@')
        .map_or(("", text), |(user, host)| (user, host));
    let valid_user = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
    if !user.bytes().all(valid_user) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    unescape(user, false).ok_or_else(|| bad_escape(user))?;
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |colon| &host[colon..])
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if (!port.is_empty() && !port.starts_with(':')) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("invalid port {port:?} after host"));
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:[]<>\"%".contains(&b) || b >= 0x80;
    if let Some(bad) = host.bytes().find(|b| !allowed(*b)) {
        return Err(format!(
            "invalid character {:?} in host name",
            (bad as char).to_string()
        ));
    }
    let host = unescape_host(host)?;
    Ok((user.to_owned(), host))
}

/// In host names, escapes stand for bytes outside ASCII only; a zone may also spell its percent sign.
fn unescape_host(host: &str) -> Result<String, String> {
    if !host.contains('%') {
        return Ok(host.to_owned());
    }
    let (name, zone) = host
        .split_once("%25")
        .filter(|_| host.starts_with('['))
        .unwrap_or((host, ""));
    let mut rest = name;
    while let Some(at) = rest.find('%') {
        let code = rest
            .get(at + 1..at + 3)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(code) if code >= 0x80 => rest = &rest[at + 3..],
            _ => return Err(bad_escape(&rest[at..])),
        }
    }
    let decoded = unescape(name, false).ok_or_else(|| bad_escape(name))?;
    if zone.is_empty() {
        return Ok(decoded);
    }
    let zone = unescape(zone, false).ok_or_else(|| bad_escape(zone))?;
    Ok(format!("{decoded}%{zone}"))
}

fn bad_escape(text: &str) -> String {
    let bad = text.match_indices('%').map(|(at, _)| &text[at..]).find(|part| {
        !part
            .get(1..3)
            .is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
    });
    let shown: String = bad.unwrap_or(text).chars().take(3).collect();
    format!("invalid URL escape {shown:?}")
}

/// Decodes percent escapes; in queries a plus is a space.
fn unescape(text: &str, query: bool) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let (high, low) = (bytes.next()?, bytes.next()?);
                let digit = |b: u8| (b as char).to_digit(16);
                out.push((digit(high)? * 16 + digit(low)?) as u8);
            }
            b'+' if query => out.push(b' '),
            other => out.push(other),
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// Host and port; brackets around IPv6 addresses go away.
fn split_port(host: &str) -> (&str, &str) {
    let (name, port) = match host.rfind(':') {
        Some(colon) if host[colon + 1..].bytes().all(|b| b.is_ascii_digit()) && !host.ends_with(']') => {
            (&host[..colon], &host[colon + 1..])
        }
        _ => (host, ""),
    };
    let name = name
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(name);
    (name, port)
}

/// The path as it was written if that is a valid encoding, else encoded.
fn escaped_path(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@[]/%".contains(&b);
    if path.bytes().all(plain) {
        return path.to_owned();
    }
    let decoded = unescape(path, false).unwrap_or_default();
    let keep = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&b);
    decoded
        .bytes()
        .map(|b| {
            if keep(b) {
                (b as char).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

fn query<'a>(text: &str) -> Result<Value<'a>, Error> {
    let mut entries: Vec<(String, Vec<Value<'a>>)> = Vec::new();
    let mut positions: HashMap<String, usize> = HashMap::new();
    // Pairs that cannot be decoded are left out, as Go does.
    for pair in text
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.contains(';'))
    {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(key), Some(value)) = (unescape(key, true), unescape(value, true)) else {
            continue;
        };
        match positions.get(&key) {
            Some(&position) => entries[position].1.push(Value::string(value)),
            None => {
                positions.insert(key.clone(), entries.len());
                entries.push((key, vec![Value::string(value)]));
            }
        }
    }
    let mut map = MapBuilder::default();
    for (key, values) in entries {
        map.insert(Value::string(key), Value::list(values))?;
    }
    Ok(Value::Map(map.finish()))
}
