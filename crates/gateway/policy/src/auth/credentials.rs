//! Where in a request somebody's credentials are.

use std::borrow::Cow;

use http::HeaderName;
use http::header::{AUTHORIZATION, COOKIE};
use serde::Deserialize;

use fairway_gateway_guard::Asked;

/// Where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// After this word and a blank.
    AuthorizationHeader(String),
    CustomHeader(HeaderName),
    QueryString(String),
    Cookie(String),
}

impl Default for Credentials {
    fn default() -> Self {
        Credentials::AuthorizationHeader("Bearer".to_owned())
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CredentialsSpec {
    authorization_header: Option<Prefixed>,
    custom_header: Option<Named>,
    query_string: Option<Named>,
    cookie: Option<Named>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Prefixed {
    prefix: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Named {
    name: String,
}

impl Credentials {
    pub(super) fn compile(spec: &CredentialsSpec) -> Result<Credentials, String> {
        if let Some(header) = &spec.authorization_header {
            return Ok(match header.prefix.as_str() {
                "" => Credentials::default(),
                prefix => Credentials::AuthorizationHeader(prefix.to_owned()),
            });
        }
        if let Some(header) = &spec.custom_header {
            let name = header.name.to_ascii_lowercase();
            let name = HeaderName::try_from(name)
                .map_err(|_| format!("{:?} is not the name of a header", header.name))?;
            return Ok(Credentials::CustomHeader(name));
        }
        if let Some(query) = &spec.query_string {
            return Ok(Credentials::QueryString(query.name.clone()));
        }
        if let Some(cookie) = &spec.cookie {
            return Ok(Credentials::Cookie(cookie.name.clone()));
        }
        Ok(Credentials::default())
    }

    /// The credentials of a request: none, if they are there more than once. Backends get all of them, and might believe another
    /// one than was judged here.
    pub fn find<'a>(&self, asked: &'a Asked<'_>) -> Option<Cow<'a, str>> {
        match self {
            Credentials::AuthorizationHeader(prefix) => {
                let value = only(asked.headers.get_all(AUTHORIZATION))?.to_str().ok()?;
                let rest = value.strip_prefix(prefix.as_str())?.strip_prefix(' ')?;
                Some(Cow::Borrowed(rest))
            }
            Credentials::CustomHeader(name) => {
                let value = only(asked.headers.get_all(name))?;
                Some(Cow::Borrowed(value.to_str().ok()?))
            }
            Credentials::QueryString(name) => {
                let pairs = form_urlencoded::parse(asked.uri.query()?.as_bytes());
                let (_, value) = only(pairs.filter(|(key, _)| key == name.as_str()))?;
                (!value.is_empty()).then_some(value)
            }
            Credentials::Cookie(name) => {
                let lines = asked.headers.get_all(COOKIE).into_iter();
                let crumbs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
                let pairs = crumbs.map(|crumb| crumb.splitn(2, |byte| *byte == b'='));
                let found = pairs.filter_map(|mut pair| {
                    let is_it = pair.next()?.trim_ascii() == name.as_bytes();
                    is_it.then(|| pair.next())
                });
                let value = only(found)??.trim_ascii_end();
                Some(Cow::Borrowed(std::str::from_utf8(value).ok()?))
            }
        }
    }

    /// What Authorino puts before the realm in `WWW-Authenticate`.
    pub fn identifier(&self) -> &str {
        match self {
            Credentials::AuthorizationHeader(name)
            | Credentials::QueryString(name)
            | Credentials::Cookie(name) => name,
            Credentials::CustomHeader(name) => name.as_str(),
        }
    }
}

/// The one that there is, if there is no other.
fn only<T>(all: impl IntoIterator<Item = T>) -> Option<T> {
    let mut all = all.into_iter();
    let one = all.next()?;
    all.next().is_none().then_some(one)
}
