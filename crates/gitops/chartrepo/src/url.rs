//! Addresses of what is fetched over HTTP, and to whom a password may be told.

use std::fmt;

use percent_encoding::percent_decode_str;

use crate::Unusable;

/// The longest address; more than servers take.
const MAX_URL: usize = 8192;

/// An `http` or `https` address.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Url {
    is_tls: bool,
    host: String,
    port: Option<u16>,
    /// With the slash that it begins with.
    path: String,
    query: Option<String>,
    /// Name and password that were written into it.
    user: Option<(String, String)>,
}

impl Url {
    /// Reads an address. Name and password in it are kept aside, and are never shown.
    pub fn parse(text: &str) -> Result<Self, Unusable> {
        let text = text.trim();
        let refuse = |why: &str| Err(Unusable(format!("{:?} is no address: {why}", without_user(text))));
        if text.len() > MAX_URL {
            return Err(Unusable(format!("an address is longer than {MAX_URL} bytes")));
        }
        if text.contains(|c: char| c.is_control() || c == ' ' || c == '\\' || c == '"') {
            return refuse("it has a space, a quote, a backslash or a control character in it");
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return refuse("it has no scheme");
        };
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return refuse("its scheme is neither https nor http"),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, rest) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => match port.parse() {
                Ok(port) => (host, Some(port)),
                Err(_) => return refuse("its port is no number"),
            },
            _ => (place, None),
        };
        let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
        if host.is_empty() || host.starts_with('-') || !host.chars().all(is_good) {
            return refuse("its host is no name");
        }
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (rest, None),
        };
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        Ok(Self {
            is_tls,
            host: host.to_ascii_lowercase(),
            port,
            path: if path.is_empty() { "/" } else { path }.to_owned(),
            query,
            user: user.map(|user| {
                let (name, password) = user.split_once(':').unwrap_or((user, ""));
                (decoded(name), decoded(password))
            }),
        })
    }

    /// Whether the way is encrypted.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The name or number of the host; without the brackets of the latter.
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(if self.is_tls { 443 } else { 80 })
    }

    /// Host and port as a `Host` header has them.
    pub fn authority(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    /// Path and query as a request has them.
    pub fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// Name and password that were written into the address.
    pub fn user(&self) -> Option<(&str, &str)> {
        self.user
            .as_ref()
            .map(|(name, password)| (name.as_str(), password.as_str()))
    }

    /// Whether what one of two addresses is told is known at the other anyway: scheme, host and port are the same.
    pub fn is_same_origin(&self, other: &Self) -> bool {
        self.is_tls == other.is_tls && self.host == other.host && self.port() == other.port()
    }

    /// Another path, which begins with a slash, at the same host.
    #[must_use]
    pub fn with_path(&self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            query: None,
            ..self.clone()
        }
    }

    /// With another parameter in its query.
    #[must_use]
    pub fn with_parameter(&self, name: &str, value: &str) -> Self {
        let query = self.query.clone().unwrap_or_default();
        let query = form_urlencoded::Serializer::new(query)
            .append_pair(name, value)
            .finish();
        Self {
            query: Some(query),
            ..self.clone()
        }
    }

    /// The `index.yaml` of the repository of charts at this address.
    pub fn index(&self) -> Self {
        Self {
            path: clean(&format!("{}/index.yaml", self.path)),
            ..self.clone()
        }
    }

    /// Where a chart of the repository at this address is, of which its index says `written`. As in Helm, a query of the
    /// repository's address goes along.
    pub fn chart(&self, written: &str) -> Result<Self, Unusable> {
        if written.contains("://") {
            return Self::parse(written);
        }
        let base = Self {
            path: format!("{}/", self.path.trim_end_matches('/')),
            ..self.clone()
        };
        let found = base.follow(written)?;
        Ok(Self {
            query: self.query.clone(),
            ..found
        })
    }

    /// Where a `Location` or `Link` leads that was answered at this address (RFC 3986, section 5.3). A name and password
    /// stay with their origin.
    pub fn follow(&self, reference: &str) -> Result<Self, Unusable> {
        let reference = reference.trim();
        let reference = reference.split('#').next().unwrap_or_default();
        let scheme = if self.is_tls { "https" } else { "http" };
        let is_absolute = reference.split_once(':').is_some_and(|(scheme, _)| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        });
        let mut found = if is_absolute {
            Self::parse(reference)?
        } else if reference.starts_with("//") {
            Self::parse(&format!("{scheme}:{reference}"))?
        } else {
            let (path, query) = match reference.split_once('?') {
                Some((path, query)) => (path, Some(query.to_owned())),
                None => (reference, None),
            };
            let path = match path {
                "" => self.path.clone(),
                path if path.starts_with('/') => clean(path),
                path => {
                    let base = self.path.rsplit_once('/').map_or("", |(base, _)| base);
                    clean(&format!("{base}/{path}"))
                }
            };
            let here = Self {
                path,
                query: query.or_else(|| reference.is_empty().then(|| self.query.clone()).flatten()),
                user: None,
                ..self.clone()
            };
            // What was joined has not been looked at yet.
            Self::parse(&here.to_string())?
        };
        if found.user.is_none() && self.is_same_origin(&found) {
            found.user.clone_from(&self.user);
        }
        Ok(found)
    }
}

