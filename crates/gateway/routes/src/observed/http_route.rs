//! HTTPRoute, and GRPCRoute, which is one with other words.

use std::time::Duration;

use fairway_text_gotext::duration;
use serde::Deserialize;
use serde_json::Value;

use super::http_filter::{Filter, RawFilter};
use super::http_match::{self, RawGrpcMatch, RawMatch};
use super::reference::{self, BackendRef, ParentRef, RawBackend};
use super::{Unread, read};
use crate::hostname;
use crate::table::{Affinity, HostPattern, Match, PathMatch, Retry, Timeouts};

#[derive(Debug, Clone, PartialEq)]
pub struct HttpRoute {
    pub parents: Vec<ParentRef>,
    /// Empty means whatever the listener says.
    pub hostnames: Vec<HostPattern>,
    pub rules: Vec<HttpRule>,
    /// Host names that are none; the others are served.
    pub faults: Vec<String>,
    /// What it asks for in vain, or gets otherwise.
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HttpRule {
    /// The rule's own name.
    pub section: Option<String>,
    /// Empty if they could not be read.
    pub matches: Vec<Match>,
    pub filters: Vec<Filter>,
    pub backends: Vec<RuleBackend>,
    pub timeouts: Timeouts,
    pub retry: Option<Retry>,
    pub affinity: Option<Affinity>,
    /// What is not as the rule has it, although it is served.
    pub remark: Option<String>,
    /// Why it cannot be served, with the condition's reason.
    pub fault: Option<(&'static str, String)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RuleBackend {
    pub to: BackendRef,
    pub filters: Vec<Filter>,
}

/// Requests are not sent more often than this, whatever a route asks for.
const MOST_RETRIES: u32 = 32;
const BACKOFF: Duration = Duration::from_millis(25);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRule<M> {
    #[serde(default = "Vec::new")]
    matches: Vec<M>,
    #[serde(default)]
    filters: Vec<RawFilter>,
    #[serde(default)]
    backend_refs: Vec<RawRuleBackend>,
    timeouts: Option<RawTimeouts>,
    retry: Option<RawRetry>,
    session_persistence: Option<RawSession>,
}

#[derive(Deserialize)]
struct RawRuleBackend {
    #[serde(flatten)]
    to: RawBackend,
    #[serde(default)]
    filters: Vec<RawFilter>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTimeouts {
    request: Option<String>,
    backend_request: Option<String>,
}

#[derive(Deserialize)]
struct RawRetry {
    #[serde(default)]
    codes: Vec<u16>,
    attempts: Option<u32>,
    backoff: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSession {
    session_name: Option<String>,
    absolute_timeout: Option<String>,
    idle_timeout: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    cookie_config: Option<RawCookie>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCookie {
    lifetime_type: Option<String>,
}

/// A match as the kind writes it.
trait IntoMatch: for<'de> Deserialize<'de> {
    fn into_match(self) -> Result<Match, String>;
}

impl IntoMatch for RawMatch {
    fn into_match(self) -> Result<Match, String> {
        Self::into_match(self)
    }
}

impl IntoMatch for RawGrpcMatch {
    fn into_match(self) -> Result<Match, String> {
        Self::into_match(self)
    }
}

pub(super) fn read_http(object: &Value, namespace: &str) -> Result<HttpRoute, Unread<HttpRoute>> {
    read::<RawMatch>(object, namespace)
}

pub(super) fn read_grpc(object: &Value, namespace: &str) -> Result<HttpRoute, Unread<HttpRoute>> {
    read::<RawGrpcMatch>(object, namespace)
}

fn read<M: IntoMatch>(object: &Value, namespace: &str) -> Result<HttpRoute, Unread<HttpRoute>> {
    let spec = &object["spec"];
    let parents = reference::parents(object, namespace).map_err(read::unread)?;
    let (hostnames, faults) = hostnames(&spec["hostnames"]);
    let mut remarks = reference::unheeded(spec);
    let rules: Vec<HttpRule> = match &spec["rules"] {
        // As the definition defaults it: everything, and no backend.
        Value::Null => vec![empty_rule()],
        Value::Array(rules) => {
            let session = format!(
                "fairway-{namespace}-{}",
                object["metadata"]["name"].as_str().unwrap_or_default()
            );
            rules
                .iter()
                .enumerate()
                .map(|(at, rule)| read_rule::<M>(rule, at, namespace, &session))
                .collect()
        }
        _ => {
            return Err(Unread {
                why: "spec.rules is not a list".to_owned(),
                rest: Some(Box::new(HttpRoute {
                    parents,
                    hostnames,
                    rules: Vec::new(),
                    faults,
                    remarks,
                })),
            });
        }
    };
    let told = rules.iter().enumerate();
    remarks
        .extend(told.filter_map(|(at, rule)| Some(format!("spec.rules[{at}]: {}", rule.remark.as_ref()?))));
    Ok(HttpRoute {
        parents,
        hostnames,
        rules,
        faults,
        remarks,
    })
}

/// Those that are names, and what is wrong with the others.
pub(super) fn hostnames(list: &Value) -> (Vec<HostPattern>, Vec<String>) {
    let mut names: Vec<HostPattern> = Vec::new();
    let mut faults = Vec::new();
    for text in list.as_array().into_iter().flatten() {
        match text.as_str().map(hostname::read) {
            Some(Ok(HostPattern::Any)) | None => faults.push(format!("host name {text} is none")),
            Some(Ok(name)) if names.contains(&name) => {}
            Some(Ok(name)) => names.push(name),
            Some(Err(fault)) => faults.push(fault),
        }
    }
    (names, faults)
}

fn empty_rule() -> HttpRule {
    HttpRule {
        section: None,
        matches: vec![http_match::everything()],
        filters: Vec::new(),
        backends: Vec::new(),
        timeouts: Timeouts::default(),
        retry: None,
        affinity: None,
        remark: None,
        fault: None,
    }
}

fn read_rule<M: IntoMatch>(rule: &Value, at: usize, namespace: &str, session: &str) -> HttpRule {
    let unsupported = |why: String| ("UnsupportedValue", why);
    let mut read = HttpRule {
        section: rule["name"].as_str().map(str::to_owned),
        matches: Vec::new(),
        ..empty_rule()
    };
    let fault = match read::part::<RawRule<M>>(rule, &format!("spec.rules[{at}]")) {
        Err(why) => Err(unsupported(why)),
        Ok(mut raw) => matches(std::mem::take(&mut raw.matches))
            .map_err(unsupported)
            .and_then(|matches| {
                read.matches = matches;
                raw.fill(&mut read, namespace, &format!("{session}-{at}"))
            }),
    };
    read.fault = fault.err();
    read
}

fn matches<M: IntoMatch>(raw: Vec<M>) -> Result<Vec<Match>, String> {
    if raw.is_empty() {
        return Ok(vec![http_match::everything()]);
    }
    raw.into_iter().map(M::into_match).collect()
}

impl<M> RawRule<M> {
    /// All but the matches.
    fn fill(self, rule: &mut HttpRule, namespace: &str, session: &str) -> Result<(), (&'static str, String)> {
        let unsupported = |why: String| ("UnsupportedValue", why);
        rule.filters = filters(self.filters, namespace)?;
        for raw in self.backend_refs {
            let filters = self::filters(raw.filters, namespace)?;
            let known = |filter: &&Filter| {
                filter.kind().ends_with("HeaderModifier") || filter.kind() == "ExtensionRef"
            };
            if let Some(filter) = filters.iter().find(|filter| !known(filter)) {
                return Err(unsupported(format!(
                    "filter {} is not supported in backendRefs",
                    filter.kind()
                )));
            }
            rule.backends.push(RuleBackend {
                to: raw.to.into_ref(namespace),
                filters,
            });
        }
        let redirects = rule
            .filters
            .iter()
            .any(|filter| filter.kind() == "RequestRedirect");
        if redirects && !rule.backends.is_empty() {
            return Err((
                "IncompatibleFilters",
                "RequestRedirect and backendRefs exclude each other".to_owned(),
            ));
        }
        let only_prefixes = rule
            .matches
            .iter()
            .all(|one| matches!(one.path, PathMatch::Prefix(_)));
        if rule.filters.iter().any(Filter::changes_prefix) && !only_prefixes {
            return Err(unsupported(
                "ReplacePrefixMatch needs matches of type PathPrefix, and no others".to_owned(),
            ));
        }
        if let Some(raw) = self.timeouts {
            rule.timeouts = raw.into_timeouts().map_err(unsupported)?;
        }
        rule.retry = self
            .retry
            .map(RawRetry::into_retry)
            .transpose()
            .map_err(unsupported)?;
        if let Some(raw) = self.session_persistence {
            rule.remark = raw.remark();
            rule.affinity = Some(raw.into_affinity(session).map_err(unsupported)?);
        }
        Ok(())
    }
}

fn filters(raw: Vec<RawFilter>, namespace: &str) -> Result<Vec<Filter>, (&'static str, String)> {
    let mut filters: Vec<Filter> = Vec::new();
    for one in raw {
        let filter = one
            .into_filter(namespace)
            .map_err(|why| ("UnsupportedValue", why))?;
        let kind = filter.kind();
        let repeated = filters.iter().any(|known| known.kind() == kind)
            && kind != "RequestMirror"
            && kind != "ExtensionRef";
        if repeated {
            return Err(("IncompatibleFilters", format!("filter {kind} is given twice")));
        }
        filters.push(filter);
    }
    let has = |kind: &str| filters.iter().any(|filter| filter.kind() == kind);
    if has("RequestRedirect") && has("URLRewrite") {
        return Err((
            "IncompatibleFilters",
            "RequestRedirect and URLRewrite exclude each other".to_owned(),
        ));
    }
    Ok(filters)
}

/// Zero is no limit.
fn span(text: Option<&str>, field: &str) -> Result<Option<Duration>, String> {
    let Some(text) = text else { return Ok(None) };
    let span = duration::span(text).ok_or_else(|| format!("{field}: {text:?} is no duration such as 10s"))?;
    Ok(Some(span).filter(|span| !span.is_zero()))
}

impl RawTimeouts {
    fn into_timeouts(self) -> Result<Timeouts, String> {
        let request = span(self.request.as_deref(), "timeouts.request")?;
        let backend_request = span(self.backend_request.as_deref(), "timeouts.backendRequest")?;
        if let (Some(whole), Some(one)) = (request, backend_request)
            && one > whole
        {
            return Err("timeouts.backendRequest is longer than timeouts.request".to_owned());
        }
        Ok(Timeouts {
            request,
            backend_request,
        })
    }
}

impl RawRetry {
    fn into_retry(self) -> Result<Retry, String> {
        let attempts = self.attempts.unwrap_or(1);
        if attempts > MOST_RETRIES {
            return Err(format!("retry.attempts: {attempts} is more than {MOST_RETRIES}"));
        }
        if let Some(code) = self.codes.iter().find(|code| !(400..600).contains(*code)) {
            return Err(format!("retry.codes: {code} is not an error"));
        }
        Ok(Retry {
            attempts,
            codes: self.codes,
            backoff: span(self.backoff.as_deref(), "retry.backoff")?.unwrap_or(BACKOFF),
        })
    }
}

impl RawSession {
    /// The time is in the cookie's `Max-Age`, which also keeps it when the browser ends.
    fn remark(&self) -> Option<String> {
        let cookie = self.cookie_config.as_ref();
        let is_permanent = cookie.and_then(|cookie| cookie.lifetime_type.as_deref()) == Some("Permanent");
        let is_cookie = self.kind.as_deref() != Some("Header");
        (is_cookie && self.absolute_timeout.is_some() && !is_permanent).then(|| {
            "sessionPersistence: with absoluteTimeout the cookie is kept until then, as with lifetimeType Permanent"
                .to_owned()
        })
    }

    fn into_affinity(self, session: &str) -> Result<Affinity, String> {
        let by_header = match self.kind.as_deref() {
            None | Some("Cookie") => false,
            Some("Header") => true,
            Some(other) => return Err(format!("sessionPersistence.type: {other:?} is not known")),
        };
        if self.idle_timeout.is_some() {
            return Err("sessionPersistence.idleTimeout is not supported: sessions are in the cookie, and nobody counts their use".to_owned());
        }
        let lifetime = span(
            self.absolute_timeout.as_deref(),
            "sessionPersistence.absoluteTimeout",
        )?;
        if by_header && lifetime.is_some() {
            return Err(
                "sessionPersistence.absoluteTimeout is not supported with type Header: a header does not end"
                    .to_owned(),
            );
        }
        let permanent = self
            .cookie_config
            .and_then(|cookie| cookie.lifetime_type)
            .is_some_and(|kind| kind == "Permanent");
        if permanent && lifetime.is_none() {
            return Err("sessionPersistence: a permanent cookie needs absoluteTimeout".to_owned());
        }
        let name = self.session_name.unwrap_or_else(|| session.to_owned());
        if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(format!(
                "sessionPersistence.sessionName: {name:?} is no name of a cookie or header"
            ));
        }
        Ok(Affinity {
            name,
            by_header,
            lifetime,
        })
    }
}
