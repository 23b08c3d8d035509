//! `matches` of HTTPRoute and GRPCRoute.

use http::{HeaderName, Method};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::table::{HeaderMatch, Match, PathMatch, QueryMatch, ValueMatch};

/// Expressions run in time linear in their input whatever they say, but what they are compiled to can be large.
const REGEX_BYTES: usize = 256 * 1024;
const REGEX_TEXT: usize = 4096;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawMatch {
    path: Option<RawPath>,
    #[serde(default)]
    headers: Vec<RawValue>,
    #[serde(default)]
    query_params: Vec<RawValue>,
    method: Option<String>,
}

#[derive(Deserialize)]
struct RawPath {
    #[serde(rename = "type")]
    kind: Option<String>,
    value: Option<String>,
}

#[derive(Deserialize)]
struct RawValue {
    #[serde(rename = "type")]
    kind: Option<String>,
    name: String,
    value: String,
}

/// What a rule without matches means.
pub(super) fn everything() -> Match {
    Match {
        path: PathMatch::Prefix("/".to_owned()),
        method: None,
        headers: Vec::new(),
        query: Vec::new(),
    }
}

impl RawMatch {
    pub(super) fn into_match(self) -> Result<Match, String> {
        let method = match self.method.as_deref() {
            None => None,
            Some(name) => {
                Some(Method::from_bytes(name.as_bytes()).map_err(|_| format!("method {name:?} is none"))?)
            }
        };
        let mut query: Vec<QueryMatch> = Vec::new();
        for raw in self.query_params {
            // As the specification has it for names that are given twice: the first counts.
            if query.iter().all(|known| known.name != raw.name) {
                let value = value(raw.kind.as_deref(), &raw.value)?;
                query.push(QueryMatch {
                    name: raw.name,
                    value,
                });
            }
        }
        Ok(Match {
            path: self
                .path
                .map_or_else(|| Ok(everything().path), RawPath::into_path)?,
            method,
            headers: headers(self.headers)?,
            query,
        })
    }
}

fn headers(raw: Vec<RawValue>) -> Result<Vec<HeaderMatch>, String> {
    let mut headers: Vec<HeaderMatch> = Vec::new();
    for one in raw {
        let name = HeaderName::from_bytes(one.name.as_bytes())
            .map_err(|_| format!("header {:?} is no name", one.name))?;
        if headers.iter().all(|known| known.name != name) {
            let value = value(one.kind.as_deref(), &one.value)?;
            headers.push(HeaderMatch { name, value });
        }
    }
    Ok(headers)
}

impl RawPath {
    fn into_path(self) -> Result<PathMatch, String> {
        let value = self.value.unwrap_or_else(|| "/".to_owned());
        match self.kind.as_deref().unwrap_or("PathPrefix") {
            "Exact" => literal(value).map(PathMatch::Exact),
            "PathPrefix" => literal(value).map(|path| {
                let whole = path.trim_end_matches('/');
                PathMatch::Prefix(if whole.is_empty() {
                    "/".to_owned()
                } else {
                    whole.to_owned()
                })
            }),
            "RegularExpression" => expression(&value).map(PathMatch::Regex),
            other => Err(format!("path match of type {other:?} is not known")),
        }
    }
}

/// Paths that a client cannot mean, or that two readers would read in two ways.
fn literal(path: String) -> Result<String, String> {
    let fault = if !path.starts_with('/') {
        Some("does not begin with /")
    } else if path.len() > 1024 {
        Some("is longer than 1024 characters")
    } else if ["//", "/./", "/../", "%2f", "%2F", "#"]
        .iter()
        .any(|part| path.contains(part))
    {
        Some("has one of // /./ /../ %2f # in it")
    } else if path.ends_with("/..") || path.ends_with("/.") {
        Some("ends with . or ..")
    } else {
        None
    };
    match fault {
        Some(fault) => Err(format!("path {path:?} {fault}")),
        None => Ok(path),
    }
}

fn value(kind: Option<&str>, text: &str) -> Result<ValueMatch, String> {
    match kind.unwrap_or("Exact") {
        "Exact" => Ok(ValueMatch::Exact(text.to_owned())),
        "RegularExpression" => expression(text).map(ValueMatch::Regex),
        other => Err(format!("match of type {other:?} is not known")),
    }
}

/// An expression that must match the whole.
pub(super) fn expression(text: &str) -> Result<Regex, String> {
    if text.len() > REGEX_TEXT {
        return Err(format!(
            "an expression of {} characters is longer than {REGEX_TEXT}",
            text.len()
        ));
    }
    // On its own first, so that one that closes our bracket is refused.
    let compile = |text: &str| {
        RegexBuilder::new(text)
            .size_limit(REGEX_BYTES)
            .dfa_size_limit(REGEX_BYTES)
            .build()
    };
    compile(text)
        .and_then(|_| compile(&format!("^(?:{text})$")))
        .map_err(|error| {
            format!(
                "expression {text:?}: {}",
                error.to_string().lines().last().unwrap_or_default()
            )
        })
}

#[derive(Deserialize)]
pub(super) struct RawGrpcMatch {
    method: Option<RawGrpcMethod>,
    #[serde(default)]
    headers: Vec<RawValue>,
}

#[derive(Deserialize)]
struct RawGrpcMethod {
    #[serde(rename = "type")]
    kind: Option<String>,
    service: Option<String>,
    method: Option<String>,
}

impl RawGrpcMatch {
    /// A call's path is `/package.Service/Method`.
    pub(super) fn into_match(self) -> Result<Match, String> {
        let path = self
            .method
            .map_or_else(|| Ok(everything().path), RawGrpcMethod::into_path)?;
        Ok(Match {
            path,
            method: None,
            headers: headers(self.headers)?,
            query: Vec::new(),
        })
    }
}

impl RawGrpcMethod {
    fn into_path(self) -> Result<PathMatch, String> {
        let word = |word: String| {
            let plain = word
                .bytes()
                .all(|c| c.is_ascii_alphanumeric() || c == b'.' || c == b'_');
            if plain {
                Ok(word)
            } else {
                Err(format!("{word:?} is no service or method"))
            }
        };
        match self.kind.as_deref().unwrap_or("Exact") {
            "Exact" => match (
                self.service.map(word).transpose()?,
                self.method.map(word).transpose()?,
            ) {
                (Some(service), Some(method)) => Ok(PathMatch::Exact(format!("/{service}/{method}"))),
                (Some(service), None) => Ok(PathMatch::Prefix(format!("/{service}"))),
                (None, Some(method)) => {
                    expression(&format!("/[^/]+/{}", regex::escape(&method))).map(PathMatch::Regex)
                }
                (None, None) => Ok(everything().path),
            },
            "RegularExpression" => {
                let part = |text: Option<String>| text.unwrap_or_else(|| "[^/]+".to_owned());
                let (service, method) = (part(self.service), part(self.method));
                expression(&service)?;
                expression(&method)?;
                expression(&format!("/(?:{service})/(?:{method})")).map(PathMatch::Regex)
            }
            other => Err(format!("method match of type {other:?} is not known")),
        }
    }
}