/// The path without `.`, `..` and empty parts; a slash at the end stays.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let is_open = path.ends_with('/') && !parts.is_empty();
    format!("/{}{}", parts.join("/"), if is_open { "/" } else { "" })
}

/// The address without what stands before the host, for messages.
fn without_user(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => text.to_owned(),
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.target())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn charts_are_found_from_the_address_of_their_repository() {
        for (repository, written, expected) in [
            (
                "https://h/charts",
                "web-1.0.0.tgz",
                "https://h/charts/web-1.0.0.tgz",
            ),
            (
                "https://h/charts/",
                "web-1.0.0.tgz",
                "https://h/charts/web-1.0.0.tgz",
            ),
            ("https://h", "web.tgz", "https://h/web.tgz"),
            ("https://h/charts", "/other/web.tgz", "https://h/other/web.tgz"),
            ("https://h/a/b", "../web.tgz", "https://h/a/web.tgz"),
            ("https://h/a?token=1", "web.tgz", "https://h/a/web.tgz?token=1"),
            (
                "https://h/a",
                "https://cdn.h/web.tgz?x=1",
                "https://cdn.h/web.tgz?x=1",
            ),
            ("https://h:8443/a", "//cdn/web.tgz", "https://cdn/web.tgz"),
        ] {
            let found = url(repository).chart(written).unwrap();
            assert_eq!(found.to_string(), expected, "{repository} {written}");
        }
        for (repository, expected) in [
            ("https://h", "https://h/index.yaml"),
            ("https://h/a/", "https://h/a/index.yaml"),
            ("https://h/a//b?x=1", "https://h/a/b/index.yaml?x=1"),
        ] {
            assert_eq!(url(repository).index().to_string(), expected, "{repository}");
        }
    }

    #[test]
    fn passwords_are_kept_aside_and_go_to_their_origin_only() {
        let own = url("https://a:p%40ss@h/charts");
        assert_eq!(own.user(), Some(("a", "p@ss")));
        assert_eq!(format!("{own} {own:?}"), "https://h/charts Url(https://h/charts)");
        assert_eq!(own.chart("web.tgz").unwrap().user(), Some(("a", "p@ss")));
        assert_eq!(own.chart("https://other/web.tgz").unwrap().user(), None);
        assert_eq!(own.follow("http://h/charts").unwrap().user(), None);
        assert_eq!(own.follow("https://h:444/").unwrap().user(), None);
        let refused = Url::parse("ftp://a:secret@h/x").unwrap_err().to_string();
        assert!(!refused.contains("secret"), "{refused}");
        for (left, right, same) in [
            ("https://h", "https://H:443/x", true),
            ("https://h", "http://h", false),
            ("http://h", "http://h:80", true),
            ("https://h", "https://h.evil.example", false),
        ] {
            assert_eq!(url(left).is_same_origin(&url(right)), same, "{left} {right}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "h/charts",
            "file:///etc/passwd",
            "https://",
            "https://h:x/",
            "https://h:99999/",
            "https://h/a b",
            "https://h/\r\nX: y",
            "https://-h/",
            "https://h\\@evil/",
        ] {
            assert!(Url::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(url("http://[::1]:80/a").host(), "::1");
        assert_eq!(url("http://[::1]").authority(), "[::1]");
    }

    #[test]
    fn redirections_are_followed() {
        let from = url("https://h/a/b?x=1");
        for (to, expected) in [
            ("/c", "https://h/c"),
            ("c", "https://h/a/c"),
            ("./c/", "https://h/a/c/"),
            ("../../../c", "https://h/c"),
            ("?y=2", "https://h/a/b?y=2"),
            ("http://other/c#part", "http://other/c"),
            ("", "https://h/a/b?x=1"),
        ] {
            assert_eq!(from.follow(to).unwrap().to_string(), expected, "{to}");
        }
        for to in ["javascript:alert(1)", "file:///etc/passwd", "/a\r\nb"] {
            assert!(from.follow(to).is_err(), "{to:?}");
        }
        let more = url("https://h/t?a=1").with_parameter("scope", "repository:x/y:pull");
        assert_eq!(
            more.to_string(),
            "https://h/t?a=1&scope=repository%3Ax%2Fy%3Apull"
        );
    }
}
