//! Filters of HTTPRoute and GRPCRoute.

use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;

use super::reference::{BackendRef, RawBackend};
use crate::hostname;
use crate::table::{self, Cors, HeaderChanges, HostPattern, PathChange, Redirect};

/// A filter that is ready, or one that names another object.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    Ready(table::Filter),
    Mirror(Mirror),
    /// A reference to something that extends the API: nothing does here.
    Unknown(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Mirror {
    pub to: BackendRef,
    pub numerator: u32,
    pub denominator: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawFilter {
    #[serde(rename = "type")]
    kind: String,
    request_header_modifier: Option<RawHeaders>,
    response_header_modifier: Option<RawHeaders>,
    request_mirror: Option<RawMirror>,
    request_redirect: Option<RawRedirect>,
    url_rewrite: Option<RawRewrite>,
    cors: Option<RawCors>,
    extension_ref: Option<Value>,
}

#[derive(Deserialize)]
struct RawHeaders {
    #[serde(default)]
    set: Vec<RawHeader>,
    #[serde(default)]
    add: Vec<RawHeader>,
    #[serde(default)]
    remove: Vec<String>,
}

#[derive(Deserialize)]
struct RawHeader {
    name: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMirror {
    backend_ref: RawBackend,
    percent: Option<u32>,
    fraction: Option<RawFraction>,
}

#[derive(Deserialize)]
struct RawFraction {
    numerator: u32,
    denominator: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRedirect {
    scheme: Option<String>,
    hostname: Option<String>,
    path: Option<RawPathChange>,
    port: Option<u16>,
    status_code: Option<u16>,
}

#[derive(Deserialize)]
struct RawRewrite {
    hostname: Option<String>,
    path: Option<RawPathChange>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPathChange {
    #[serde(rename = "type")]
    kind: String,
    replace_full_path: Option<String>,
    replace_prefix_match: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawCors {
    allow_origins: Vec<String>,
    allow_credentials: bool,
    allow_methods: Vec<String>,
    allow_headers: Vec<String>,
    expose_headers: Vec<String>,
    max_age: u32,
}

impl Default for RawCors {
    fn default() -> Self {
        Self {
            allow_origins: Vec::new(),
            allow_credentials: false,
            allow_methods: Vec::new(),
            allow_headers: Vec::new(),
            expose_headers: Vec::new(),
            max_age: 5,
        }
    }
}

impl RawFilter {
    pub(super) fn into_filter(self, namespace: &str) -> Result<Filter, String> {
        let kind = self.kind.as_str();
        let missing = |field: &str| format!("filter of type {kind} without its {field}");
        let ready = match kind {
            "RequestHeaderModifier" => {
                let headers = self
                    .request_header_modifier
                    .ok_or_else(|| missing("requestHeaderModifier"))?;
                table::Filter::RequestHeaders(headers.into_changes()?)
            }
            "ResponseHeaderModifier" => {
                let headers = self
                    .response_header_modifier
                    .ok_or_else(|| missing("responseHeaderModifier"))?;
                table::Filter::ResponseHeaders(headers.into_changes()?)
            }
            "RequestRedirect" => {
                let redirect = self.request_redirect.ok_or_else(|| missing("requestRedirect"))?;
                table::Filter::Redirect(redirect.into_redirect()?)
            }
            "URLRewrite" => {
                let rewrite = self.url_rewrite.ok_or_else(|| missing("urlRewrite"))?;
                table::Filter::Rewrite {
                    hostname: precise(rewrite.hostname)?,
                    path: rewrite.path.map(RawPathChange::into_change).transpose()?,
                }
            }
            "CORS" => table::Filter::Cors(self.cors.ok_or_else(|| missing("cors"))?.into_cors()?),
            "RequestMirror" => {
                let mirror = self.request_mirror.ok_or_else(|| missing("requestMirror"))?;
                return mirror.into_mirror(namespace).map(Filter::Mirror);
            }
            "ExtensionRef" => {
                let to = self.extension_ref.unwrap_or_default();
                let text = |field: &str| to[field].as_str().unwrap_or_default().to_owned();
                return Ok(Filter::Unknown(format!(
                    "{}.{} {:?}",
                    text("kind"),
                    text("group"),
                    text("name")
                )));
            }
            other => return Err(format!("filter of type {other:?} is not supported")),
        };
        Ok(Filter::Ready(ready))
    }
}

impl Filter {
    /// Filters of one kind may not be repeated in a rule, except mirrors.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Ready(table::Filter::RequestHeaders(_)) => "RequestHeaderModifier",
            Self::Ready(table::Filter::ResponseHeaders(_)) => "ResponseHeaderModifier",
            Self::Ready(table::Filter::Redirect(_)) => "RequestRedirect",
            Self::Ready(table::Filter::Rewrite { .. }) => "URLRewrite",
            Self::Ready(table::Filter::Cors(_)) => "CORS",
            Self::Ready(table::Filter::Mirror(_)) | Self::Mirror(_) => "RequestMirror",
            Self::Unknown(_) => "ExtensionRef",
        }
    }

    /// Whether it puts something in the place of the prefix that was matched.
    pub fn changes_prefix(&self) -> bool {
        matches!(
            self,
            Self::Ready(
                table::Filter::Redirect(Redirect {
                    path: Some(PathChange::Prefix(_)),
                    ..
                }) | table::Filter::Rewrite {
                    path: Some(PathChange::Prefix(_)),
                    ..
                }
            )
        )
    }
}

/// Changing these would let a request mean one thing here and another at the backend.
const FRAMING: [&str; 8] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl RawHeaders {
    fn into_changes(self) -> Result<HeaderChanges, String> {
        Ok(HeaderChanges {
            set: self
                .set
                .into_iter()
                .map(RawHeader::into_pair)
                .collect::<Result<_, _>>()?,
            add: self
                .add
                .into_iter()
                .map(RawHeader::into_pair)
                .collect::<Result<_, _>>()?,
            remove: self
                .remove
                .iter()
                .map(|name| header_name(name))
                .collect::<Result<_, _>>()?,
        })
    }
}

impl RawHeader {
    fn into_pair(self) -> Result<(HeaderName, HeaderValue), String> {
        let name = header_name(&self.name)?;
        let value = HeaderValue::from_str(&self.value)
            .map_err(|_| format!("header {name}: the value has characters that none may have"))?;
        Ok((name, value))
    }
}

fn header_name(text: &str) -> Result<HeaderName, String> {
    let name = HeaderName::from_bytes(text.as_bytes()).map_err(|_| format!("header {text:?} is no name"))?;
    if FRAMING.contains(&name.as_str()) {
        return Err(format!(
            "header {name} belongs to the connection and may not be changed"
        ));
    }
    Ok(name)
}

fn precise(name: Option<String>) -> Result<Option<String>, String> {
    name.map(|name| match hostname::read(&name)? {
        HostPattern::Exact(name) => Ok(name),
        _ => Err(format!("host name {name:?} is not a single one")),
    })
    .transpose()
}

impl RawRedirect {
    fn into_redirect(self) -> Result<Redirect, String> {
        let scheme = match self.scheme {
            Some(scheme) if scheme != "http" && scheme != "https" => {
                return Err(format!("scheme {scheme:?} is not known"));
            }
            scheme => scheme,
        };
        let status = self.status_code.unwrap_or(302);
        if ![301, 302, 303, 307, 308].contains(&status) {
            return Err(format!("status code {status} is no redirection"));
        }
        Ok(Redirect {
            scheme,
            hostname: precise(self.hostname)?,
            path: self.path.map(RawPathChange::into_change).transpose()?,
            port: self.port,
            status,
        })
    }
}

impl RawPathChange {
    fn into_change(self) -> Result<PathChange, String> {
        let sane = |path: String| {
            if path
                .bytes()
                .any(|c| c.is_ascii_control() || c == b' ' || c == b'#')
                || !path.is_ascii()
            {
                return Err(format!("path {path:?} has characters that none may have"));
            }
            Ok(path)
        };
        match (
            self.kind.as_str(),
            self.replace_full_path,
            self.replace_prefix_match,
        ) {
            ("ReplaceFullPath", Some(path), None) => sane(path).map(PathChange::Full),
            ("ReplacePrefixMatch", None, Some(path)) => sane(path).map(PathChange::Prefix),
            ("ReplaceFullPath" | "ReplacePrefixMatch", _, _) => Err(format!(
                "path change of type {} must have the field of its type and no other",
                self.kind
            )),
            (other, _, _) => Err(format!("path change of type {other:?} is not known")),
        }
    }
}

impl RawMirror {
    fn into_mirror(self, namespace: &str) -> Result<Mirror, String> {
        let (numerator, denominator) = match (self.percent, self.fraction) {
            (None, None) => (1, 1),
            (Some(percent), None) => (percent, 100),
            (None, Some(fraction)) => (fraction.numerator, fraction.denominator.unwrap_or(100)),
            (Some(_), Some(_)) => return Err("a mirror has percent or fraction, not both".to_owned()),
        };
        if denominator == 0 || numerator > denominator {
            return Err(format!(
                "a mirror of {numerator} in {denominator} requests makes no sense"
            ));
        }
        Ok(Mirror {
            to: self.backend_ref.into_ref(namespace),
            numerator,
            denominator,
        })
    }
}

impl RawCors {
    fn into_cors(self) -> Result<Cors, String> {
        for origin in &self.allow_origins {
            let host = origin
                .strip_prefix("https://")
                .or_else(|| origin.strip_prefix("http://"));
            let sane = |host: &str| {
                !host.is_empty()
                    && host
                        .bytes()
                        .all(|c| c.is_ascii_alphanumeric() || b"-.:*[]".contains(&c))
            };
            if origin != "*" && !host.is_some_and(sane) {
                return Err(format!("origin {origin:?} is neither * nor scheme://host"));
            }
        }
        let words = [&self.allow_methods, &self.allow_headers, &self.expose_headers];
        if let Some(word) = words
            .into_iter()
            .flatten()
            .find(|word| HeaderName::from_bytes(word.as_bytes()).is_err())
        {
            return Err(format!("{word:?} is no method or header"));
        }
        Ok(Cors {
            origins: self.allow_origins,
            credentials: self.allow_credentials,
            methods: self.allow_methods,
            headers: self.allow_headers,
            expose: self.expose_headers,
            max_age: self.max_age,
        })
    }
}
