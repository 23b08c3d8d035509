//! What people ask about gateways, behind the kernel: the way of a request, what is published, how far limits are used up.
//!
//! Everything is answered for the workspace that is asked in: another workspace's listeners, rules and counters are not shown, also
//! where they share an address.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_apiservice::{ApiService, Body, BoxError, Handler, RequestInfo, Resource, full};
use fairway_gateway_gatekeeper::Gatekeeper;
use fairway_gateway_routes::table::{Action, Certificate, CertificateKey, HostPattern, PathMatch, Target};
use fairway_kernel_x509::Certificate as Read;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tower::service_fn;

use crate::plane::{DataPlane, Explained, Probe};
use crate::policies::decide::{Way, ways};

/// The group.
const GROUP: &str = "gateway.fairway.dev";
const VERSION: &str = "v1alpha1";
/// The largest question.
const MAX_BODY: usize = 64 * 1024;

/// Answers.
#[derive(Clone)]
pub struct Service {
    plane: Arc<dyn DataPlane>,
    gatekeeper: Arc<Gatekeeper>,
}

#[derive(Deserialize)]
struct Question {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    method: String,
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, Values>,
    /// The client's address.
    #[serde(default)]
    source: Option<String>,
}

/// What a header says; one that comes several times has several values, in their order.
#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    One(String),
    Many(Vec<String>),
}

impl Values {
    fn all(&self) -> &[String] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

impl Service {
    pub(crate) fn new(plane: Arc<dyn DataPlane>, gatekeeper: Arc<Gatekeeper>) -> Self {
        Self { plane, gatekeeper }
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let info = request
            .extensions()
            .get::<RequestInfo>()
            .cloned()
            .unwrap_or_default();
        match info.resource.as_str() {
            "explanations" => self.explain(&info.cluster, request).await,
            "publishedrules" => Ok(reply(StatusCode::OK, &self.published(&info.cluster))),
            "servedcertificates" => Ok(reply(StatusCode::OK, &self.certificates(&info.cluster))),
            "counters" => Ok(reply(StatusCode::OK, &self.counters(&info.cluster))),
            other => Ok(refused(StatusCode::NOT_FOUND, &format!("there is no {other}"))),
        }
    }

    async fn explain(&self, workspace: &str, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let Some(body) = read(request.into_body()).await else {
            return Ok(refused(StatusCode::PAYLOAD_TOO_LARGE, "the question is too long"));
        };
        let asked = match serde_json::from_slice::<Question>(&body) {
            Ok(question) => probe(&question.spec),
            Err(error) => Err(error.to_string()),
        };
        let asked = match asked {
            Ok(asked) => asked,
            Err(why) => return Ok(refused(StatusCode::BAD_REQUEST, &why)),
        };
        let explained = self.plane.explain(asked).await;
        Ok(reply(StatusCode::OK, &shown(workspace, &explained)))
    }

    fn published(&self, workspace: &str) -> Value {
        let table = self.plane.table();
        let own = ways(&table).into_values();
        let own = own.filter(|way| way.rule.listener.workspace == workspace);
        let items: Vec<Value> = own.map(|way| published(&way)).collect();
        json!({"apiVersion": format!("{GROUP}/{VERSION}"), "kind": "PublishedRuleList", "items": items})
    }

    fn certificates(&self, workspace: &str) -> Value {
        let table = self.plane.table();
        let own = table
            .certificates
            .iter()
            .filter(|(key, _)| key.workspace == workspace);
        let items: Vec<Value> = own.map(|(key, held)| certificate(key, held)).collect();
        json!({"apiVersion": format!("{GROUP}/{VERSION}"), "kind": "ServedCertificateList", "items": items})
    }

    fn counters(&self, workspace: &str) -> Value {
        let now = u128::try_from(Timestamp::now().as_nanosecond()).unwrap_or_default();
        let own = self.gatekeeper.counters(now).into_iter();
        let own = own.filter(|it| it.key.split('|').next() == Some(workspace));
        let items: Vec<Value> = own
            .map(|it| json!({"key": it.key, "count": it.count, "reset": it.reset}))
            .collect();
        json!({"apiVersion": format!("{GROUP}/{VERSION}"), "kind": "CounterList", "items": items})
    }
}

impl ApiService for Service {
    fn group_version(&self) -> (&str, &str) {
        (GROUP, VERSION)
    }

