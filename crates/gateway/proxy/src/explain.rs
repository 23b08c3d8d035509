//! What a request would meet, without sending it anywhere: for probes of policies, and for people who ask why.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use fairway_gateway_guard::{Passage, Refusal, Step, Verdict};
use fairway_gateway_routes::lookup::Miss;
use fairway_gateway_routes::table::{Action, HostPattern, ListenerKey, RuleKey};
use http::request::Parts;
use http::{HeaderMap, Method, Uri, Version};

use crate::filters::cors;
use crate::forwarded;
use crate::guards;
use crate::intake;
use crate::peer::Peer;
use crate::pipeline::{self, Arrived, Context};
use crate::plan::{DoorPlan, Found, ListenerPlan, Plan, RulePlan, TargetPlan, TlsPlan};
use crate::proxy::{NOBODY, Shared};

mod words;

use words::{filter_name, filter_text, listener_name, match_text, names_text, rule_name};

/// Listeners on the way of one request.
const LISTENERS: usize = 8;

/// A request that is not sent.
#[derive(Debug, Clone)]
pub struct ProbeRequest {
    pub method: Method,
    /// Absolute, `https://api.example.com/path`, or a path with `Host` among the headers.
    pub uri: Uri,
    pub headers: HeaderMap,
    /// None: the node itself.
    pub client: Option<IpAddr>,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// The listener is not in the table.
    NoListener,
    /// It would be refused before anybody decides: why.
    Malformed(&'static str),
    NoRoute,
    Denied {
        rule: RuleKey,
        refusal: Refusal,
    },
    Allowed {
        rule: RuleKey,
        passage: Passage,
    },
}

/// The way of a request, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub stages: Vec<Stage>,
    /// The rule that it belongs to, if there is one.
    pub rule: Option<RuleKey>,
    /// What the client would be answered, where that is known without asking a backend.
    pub status: Option<u16>,
}

/// One thing on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    pub kind: StageKind,
    /// `HTTPRoute team/api rule 0`.
    pub what: String,
    /// What matched, which values were seen, what it does.
    pub seen: String,
    /// False: the request ends here. None where nothing is decided.
    pub passes: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageKind {
    Request,
    Door,
    Listener,
    Route,
    Policy,
    Filter,
    Backend,
}

impl Explanation {
    fn add(
        &mut self,
        kind: StageKind,
        what: impl Into<String>,
        seen: impl Into<String>,
        passes: Option<bool>,
    ) {
        self.stages.push(Stage {
            kind,
            what: what.into(),
            seen: seen.into(),
            passes,
        });
    }
}

fn parts_of(request: &ProbeRequest) -> Parts {
    let mut built = http::Request::new(());
    *built.method_mut() = request.method.clone();
    *built.uri_mut() = request.uri.clone();
    *built.headers_mut() = request.headers.clone();
    *built.version_mut() = Version::HTTP_11;
    built.into_parts().0
}

fn peer_of(request: &ProbeRequest, door: SocketAddr, secure: bool) -> Peer {
    let client = SocketAddr::new(request.client.unwrap_or(NOBODY), 0);
    Peer::new(
        client,
        door,
        door.port(),
        secure.then(|| request.uri.host().map(str::to_owned)),
    )
}

/// The door behind which a listener is.
fn door_of(plan: &Plan, key: &ListenerKey) -> Option<SocketAddr> {
    let has = |door: &DoorPlan| match door {
        DoorPlan::Http(names) => names.iter().any(|(_, listener)| listener.key == *key),
        DoorPlan::Tls(names) => names
            .iter()
            .any(|(_, tls)| matches!(&**tls, TlsPlan::Terminate { http, .. } if http.key == *key)),
        DoorPlan::Tcp(_) => false,
    };
    plan.doors
        .iter()
        .find(|(_, door)| has(door))
        .map(|(address, _)| *address)
}

