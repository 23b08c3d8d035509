//! OpenShift's Route.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;

use super::credential;
use super::{Unread, read};
use crate::table::{Certificate, HeaderChanges};

const TIMEOUT: &str = "haproxy.router.openshift.io/timeout";
const REWRITE: &str = "haproxy.router.openshift.io/rewrite-target";
const HSTS: &str = "haproxy.router.openshift.io/hsts_header";
const COOKIE: &str = "router.openshift.io/cookie_name";
const NO_COOKIE: &str = "haproxy.router.openshift.io/disable_cookies";
/// Which addresses may come in: refused, since it cannot be heeded.
const ALLOWED: [&str; 2] = [
    "haproxy.router.openshift.io/ip_whitelist",
    "haproxy.router.openshift.io/ip_allowlist",
];

#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Empty where it is made up.
    pub host: String,
    /// Before the domain, where the host is made up.
    pub subdomain: String,
    /// Empty means all.
    pub path: String,
    pub backends: Vec<RouteBackend>,
    /// The target port: a number, or the name of the Service's port.
    pub port: Option<Value>,
    pub tls: Option<RouteTls>,
    pub wildcard: bool,
    pub request_headers: HeaderChanges,
    pub response_headers: HeaderChanges,
    /// `haproxy.router.openshift.io/timeout`.
    pub timeout: Option<Duration>,
    /// `haproxy.router.openshift.io/rewrite-target`.
    pub rewrite: Option<String>,
    /// `router.openshift.io/cookie_name`.
    pub cookie: Option<String>,
    /// `haproxy.router.openshift.io/hsts_header`: what HTTPS answers are to say.
    pub hsts: Option<HeaderValue>,
    /// What its annotations ask for in vain.
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RouteBackend {
    pub kind: String,
    pub service: String,
    pub weight: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RouteTls {
    pub termination: Termination,
    pub insecure: Insecure,
    /// The Route's own; `None` is the router's.
    pub certificate: Option<Arc<Certificate>>,
    /// The name of a Secret with it.
    pub external: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Termination {
    Edge,
    Passthrough,
    /// The authority of the backend's certificate; without one, the system's.
    Reencrypt(Option<Arc<str>>),
}

/// What becomes of requests that are not encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insecure {
    None,
    Allow,
    Redirect,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(default)]
    host: String,
    #[serde(default)]
    subdomain: String,
    #[serde(default)]
    path: String,
    to: RawTarget,
    #[serde(default)]
    alternate_backends: Vec<RawTarget>,
    port: Option<RawPort>,
    tls: Option<RawTls>,
    wildcard_policy: Option<String>,
    http_headers: Option<RawHeaders>,
}