    fn resources(&self) -> Vec<Resource> {
        let whole = |name: &str, kind: &str, verb: &str| {
            let mut resource = Resource::new(name, kind).cluster_scoped().verbs(&[verb]);
            // Not an object that could be found by a name of its kind.
            resource.singular = String::new();
            resource
        };
        vec![
            whole("counters", "Counter", "list"),
            whole("explanations", "Explanation", "create"),
            whole("publishedrules", "PublishedRule", "list"),
            whole("servedcertificates", "ServedCertificate", "list"),
        ]
    }

    fn handler(&self) -> Handler {
        let service = self.clone();
        Handler::new(service_fn(move |request| {
            let service = service.clone();
            async move { service.answer(request).await }
        }))
    }
}

/// A whole body; nothing, if it is too long or breaks off.
async fn read(mut body: Body) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(part) = frame.ok()?.into_data() {
            all.extend_from_slice(&part);
        }
        if all.len() > MAX_BODY {
            return None;
        }
    }
    Some(all)
}

fn probe(spec: &Spec) -> Result<Probe, String> {
    let mut headers = HeaderMap::new();
    let lines =
        (spec.headers.iter()).flat_map(|(name, values)| values.all().iter().map(move |it| (name, it)));
    for (name, value) in lines {
        let read = HeaderName::from_bytes(name.as_bytes()).ok();
        let (Some(name), Ok(value)) = (read, HeaderValue::from_str(value)) else {
            return Err(format!("{name:?} is not a header, or its value is not one"));
        };
        headers.append(name, value);
    }
    let uri: http::Uri = spec
        .url
        .parse()
        .map_err(|_| format!("{:?} is not a URL", spec.url))?;
    if uri.host().is_none() {
        return Err(format!(
            "{:?} has no host; write it such as https://api.example.com/path",
            spec.url
        ));
    }
    let method = spec
        .method
        .parse()
        .map_err(|_| format!("{:?} is not a method", spec.method))?;
    let client =
        match spec.source.as_deref().filter(|source| !source.is_empty()) {
            None => None,
            Some(source) => Some(source.parse().map_err(|_| {
                format!("source {source:?} is not an IP address; write it such as 192.0.2.1")
            })?),
        };
    Ok(Probe {
        method,
        uri,
        headers,
        client,
    })
}

/// What may be told in a workspace.
fn shown(workspace: &str, explained: &Explained) -> Value {
    let is_own = (explained.rule.as_ref()).is_some_and(|rule| rule.listener.workspace == workspace);
    let stages: Vec<Value> = (explained.stages.iter())
        // Which listeners and routes others have is theirs to know.
        .filter(|stage| is_own || matches!(stage.kind, "Request" | "Door"))
        .map(|stage| json!({"kind": stage.kind, "what": stage.what, "seen": stage.seen, "passes": stage.passes}))
        .collect();
    let mut status = json!({"stages": stages});
    match is_own {
        true => status["code"] = json!(explained.status),
        false => status["message"] = json!("no rule of this workspace serves such a request"),
    }
    json!({"apiVersion": format!("{GROUP}/{VERSION}"), "kind": "Explanation", "status": status})
}

fn published(way: &Way) -> Value {
    let host = match &way.host {
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Wildcard(suffix) => format!("*.{suffix}"),
        HostPattern::Any => "*".to_owned(),
    };
    let (sort, path) = match &way.entry.matches.path {
        PathMatch::Exact(path) => ("Exact", path.clone()),
        PathMatch::Prefix(path) => ("PathPrefix", path.clone()),
        PathMatch::Regex(regex) => ("RegularExpression", regex.as_str().to_owned()),
    };
    let backends: Vec<String> = match &way.entry.rule.action {
        Action::Forward(backends) => (backends.iter())
            .map(|backend| match &backend.target {
                Target::Cluster(key) => format!("{}/{}:{}", key.namespace, key.service, key.port),
                Target::Broken(why) => format!("broken: {why}"),
            })
            .collect(),
        Action::Answered => vec!["redirection".to_owned()],
    };
    let rule = &way.rule;
    json!({
        "scheme": if way.is_secure { "https" } else { "http" }, "host": host,
        "address": way.door.ip().to_string(), "port": way.door.port(), "pathType": sort, "path": path,
        "kind": rule.kind, "namespace": rule.namespace, "name": rule.name, "rule": rule.rule,
        "gateway": format!("{}/{}", rule.listener.namespace, rule.listener.gateway),
        "listener": rule.listener.listener, "backends": backends,
    })
}

