//! URLs, taken apart and put together as Go's `net/url` does.

use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::machine::Machine;
use crate::text::{lossy, quote};
use crate::value::{Entries, Map as Dict, Value};

use Param::{Map, Str};

type Answer = Result<Value, Fault>;

pub(super) const TABLE: &[Func] = &[
    Func::new("urlParse", &[Str], url_parse),
    Func::new("urlJoin", &[Map], url_join),
];

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Url {
    scheme: String,
    opaque: String,
    user: Option<(String, Option<String>)>,
    host: String,
    path: String,
    /// The path as it was written, where that is not how it would be written.
    raw_path: String,
    query: String,
    force_query: bool,
    fragment: String,
    raw_fragment: String,
    omit_host: bool,
}

/// Where in a URL a text is, which decides what is escaped in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    User,
    Host,
    Fragment,
}

fn should_escape(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
        return false;
    }
    match part {
        Part::Host => !matches!(
            byte,
            b'!' | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b':'
                | b'['
                | b']'
                | b'<'
                | b'>'
                | b'"'
        ),
        Part::Path => !matches!(byte, b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'@'),
        Part::User => !matches!(byte, b'$' | b'&' | b'+' | b',' | b';' | b'='),
        Part::Fragment => !matches!(
            byte,
            b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' | b'!' | b'(' | b')' | b'*'
        ),
    }
}

fn escape(text: &str, part: Part) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match should_escape(byte, part) {
            true => out.push_str(&format!("%{byte:02X}")),
            false => out.push(char::from(byte)),
        }
    }
    // Bytes above ASCII are always escaped, so this is text.
    out
}

fn unescape(text: &str) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'%' {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let digits = bytes
            .get(at + 1..at + 3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let valid = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match valid.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => out.push(byte),
            None => {
                let shown = lossy(&bytes[at..bytes.len().min(at + 3)]).into_owned();
                return Err(format!("invalid URL escape {}", quote(shown.as_bytes())));
            }
        }
        at += 3;
    }
    Ok(lossy(&out).into_owned())
}