pub(crate) async fn probe(shared: &Arc<Shared>, key: &ListenerKey, request: &ProbeRequest) -> Probe {
    let plan = shared.plan.load_full();
    let Some(listener) = plan.listeners.get(key) else {
        return Probe::NoListener;
    };
    let mut parts = parts_of(request);
    let host = match intake::admit(&mut parts) {
        Ok(host) => host,
        Err(bad) => return Probe::Malformed(bad.why),
    };
    let door = door_of(&plan, key).unwrap_or_else(|| ([127, 0, 0, 1], 0).into());
    let peer = peer_of(request, door, listener.secure);
    let id = forwarded::id(&parts.headers, &shared.options.trust);
    pipeline::introduce(&mut parts, shared, &peer, &id);
    let Some(Found { rule, .. }) = listener.find(&host.0, &pipeline::sought(&parts)) else {
        return Probe::NoRoute;
    };
    let key_of_rule = rule.rule.key.clone();
    let Some(protection) = &rule.protection else {
        return Probe::Allowed {
            rule: key_of_rule,
            passage: Passage::default(),
        };
    };
    let arrived = Arrived { host: &host, id: &id };
    let asked = pipeline::asked(&peer, &parts, &arrived, true);
    match guards::judge(protection, &asked).await {
        Verdict::Allow(passage) => Probe::Allowed {
            rule: key_of_rule,
            passage,
        },
        Verdict::Deny(refusal) => Probe::Denied {
            rule: key_of_rule,
            refusal,
        },
    }
}

pub(crate) async fn explain(shared: &Arc<Shared>, request: &ProbeRequest) -> Explanation {
    let plan = shared.plan.load_full();
    let mut told = Explanation {
        stages: Vec::new(),
        rule: None,
        status: None,
    };
    let mut parts = parts_of(request);
    let secure = request.uri.scheme_str() == Some("https");
    let port = request.uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let shown = format!("{} {}", request.method, request.uri);
    let host = match intake::admit(&mut parts) {
        Ok(host) => host,
        Err(bad) => {
            told.add(StageKind::Request, shown, bad.why, Some(false));
            told.status = Some(bad.status.as_u16());
            return told;
        }
    };
    told.add(
        StageKind::Request,
        shown,
        format!("host {:?}, path {}", host.0, parts.uri.path()),
        Some(true),
    );
    let Some((address, listener)) = find_listener(&plan, secure, port, &host.0, &mut told) else {
        return told;
    };
    let peer = Arc::new(peer_of(request, address, secure));
    let id = forwarded::id(&parts.headers, &shared.options.trust);
    pipeline::introduce(&mut parts, shared, &peer, &id);
    let door = plan.doors.get(&address).cloned();
    let Some(door) = door else {
        return told;
    };
    let context = Context {
        shared: Arc::clone(shared),
        worker: 0,
        peer,
        plan: Arc::clone(&plan),
        door,
    };
    let arrived = Arrived { host: &host, id: &id };
    let mut next = Some(listener);
    for _ in 0..LISTENERS {
        let Some(listener) = next else { break };
        walk(&context, &listener, &parts, &arrived, &mut told).await;
        next = inner_of(&plan, &listener, &parts, &arrived, &mut told);
    }
    told
}

/// A Route leads to a Gateway's Service, and that to one of our own listeners: the way goes on there.
fn inner_of(
    plan: &Plan,
    listener: &Arc<ListenerPlan>,
    parts: &Parts,
    arrived: &Arrived<'_>,
    told: &mut Explanation,
) -> Option<Arc<ListenerPlan>> {
    let has_passed = |stage: &Stage| stage.kind == StageKind::Backend && stage.passes == Some(true);
    if !told.stages.last().is_some_and(has_passed) {
        return None;
    }
    let found = listener.find(&arrived.host.0, &pipeline::sought(parts))?;
    let inner = found
        .rule
        .backends
        .all
        .iter()
        .find_map(|backend| match &backend.target {
            TargetPlan::Cluster(cluster) => plan.inner.get(&cluster.key),
            TargetPlan::Broken(_) => None,
        })?;
    match inner.candidates(&arrived.host.0).next() {
        Some(next) => {
            let seen = "it is one of our own, so the request goes there without a connection between";
            told.add(StageKind::Listener, listener_name(&next.key), seen, Some(true));
            Some(Arc::clone(next))
        }
        None => {
            told.status = Some(404);
            let seen = "the backend is a listener that is not meant for this host";
            told.add(StageKind::Listener, "none", seen, Some(false));
            None
        }
    }
}