/// For whom a certificate is, and until when; the key is nobody's to read.
fn certificate(key: &CertificateKey, held: &Certificate) -> Value {
    let mut shown = json!({"namespace": key.namespace, "secret": key.secret});
    match Read::first_from_pem(&held.chain) {
        Ok(read) => {
            let end = Timestamp::from_second(read.life.end).map(|it| it.to_string());
            shown["names"] = json!(read.names);
            shown["issuer"] = json!(read.issuer_text);
            shown["notAfter"] = json!(end.unwrap_or_default());
        }
        Err(error) => shown["problem"] = json!(error.to_string()),
    }
    shown
}

fn reply(code: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(full(value.to_string()));
    *response.status_mut() = code;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

fn refused(code: StatusCode, why: &str) -> Response<Body> {
    let reason = code.canonical_reason().unwrap_or_default().replace(' ', "");
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code.as_u16(), "reason": reason, "message": why,
    });
    reply(code, &status)
}

#[cfg(test)]
mod tests {
    use fairway_gateway_routes::table::{ListenerKey, RuleKey};

    use super::*;
    use crate::plane::Stage;

    fn explained(workspace: &str) -> Explained {
        let stage = |kind| Stage {
            kind,
            what: "w".to_owned(),
            seen: "s".to_owned(),
            passes: Some(true),
        };
        Explained {
            stages: vec![stage("Request"), stage("Door"), stage("Listener"), stage("Route")],
            rule: Some(RuleKey {
                listener: ListenerKey {
                    workspace: workspace.to_owned(),
                    namespace: "n".to_owned(),
                    gateway: "g".to_owned(),
                    listener: "l".to_owned(),
                },
                kind: "HTTPRoute",
                namespace: "n".to_owned(),
                name: "r".to_owned(),
                rule: 0,
                section: None,
            }),
            status: Some(401),
        }
    }

    #[test]
    fn another_workspaces_routes_are_not_shown() {
        let own = shown("team", &explained("team"));
        assert_eq!(own["status"]["stages"].as_array().unwrap().len(), 4);
        assert_eq!(own["status"]["code"], 401);
        let other = shown("team", &explained("rival"));
        assert_eq!(other["status"]["stages"].as_array().unwrap().len(), 2);
        assert_eq!(other["status"].get("code"), None);
    }

    #[test]
    fn questions_are_read_with_care() {
        let spec = |method: &str, url: &str| Spec {
            method: method.to_owned(),
            url: url.to_owned(),
            headers: [("x-a".to_owned(), Values::One("b".to_owned()))].into(),
            source: None,
        };
        assert!(probe(&spec("GET", "https://a.example.com/x")).is_ok());
        for (method, url) in [("GET", "/x"), ("G T", "https://a/"), ("GET", "https://a b/")] {
            assert!(probe(&spec(method, url)).is_err(), "{method} {url}");
        }
    }

    #[test]
    fn the_clients_address_may_be_said() {
        for (source, expected) in [
            (json!(null), Ok(None)),
            (json!(""), Ok(None)),
            (json!("192.0.2.1"), Ok(Some("192.0.2.1"))),
            (json!("2001:db8::1"), Ok(Some("2001:db8::1"))),
            (json!("192.0.2.1:80"), Err(())),
            (json!("somebody"), Err(())),
        ] {
            let spec = json!({"method": "GET", "url": "https://a/", "source": source});
            let read = probe(&serde_json::from_value(spec).unwrap());
            let found = read.map(|it| it.client.map(|it| it.to_string())).map_err(|_| ());
            assert_eq!(found, expected.map(|it| it.map(str::to_owned)), "{source}");
        }
    }

    #[test]
    fn a_header_may_come_several_times() {
        for (headers, expected) in [
            (json!({"x-a": "b"}), &["b"][..]),
            (json!({"x-a": ["c", "b"]}), &["c", "b"]),
            (json!({"X-A": "b", "x-a": ["c"]}), &["b", "c"]),
            (json!({"x-a": []}), &[]),
            (json!({}), &[]),
        ] {
            let spec = json!({"method": "GET", "url": "https://a/", "headers": headers});
            let read = probe(&serde_json::from_value(spec).unwrap()).unwrap().headers;
            let values: Vec<&str> = (read.get_all("x-a").iter())
                .map(|value| value.to_str().unwrap())
                .collect();
            assert_eq!(values, expected, "{headers}");
        }
        for headers in [json!({"x-a": 1}), json!({"x-a": [1]}), json!({"x-a": ["a\nb"]})] {
            let spec = json!({"method": "GET", "url": "https://a/", "headers": headers});
            let is_read = serde_json::from_value(spec).is_ok_and(|spec| probe(&spec).is_ok());
            assert!(!is_read, "{headers}");
        }
    }
}