impl Url {
    fn parse(text: &str) -> Result<Self, String> {
        let fault = |reason: String| format!("parse {}: {reason}", quote(text.as_bytes()));
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err(fault("net/url: invalid control character in URL".to_owned()));
        }
        let mut url = Self::default();
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        url.rest(rest).map_err(fault)?;
        url.fragment = unescape(fragment).map_err(fault)?;
        if escape(&url.fragment, Part::Fragment) != fragment {
            url.raw_fragment = fragment.to_owned();
        }
        Ok(url)
    }

    fn rest(&mut self, text: &str) -> Result<(), String> {
        if text == "*" {
            self.path = "*".to_owned();
            return Ok(());
        }
        let (scheme, mut rest) = scheme(text)?;
        self.scheme = scheme.to_ascii_lowercase();
        if rest.ends_with('?') && rest.matches('?').count() == 1 {
            self.force_query = true;
            rest = &rest[..rest.len() - 1];
        } else if let Some((path, query)) = rest.split_once('?') {
            self.query = query.to_owned();
            rest = path;
        }
        if !rest.starts_with('/') {
            if !self.scheme.is_empty() {
                self.opaque = rest.to_owned();
                return Ok(());
            }
            let first = rest.split('/').next().unwrap_or("");
            if first.contains(':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let triple = rest.starts_with("///");
        if let Some(after) = rest
            .strip_prefix("//")
            .filter(|_| !self.scheme.is_empty() || !triple)
        {
            let end = after.find('/').unwrap_or(after.len());
            self.authority(&after[..end])?;
            rest = &after[end..];
        } else if !self.scheme.is_empty() && rest.starts_with('/') {
            self.omit_host = true;
        }
        self.path = unescape(rest)?;
        if escape(&self.path, Part::Path) != rest {
            self.raw_path = rest.to_owned();
        }
        Ok(())
    }

    fn authority(&mut self, text: &str) -> Result<(), String> {
        let (user, host) = match text.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, text),
        };
        let port = match host.strip_prefix('[') {
            Some(_) => match host.rfind(']') {
                Some(end) => &host[end + 1..],
                None => return Err("missing ']' in host".to_owned()),
            },
            None => host.rfind(':').map_or("", |at| &host[at..]),
        };
        let digits = port
            .strip_prefix(':')
            .unwrap_or("x")
            .bytes()
            .all(|byte| byte.is_ascii_digit());
        if !port.is_empty() && !digits {
            return Err(format!("invalid port {} after host", quote(port.as_bytes())));
        }
        self.host = unescape(host)?;
        if let Some(user) = user {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
            if !user.bytes().all(allowed) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            self.user = Some(match user.split_once(':') {
                Some((name, password)) => (unescape(name)?, Some(unescape(password)?)),
                None => (unescape(user)?, None),
            });
        }
        Ok(())
    }

    fn user_text(&self) -> String {
        match &self.user {
            None => String::new(),
            Some((name, None)) => escape(name, Part::User),
            Some((name, Some(password))) => {
                format!("{}:{}", escape(name, Part::User), escape(password, Part::User))
            }
        }
    }

    fn host_name(&self) -> &str {
        match self.host.strip_prefix('[') {
            Some(inner) => inner.split_once(']').map_or(inner, |(name, _)| name),
            None => self.host.rsplit_once(':').map_or(&self.host, |(name, _)| name),
        }
    }
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            '0'..='9' | '+' | '-' | '.' => return Ok(("", text)),
            ':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if !self.opaque.is_empty() {
            f.write_str(&self.opaque)?;
        } else {
            let path = match self.raw_path.is_empty() {
                true if self.path == "*" => "*".to_owned(),
                true => escape(&self.path, Part::Path),
                false => self.raw_path.clone(),
            };
            if !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some() {
                let hidden = self.omit_host && self.host.is_empty() && self.user.is_none();
                if !hidden && (!self.host.is_empty() || !self.path.is_empty() || self.user.is_some()) {
                    f.write_str("//")?;
                }
                if self.user.is_some() {
                    write!(f, "{}@", self.user_text())?;
                }
                f.write_str(&escape(&self.host, Part::Host))?;
            }
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                f.write_str("/")?;
            }
            f.write_str(&path)?;
        }
        if self.force_query || !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            let fragment = match self.raw_fragment.is_empty() {
                true => escape(&self.fragment, Part::Fragment),
                false => self.raw_fragment.clone(),
            };
            write!(f, "#{fragment}")?;
        }
        Ok(())
    }
}

fn url_parse(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let url = Url::parse(&arg::text(args, 0)).map_err(|error| format!("unable to parse url: {error}"))?;
    let parts = [
        ("scheme", url.scheme.as_str()),
        ("host", &url.host),
        ("hostname", url.host_name()),
        ("path", &url.path),
        ("query", &url.query),
        ("opaque", &url.opaque),
        ("fragment", &url.fragment),
        ("userinfo", &url.user_text()),
    ];
    let entries: Entries = parts
        .iter()
        .map(|(key, value)| (key.as_bytes().into(), Value::from(*value)))
        .collect();
    Ok(Value::map(entries))
}

fn url_join(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let part = |key: &str| match arg::map(args, 0).and_then(|map: &Dict| map.get(key.as_bytes())) {
        None => Ok(String::new()),
        Some(Value::Str(text)) => Ok(lossy(&text).into_owned()),
        Some(other) => Err(format!(
            "unable to parse {key} key, must be of type string, but {} found",
            other.kind()
        )),
    };
    let mut url = Url {
        scheme: part("scheme")?,
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?,
        ..Url::default()
    };
    let user = part("userinfo")?;
    if !user.is_empty() {
        let parsed = Url::parse(&format!("proto://{user}@host"))
            .map_err(|error| format!("unable to parse userinfo in dict: {error}"))?;
        url.user = parsed.user;
    }
    Ok(url.to_string().into())
}
