//! The last phase: what backends, rate limits and those who may not pass are told; and callbacks.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use fairway_gateway_guard::{HIDDEN, Passage, Refusal, is_secret};
use fairway_gateway_policy::auth::{AuthPlan, DenyWith, Response, ResponseValue};
use fairway_gateway_policy::expression::{EvalError, stringify};
use http::header::WWW_AUTHENTICATE;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tracing::debug;

use super::{Auth, Failure, Run};
use crate::calls;

/// Why a request was refused, for its sender.
static REASON: HeaderName = HeaderName::from_static("x-ext-auth-reason");
/// The longest header or body that a policy's expressions make.
const MAX_TEXT: usize = 16 * 1024;
/// Callbacks that may be on their way at once; more are left out.
const MAX_CALLBACKS: usize = 64;

impl Run<'_> {
    pub(super) fn respond(&mut self, auth: &Auth, passage: &mut Passage) {
        for rule in &auth.plan.headers {
            let value = match self.value(rule) {
                Ok(Some(value)) => stringify(&value),
                Ok(None) => {
                    self.note_unmet(&rule.common, || header(auth, rule));
                    continue;
                }
                Err(error) => {
                    self.note(None, || (header(auth, rule), error.to_string()));
                    continue;
                }
            };
            if self.steps.is_some() {
                let seen = self.described(rule);
                self.note(None, || (header(auth, rule), seen));
            }
            let name = HeaderName::try_from(rule.key.as_str());
            let value = HeaderValue::try_from(value)
                .ok()
                .filter(|value| value.len() <= MAX_TEXT);
            match (name, value) {
                (Ok(name), Some(value)) => passage.request_headers.push((name, value)),
                _ => self.note(None, || {
                    let seen =
                        format!("left out: the value is not one of a header, or over {MAX_TEXT} bytes");
                    (header(auth, rule), seen)
                }),
            }
        }
        for rule in &auth.plan.filters {
            match self.value(rule) {
                Ok(Some(value)) => {
                    if rule.key == "kuadrant"
                        && let Some(plan) = value["plan"].as_str()
                    {
                        passage.told.push(("plan", plan.to_owned()));
                    }
                    if self.steps.is_some() {
                        let seen = self.described(rule);
                        self.note(None, || (format!("{} tells auth.{}", auth.by, rule.key), seen));
                    }
                    self.facts.set_filter(&rule.key, value);
                }
                Ok(None) => self.note_unmet(&rule.common, || format!("{} filter {:?}", auth.by, rule.key)),
                Err(error) => {
                    self.note(None, || {
                        (format!("{} filter {:?}", auth.by, rule.key), error.to_string())
                    });
                }
            }
        }
    }

    /// What a rule told, and what it was made from.
    fn described(&self, rule: &Response) -> String {
        if is_secret(&rule.key) {
            return HIDDEN.to_owned();
        }
        match &rule.value {
            ResponseValue::Plain(value) => value.describe(&self.facts),
            ResponseValue::Json(properties) => {
                let each = properties.iter().map(|(name, value)| match is_secret(name) {
                    true => format!("{name}: {HIDDEN}"),
                    false => format!("{name}: {}", value.describe(&self.facts)),
                });
                each.collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// Notes what somebody is told instead of the answer that a refusal has by itself.
    fn note_denial(&mut self, auth: &Auth, section: &str, deny: Option<&DenyWith>) {
        let Some(deny) = deny.filter(|_| self.steps.is_some()) else {
            return;
        };
        let mut all: Vec<String> = deny.code.iter().map(|code| format!("code {code}")).collect();
        let texts = [("message", &deny.message), ("body", &deny.body)];
        for (name, value) in texts {
            all.extend(
                value
                    .iter()
                    .map(|it| format!("{name}: {}", it.describe(&self.facts))),
            );
        }
        all.extend(deny.headers.iter().map(|(name, value)| match is_secret(name) {
            true => format!("header {name}: {HIDDEN}"),
            false => format!("header {name}: {}", value.describe(&self.facts)),
        }));
        if !all.is_empty() {
            self.note(None, || {
                (format!("{} response.{section}", auth.by), all.join("\n"))
            });
        }
    }

    fn value(&self, rule: &Response) -> Result<Option<Value>, EvalError> {
        if !self.applies(&rule.common)? {
            return Ok(None);
        }
        match &rule.value {
            ResponseValue::Plain(value) => value.value(&self.facts).map(Some),
            ResponseValue::Json(properties) => {
                let mut map = Map::with_capacity(properties.len());
                for (name, value) in properties {
                    map.insert(name.clone(), value.value(&self.facts)?);
                }
                Ok(Some(Value::Object(map)))
            }
        }
    }

    pub(super) fn unauthenticated(&mut self, auth: &Auth, failure: &Failure) -> Refusal {
        let challenges = auth.plan.authentication.iter().filter_map(|rule| {
            let challenge = format!("{} realm=\"{}\"", rule.credentials.identifier(), rule.common.name);
            Some((WWW_AUTHENTICATE, HeaderValue::try_from(challenge).ok()?))
        });
        let headers = challenges.collect();
        let deny = auth.plan.unauthenticated.as_ref();
        self.note_denial(auth, "unauthenticated", deny);
        self.refuse(auth, StatusCode::UNAUTHORIZED, headers, deny, failure)
    }

    pub(super) fn unauthorized(&mut self, auth: &Auth, failure: &Failure) -> Refusal {
        let deny = auth.plan.unauthorized.as_ref();
        self.note_denial(auth, "unauthorized", deny);
        self.refuse(auth, StatusCode::FORBIDDEN, Vec::new(), deny, failure)
    }

    fn refuse(
        &self,
        auth: &Auth,
        status: StatusCode,
        mut headers: Vec<(HeaderName, HeaderValue)>,
        deny: Option<&DenyWith>,
        failure: &Failure,
    ) -> Refusal {
        let text = |value: &fairway_gateway_policy::expression::ValueFrom| {
            let text = value.text(&self.facts).unwrap_or_default();
            if text.len() > MAX_TEXT {
                String::new()
            } else {
                text
            }
        };
        let mut refusal = Refusal {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
            by: auth.by.clone(),
            why: failure.why().to_owned(),
        };
        let mut reason = failure.told.to_string();
        if let Some(deny) = deny {
            if let Some(code) = deny.code.and_then(|code| StatusCode::from_u16(code).ok()) {
                refusal.status = code;
            }
            if let Some(message) = &deny.message {
                reason = text(message);
            }
            if let Some(body) = &deny.body {
                refusal.body = Bytes::from(text(body));
            }
            if !deny.headers.is_empty() {
                let custom = deny.headers.iter().filter_map(|(name, value)| {
                    let name = HeaderName::try_from(name.as_str()).ok()?;
                    Some((name, HeaderValue::try_from(text(value)).ok()?))
                });
                headers = custom.collect();
            }
        }
        if let Ok(reason) = HeaderValue::try_from(reason) {
            headers.push((REASON.clone(), reason));
        }
        refusal.headers = headers;
        refusal
    }

    /// Sends callbacks without waiting for them; a probe sends none, and neither does an explanation.
    pub(super) fn callbacks(&mut self, plan: &AuthPlan) {
        static ON_THEIR_WAY: OnceLock<Arc<Semaphore>> = OnceLock::new();
        if plan.callbacks.is_empty() || self.facts.asked().probe || self.steps.is_some() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let places = ON_THEIR_WAY.get_or_init(|| Arc::new(Semaphore::new(MAX_CALLBACKS)));
        for callback in &plan.callbacks {
            let name = callback.common.name.clone();
            if !self.applies(&callback.common).unwrap_or(false) {
                continue;
            }
            let prepared = match calls::prepare(&callback.call, &self.facts) {
                Ok(prepared) => prepared,
                Err(error) => {
                    debug!(callback = name, "a callback could not be made: {error}");
                    continue;
                }
            };
            let Ok(place) = places.clone().try_acquire_owned() else {
                debug!(
                    callback = name,
                    "a callback is left out: too many are on their way"
                );
                continue;
            };
            let outside = self.shared.outside.clone();
            runtime.spawn(async move {
                if let Err(why) = calls::send(prepared, outside).await {
                    debug!(callback = name, "a callback failed: {why}");
                }
                drop(place);
            });
        }
    }
}

fn header(auth: &Auth, rule: &Response) -> String {
    format!("{} header {:?}", auth.by, rule.key)
}