#[derive(Deserialize)]
struct RawTarget {
    kind: Option<String>,
    name: String,
    weight: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPort {
    target_port: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTls {
    termination: String,
    #[serde(default)]
    certificate: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    ca_certificate: String,
    #[serde(rename = "destinationCACertificate", default)]
    destination_ca_certificate: String,
    insecure_edge_termination_policy: Option<String>,
    external_certificate: Option<RawName>,
}

#[derive(Deserialize)]
struct RawName {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct RawHeaders {
    #[serde(default)]
    actions: RawActions,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawActions {
    request: Vec<RawAction>,
    response: Vec<RawAction>,
}

#[derive(Deserialize)]
struct RawAction {
    name: String,
    action: RawActionKind,
}

#[derive(Deserialize)]
struct RawActionKind {
    #[serde(rename = "type")]
    kind: String,
    set: Option<RawSet>,
}

#[derive(Deserialize)]
struct RawSet {
    value: String,
}

pub(super) fn read(object: &Value) -> Result<Route, Unread<Route>> {
    let annotations = &object["metadata"]["annotations"];
    read::part::<Raw>(&object["spec"], "spec")
        .and_then(|raw| raw.into_route(annotations))
        .map_err(read::unread)
}

impl Raw {
    fn into_route(self, annotations: &Value) -> Result<Route, String> {
        if !self.path.is_empty() && !self.path.starts_with('/') {
            return Err(format!("spec.path: {:?} does not begin with /", self.path));
        }
        let passthrough = self
            .tls
            .as_ref()
            .is_some_and(|tls| tls.termination == "passthrough");
        if passthrough && !self.path.is_empty() {
            return Err("spec.path: passthrough termination does not see paths".to_owned());
        }
        let wildcard = match self.wildcard_policy.as_deref() {
            None | Some("" | "None") => false,
            Some("Subdomain") => true,
            Some(other) => return Err(format!("spec.wildcardPolicy: {other:?} is not known")),
        };
        let mut notes = Notes::of(annotations)?;
        let wrong = |name: &str, text: &str, why: &str| format!("annotation {name}: {text:?} is no {why}");
        let timeout = match notes.take(TIMEOUT) {
            None => None,
            Some(text) => Some(timeout(text).ok_or_else(|| wrong(TIMEOUT, text, "time such as 30s"))?),
        };
        let ends_tls = self.tls.is_some() && !passthrough;
        let hsts = match notes.take(HSTS) {
            Some(_) if !ends_tls => {
                let why = "does nothing: TLS does not end here";
                notes.remarks.push(format!("annotation {HSTS} {why}"));
                None
            }
            None => None,
            Some(text) => {
                Some(hsts(text).ok_or_else(|| wrong(HSTS, text, "policy such as max-age=31536000"))?)
            }
        };
        let rewrite = notes.take(REWRITE).map(str::to_owned);
        let cookie = notes.take(COOKIE).map(str::to_owned);
        let has_cookie = notes.take(NO_COOKIE) != Some("true");
        let (request, response) = self.http_headers.map_or((Vec::new(), Vec::new()), |all| {
            (all.actions.request, all.actions.response)
        });
        let mut backends = vec![self.to];
        backends.extend(self.alternate_backends);
        Ok(Route {
            host: self.host,
            subdomain: self.subdomain,
            path: self.path,
            backends: backends
                .into_iter()
                .map(|raw| RouteBackend {
                    kind: raw
                        .kind
                        .filter(|kind| !kind.is_empty())
                        .unwrap_or_else(|| "Service".to_owned()),
                    service: raw.name,
                    weight: raw.weight.unwrap_or(100),
                })
                .collect(),
            port: self.port.map(|port| port.target_port),
            tls: self.tls.map(RawTls::into_tls).transpose()?,
            wildcard,
            request_headers: changes(request)?,
            response_headers: changes(response)?,
            timeout,
            rewrite,
            cookie: cookie.filter(|_| has_cookie),
            hsts,
            remarks: notes.finish(),
        })
    }
}

/// The router's annotations of a Route. Those that nobody asked for are told.
struct Notes<'a> {
    left: BTreeMap<&'a str, &'a str>,
    remarks: Vec<String>,
}

impl<'a> Notes<'a> {
    fn of(annotations: &'a Value) -> Result<Self, String> {
        let all = annotations.as_object().into_iter().flatten();
        let all = all.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        let left: BTreeMap<_, _> = all.filter(|(name, _)| is_of_router(name)).collect();
        // Whoever sets one of these relies on nobody else coming in.
        for name in ALLOWED {
            if left.contains_key(name) {
                return Err(format!(
                    "annotation {name} is not supported, and without it everybody would come in; remove it, \
                     and judge source.address in an AuthPolicy of an HTTPRoute"
                ));
            }
        }
        Ok(Self {
            left,
            remarks: Vec::new(),
        })
    }

    fn take(&mut self, name: &str) -> Option<&'a str> {
        self.left.remove(name)
    }

    fn finish(mut self) -> Vec<String> {
        let unknown = self.left.into_keys();
        let unknown = unknown.map(|name| format!("annotation {name} is not supported and does nothing"));
        self.remarks.extend(unknown);
        self.remarks
    }
}

/// `router.openshift.io/...` and `haproxy.router.openshift.io/...`.
fn is_of_router(name: &str) -> bool {
    let domain = name.split_once('/').map_or("", |(domain, _)| domain);
    domain
        .strip_suffix("router.openshift.io")
        .is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// `max-age=31536000;includeSubDomains;preload`, and no other words: it becomes a header.
fn hsts(text: &str) -> Option<HeaderValue> {
    let mut words = text.split(';').map(str::trim);
    let seconds = words.next()?.strip_prefix("max-age=")?;
    let is_sound = !seconds.is_empty()
        && seconds.bytes().all(|byte| byte.is_ascii_digit())
        && words.all(|word| ["includesubdomains", "preload"].contains(&&*word.to_ascii_lowercase()));
    is_sound.then(|| HeaderValue::from_str(text).ok()).flatten()
}

/// HAProxy's times have days and microseconds beside Go's units, and milliseconds without any.
fn timeout(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "us" => number / 1000,
        "" | "ms" => number,
        "s" => number.checked_mul(1000)?,
        "m" => number.checked_mul(60_000)?,
        "h" => number.checked_mul(3_600_000)?,
        "d" => number.checked_mul(86_400_000)?,
        _ => return None,
    };
    Some(Duration::from_millis(millis))
}

impl RawTls {
    fn into_tls(self) -> Result<RouteTls, String> {
        let termination = match self.termination.as_str() {
            "edge" => Termination::Edge,
            "passthrough" => Termination::Passthrough,
            "reencrypt" => Termination::Reencrypt(match self.destination_ca_certificate.as_str() {
                "" => None,
                pem => Some(
                    credential::authorities(pem)
                        .map_err(|why| format!("spec.tls.destinationCACertificate: {why}"))?,
                ),
            }),
            other => return Err(format!("spec.tls.termination: {other:?} is not known")),
        };
        let insecure = match self.insecure_edge_termination_policy.as_deref() {
            None | Some("" | "None") => Insecure::None,
            Some("Allow") if termination == Termination::Passthrough => {
                return Err(
                    "spec.tls.insecureEdgeTerminationPolicy: Allow does not go with passthrough termination"
                        .to_owned(),
                );
            }
            Some("Allow") => Insecure::Allow,
            Some("Redirect") => Insecure::Redirect,
            Some(other) => {
                return Err(format!(
                    "spec.tls.insecureEdgeTerminationPolicy: {other:?} is not known"
                ));
            }
        };
        let certificate = match (self.certificate.as_str(), self.key.as_str()) {
            ("", "") => None,
            _ if termination == Termination::Passthrough => {
                return Err(
                    "spec.tls.certificate: passthrough termination has no certificate of its own".to_owned(),
                );
            }
            (certificate, key) => {
                let chain = match self.ca_certificate.as_str() {
                    "" => certificate.to_owned(),
                    authority => format!("{}\n{authority}", certificate.trim_end()),
                };
                Some(Arc::new(
                    credential::certificate(&chain, key).map_err(|why| format!("spec.tls: {why}"))?,
                ))
            }
        };
        Ok(RouteTls {
            termination,
            insecure,
            certificate,
            external: self
                .external_certificate
                .map(|one| one.name)
                .filter(|name| !name.is_empty()),
        })
    }
}

fn changes(actions: Vec<RawAction>) -> Result<HeaderChanges, String> {
    let mut changes = HeaderChanges::default();
    for raw in actions {
        let wrong = |why: &str| format!("spec.httpHeaders: header {:?} {why}", raw.name);
        let name = HeaderName::from_bytes(raw.name.as_bytes()).map_err(|_| wrong("is no name"))?;
        // What the API's own validation forbids, and what belongs to the connection.
        let fixed = [
            "strict-transport-security",
            "proxy",
            "host",
            "cookie",
            "set-cookie",
            "content-length",
            "transfer-encoding",
            "connection",
        ];
        if fixed.contains(&name.as_str()) {
            return Err(wrong("may not be changed"));
        }
        match (raw.action.kind.as_str(), &raw.action.set) {
            ("Delete", _) => changes.remove.push(name),
            // HAProxy's expressions are not values that anybody here computes.
            ("Set", Some(set)) if set.value.contains("%[") => {
                return Err(wrong("has an expression of HAProxy, which is not supported"));
            }
            ("Set", Some(set)) => {
                let value =
                    HeaderValue::from_str(&set.value).map_err(|_| wrong("has a value that none may have"))?;
                changes.set.push((name, value));
            }
            _ => return Err(wrong("has an action that is not known")),
        }
    }
    Ok(changes)
}
