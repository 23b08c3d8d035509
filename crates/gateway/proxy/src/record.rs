//! What is told of a request when it is over: its numbers to the metrics, its line to the access log. It is told however the
//! request ends, also when its task is dropped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use http::request::Parts;
use http::{Method, StatusCode, Uri, Version};

use crate::activity::Open;
use crate::body::BodyError;
use crate::forwarded;
use crate::plan::RulePlan;
use crate::proxy::Shared;
use crate::upstream::Endpoint;

pub(crate) struct Record {
    shared: Arc<Shared>,
    started: Instant,
    rule: Option<Arc<RulePlan>>,
    status: u16,
    sent: u64,
    /// The connection is not idle while the request lasts.
    pub(crate) open: Option<Open>,
    /// Only if somebody reads it.
    line: Option<Box<Line>>,
}

struct Line {
    method: Method,
    uri: Uri,
    version: Version,
    host: String,
    scheme: &'static str,
    client: SocketAddr,
    id: String,
    user_agent: Option<String>,
    trace: Option<String>,
    endpoint: Option<Arc<Endpoint>>,
    attempts: u32,
    denied_by: Option<String>,
    why: Option<String>,
    told: Vec<(&'static str, String)>,
}

/// Of a client's header in a line of the log.
const LONGEST: usize = 256;

impl Record {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            started: Instant::now(),
            rule: None,
            status: 0,
            sent: 0,
            open: None,
            line: None,
        }
    }

    pub(crate) fn begin(
        &mut self,
        parts: &Parts,
        host: &str,
        scheme: &'static str,
        client: SocketAddr,
        id: &str,
    ) {
        if !self.shared.log.is_on() {
            return;
        }
        let agent = parts.headers.get(http::header::USER_AGENT);
        self.line = Some(Box::new(Line {
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            version: parts.version,
            host: host.to_owned(),
            scheme,
            client,
            id: id.to_owned(),
            user_agent: agent
                .and_then(|agent| agent.to_str().ok())
                .map(|agent| agent.chars().take(LONGEST).collect()),
            trace: forwarded::trace_of(&parts.headers).map(str::to_owned),
            endpoint: None,
            attempts: 0,
            denied_by: None,
            why: None,
            told: Vec::new(),
        }));
    }

    pub(crate) fn rule(&mut self, rule: &Arc<RulePlan>) {
        self.rule = Some(Arc::clone(rule));
    }

    pub(crate) fn status(&mut self, status: StatusCode) {
        self.status = status.as_u16();
    }

    pub(crate) fn attempt(&mut self, endpoint: &Arc<Endpoint>) {
        if let Some(line) = &mut self.line {
            line.endpoint = Some(Arc::clone(endpoint));
            line.attempts += 1;
        }
    }

    pub(crate) fn denied(&mut self, by: &str, why: &str) {
        self.shared.metrics.denied(by);
        if let Some(line) = &mut self.line {
            line.denied_by = Some(by.to_owned());
            line.why = Some(why.to_owned());
        }
    }

    pub(crate) fn why(&mut self, why: impl std::fmt::Display) {
        if let Some(line) = &mut self.line {
            line.why = Some(why.to_string());
        }
    }

    pub(crate) fn told(&mut self, told: &mut Vec<(&'static str, String)>) {
        if let Some(line) = &mut self.line {
            line.told.append(told);
        }
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
        self.handed_over();
    }

    /// Something of the answer is on its way to the client.
    pub(crate) fn handed_over(&mut self) {
        if let Some(open) = &mut self.open {
            open.handed_over();
        }
    }

    /// More of the answer is wanted.
    pub(crate) fn asked(&mut self) {
        if let Some(open) = &mut self.open {
            open.asked();
        }
    }

    pub(crate) fn broke(&mut self, error: &BodyError) {
        self.why(error);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        if let Some(rule) = &self.rule {
            rule.metrics.count(self.status, took);
        }
        let Some(line) = self.line.take() else {
            return;
        };
        if !self
            .shared
            .log
            .write(line.text(self.status, self.sent, took.as_micros(), self.rule.as_deref()))
        {
            crate::metrics::add(&self.shared.metrics.totals.access_log_dropped);
        }
    }
}

impl Line {
    fn text(self, status: u16, sent: u64, micros: u128, rule: Option<&RulePlan>) -> String {
        let mut line = serde_json::json!({
            "time": jiff::Timestamp::now().to_string(),
            "client": self.client.to_string(),
            "method": self.method.as_str(),
            "scheme": self.scheme,
            "host": self.host,
            // Without the query: API keys and tokens may be in it.
            "path": self.uri.path(),
            "protocol": format!("{:?}", self.version),
            "status": status,
            "bytes": sent,
            "duration_us": u64::try_from(micros).unwrap_or(u64::MAX),
            "request_id": self.id,
        });
        let mut put = |name: &str, value: serde_json::Value| {
            if let Some(map) = line.as_object_mut() {
                map.insert(name.to_owned(), value);
            }
        };
        if let Some(rule) = rule {
            let key = &rule.rule.key;
            put(
                "route",
                format!("{}/{}/{}", key.kind, key.namespace, key.name).into(),
            );
            put("rule", key.rule.into());
            put(
                "gateway",
                format!("{}/{}", key.listener.namespace, key.listener.gateway).into(),
            );
            put("workspace", key.listener.workspace.clone().into());
        }
        if let Some(endpoint) = &self.endpoint {
            put("upstream", endpoint.to_string().into());
            put("attempts", self.attempts.into());
        }
        if let Some(trace) = self.trace {
            put("trace_id", trace.into());
        }
        if let Some(agent) = self.user_agent {
            put("user_agent", agent.into());
        }
        if let Some(by) = self.denied_by {
            put("denied_by", by.into());
        }
        if let Some(why) = self.why {
            put("why", why.into());
        }
        for (name, value) in self.told {
            put(name, value.into());
        }
        let mut text = line.to_string();
        text.push('\n');
        text
    }
}