fn find_listener(
    plan: &Plan,
    secure: bool,
    port: u16,
    host: &str,
    told: &mut Explanation,
) -> Option<(SocketAddr, Arc<ListenerPlan>)> {
    let mut doors: Vec<_> = plan
        .doors
        .iter()
        .filter(|(address, _)| address.port() == port)
        .collect();
    doors.sort_by_key(|(address, _)| **address);
    if doors.is_empty() {
        let open: Vec<String> = plan.table.doors.keys().map(ToString::to_string).collect();
        let seen = format!("nothing listens on port {port}; doors: {}", open.join(", "));
        told.add(StageKind::Door, format!("port {port}"), seen, Some(false));
        return None;
    }
    for (address, door) in doors {
        let speaks = match &**door {
            DoorPlan::Http(_) => "HTTP",
            DoorPlan::Tls(_) => "TLS",
            DoorPlan::Tcp(_) => "TCP",
        };
        if secure != (speaks == "TLS") {
            let seen = format!("it speaks {speaks}");
            told.add(StageKind::Door, address.to_string(), seen, Some(false));
            continue;
        }
        told.add(
            StageKind::Door,
            address.to_string(),
            format!("it speaks {speaks}"),
            Some(true),
        );
        let listener = match &**door {
            DoorPlan::Http(names) => names.candidates(host).next().cloned(),
            DoorPlan::Tls(names) => {
                let found = names
                    .candidates(host)
                    .next()
                    .or_else(|| names.get(&HostPattern::Any));
                match found.map(|tls| &**tls) {
                    Some(TlsPlan::Terminate { tls, http }) => {
                        if tls.is_none() {
                            let seen = "it has no certificate that can be used, so handshakes are refused";
                            told.add(StageKind::Listener, listener_name(&http.key), seen, Some(false));
                            return None;
                        }
                        Some(Arc::clone(http))
                    }
                    Some(TlsPlan::Passthrough(forward)) => {
                        let what = rule_name(&forward.key);
                        let seen = "TLS is passed through: what is inside is between client and backend";
                        told.rule = Some(forward.key.clone());
                        told.add(StageKind::Route, what, seen, Some(true));
                        return None;
                    }
                    None => None,
                }
            }
            DoorPlan::Tcp(_) => None,
        };
        match listener {
            Some(listener) => {
                let seen = format!("its host names fit {host:?}");
                told.add(
                    StageKind::Listener,
                    listener_name(&listener.key),
                    seen,
                    Some(true),
                );
                return Some((*address, listener));
            }
            None => {
                told.status = (!secure).then_some(404);
                told.add(
                    StageKind::Listener,
                    "none",
                    format!("no listener is meant for {host:?}"),
                    Some(false),
                );
            }
        }
    }
    None
}

async fn walk(
    context: &Context,
    listener: &Arc<ListenerPlan>,
    parts: &Parts,
    arrived: &Arrived<'_>,
    told: &mut Explanation,
) {
    passed_over(listener, parts, arrived, told);
    let Some(Found { rule, entry }) = listener.find(&arrived.host.0, &pipeline::sought(parts)) else {
        told.status = Some(404);
        let seen = format!("no route of the listener fits {} {}", parts.method, parts.uri);
        return told.add(StageKind::Route, "none", seen, Some(false));
    };
    told.rule = Some(rule.rule.key.clone());
    told.add(
        StageKind::Route,
        rule_name(&rule.rule.key),
        match_text(&entry.matches),
        Some(true),
    );
    if let Some(filter) = pipeline::cors_of(rule)
        && cors::preflight(filter, &parts.method, &parts.headers).is_some()
    {
        told.status = Some(204);
        let seen = "a preflight is answered here, before any policy";
        return told.add(StageKind::Filter, "CORS", seen, Some(false));
    }
    if !policies(context, rule, parts, arrived, told).await {
        return;
    }
    for filter in &rule.rule.filters {
        told.add(StageKind::Filter, filter_name(filter), filter_text(filter), None);
    }
    if let Some(response) = pipeline::redirected(context, rule, &entry.matches.path, parts, arrived) {
        told.status = Some(response.status().as_u16());
        let to = response
            .headers()
            .get(http::header::LOCATION)
            .and_then(|value| value.to_str().ok());
        let seen = format!("redirects to {}", to.unwrap_or("nowhere"));
        return told.add(StageKind::Filter, "RequestRedirect", seen, Some(false));
    }
    if rule.rule.action == Action::Answered {
        return;
    }
    backends(context, rule, told);
}

