//! What a request would meet, without sending it anywhere: for probes of policies, and for people who ask why.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use fairway_gateway_guard::{Passage, Refusal, Verdict};
use fairway_gateway_routes::table::{HostPattern, ListenerKey, RuleKey};
use http::request::Parts;
use http::{HeaderMap, Method, Uri, Version};

use crate::forwarded;
use crate::guards;
use crate::intake;
use crate::peer::Peer;
use crate::pipeline::{self, Arrived, Context};
use crate::plan::{DoorPlan, Found, ListenerPlan, Plan, TlsPlan};
use crate::proxy::{NOBODY, Shared};

mod walk;
mod words;

use words::{listener_name, rule_name};

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
    for _ in 0..=pipeline::DEEPEST {
        let Some(listener) = next else {
            return told;
        };
        next = walk::through(&context, &listener, &mut parts, &arrived, &mut told).await;
    }
    if next.is_some() {
        told.status = Some(508);
        let seen = "listeners lead to each other in circles";
        told.add(StageKind::Listener, "none", seen, Some(false));
    }
    told
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