/// Rules that were passed over and are told of; the rest is counted.
const MOST_TRIED: usize = 10;

/// Rules whose path fits and that something else kept from being meant.
fn passed_over(listener: &ListenerPlan, parts: &Parts, arrived: &Arrived<'_>, told: &mut Explanation) {
    let sought = pipeline::sought(parts);
    let tried = listener.explain(&arrived.host.0, &sought).tried;
    let missed: Vec<_> = tried
        .iter()
        .filter_map(|one| Some((one, one.miss.as_ref()?)))
        .collect();
    for (one, miss) in missed.iter().take(MOST_TRIED) {
        let seen = match miss {
            Miss::Path => "its path does not fit".to_owned(),
            Miss::Method => format!("it is not for {}", parts.method),
            Miss::Header(name) => format!("header {name} does not fit"),
            Miss::Query(name) => format!("query parameter {name} does not fit"),
        };
        let seen = format!("passed over: {seen} ({})", match_text(&one.entry.matches));
        told.add(StageKind::Route, rule_name(&one.entry.rule.key), seen, None);
    }
    if missed.len() > MOST_TRIED {
        let seen = format!("and {} more were passed over", missed.len() - MOST_TRIED);
        told.add(StageKind::Route, "others", seen, None);
    }
}

async fn policies(
    context: &Context,
    rule: &RulePlan,
    parts: &Parts,
    arrived: &Arrived<'_>,
    told: &mut Explanation,
) -> bool {
    let Some(protection) = &rule.protection else {
        told.add(
            StageKind::Policy,
            "none",
            "no policy is attached to this rule",
            Some(true),
        );
        return true;
    };
    let asked = pipeline::asked(&context.peer, parts, arrived, true);
    let (verdict, steps) = guards::explain(protection, &asked).await;
    for Step { what, seen, passes } in steps {
        told.add(StageKind::Policy, what, seen, passes);
    }
    match verdict {
        Verdict::Allow(passage) => {
            let seen = format!(
                "backends are told {}, the client is told {}",
                names_text(&passage.request_headers),
                names_text(&passage.response_headers)
            );
            told.add(StageKind::Policy, "verdict", seen, Some(true));
            true
        }
        Verdict::Deny(refusal) => {
            told.status = Some(refusal.status.as_u16());
            let seen = format!("{} {}: {}", refusal.status.as_u16(), refusal.by, refusal.why);
            told.add(StageKind::Policy, "verdict", seen, Some(false));
            false
        }
    }
}

fn backends(context: &Context, rule: &RulePlan, told: &mut Explanation) {
    let total: u64 = rule
        .backends
        .all
        .iter()
        .map(|backend| u64::from(backend.weight))
        .sum();
    if total == 0 {
        told.status = Some(500);
        let seen = "the rule has no backend with a weight";
        return told.add(StageKind::Backend, "none", seen, Some(false));
    }
    let now = context.shared.now();
    for backend in &rule.backends.all {
        let share = format!("weight {} of {total}", backend.weight);
        match &backend.target {
            TargetPlan::Broken(why) => {
                told.status = (rule.backends.all.len() == 1).then_some(500);
                told.add(
                    StageKind::Backend,
                    "broken",
                    format!("{share}: {why}"),
                    Some(false),
                );
            }
            TargetPlan::Cluster(cluster) => {
                let key = &cluster.key;
                let what = format!("Service {}/{} port {}", key.namespace, key.service, key.port);
                if cluster.endpoints.is_empty() {
                    told.status = (rule.backends.all.len() == 1).then_some(503);
                    told.add(
                        StageKind::Backend,
                        what,
                        format!("{share}: no endpoints"),
                        Some(false),
                    );
                    continue;
                }
                let endpoints: Vec<String> = cluster
                    .endpoints
                    .iter()
                    .map(|endpoint| {
                        let state = if endpoint.health.is_up(now) {
                            "up"
                        } else {
                            "left out"
                        };
                        format!("{endpoint} ({state}, {} requests)", endpoint.load())
                    })
                    .collect();
                told.add(
                    StageKind::Backend,
                    what,
                    format!("{share}: {}", endpoints.join(", ")),
                    Some(true),
                );
            }
        }
    }
}
