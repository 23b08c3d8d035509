//! A data plane that serves nobody: it remembers the table and its guards, and answers probes by them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use fairway_gateway_engine::{Acknowledged, DataPlane, Explained, Guards, NotBound, Probe, Protection};
use fairway_gateway_guard::{Asked, Judgement, Verdict};
use fairway_gateway_routes::table::{ListenerKey, RuleKey, Table};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Uri, Version};

#[derive(Default)]
pub(crate) struct Remembering(Mutex<State>);

#[derive(Default)]
struct State {
    table: Arc<Table>,
    guards: Guards,
    privileged: BTreeSet<u16>,
    lies: bool,
    stalls: bool,
}

impl Remembering {
    /// Ports that are not for this process.
    pub(crate) fn needs_privilege(&self, port: u16) {
        self.0.lock().unwrap().privileged.insert(port);
    }

    /// Says of every request that it passes.
    pub(crate) fn lie(&self, lies: bool) {
        self.0.lock().unwrap().lies = lies;
    }

    /// Leaves probes without an answer, as a policy does that asks a silent server.
    pub(crate) fn stall(&self, stalls: bool) {
        self.0.lock().unwrap().stalls = stalls;
    }

    pub(crate) fn guarded(&self) -> usize {
        self.0.lock().unwrap().guards.len()
    }

    /// Whether a plain request is refused by every guard that there is.
    pub(crate) async fn refuses_all(&self) -> bool {
        let guards = self.0.lock().unwrap().guards.clone();
        for protection in guards.values() {
            if !refuses(protection, &with(&HeaderMap::new())).await {
                return false;
            }
        }
        !guards.is_empty()
    }

    /// Whether every guard that there is lets a request with these headers pass.
    pub(crate) async fn passes(&self, headers: &HeaderMap) -> bool {
        let guards = self.0.lock().unwrap().guards.clone();
        for protection in guards.values() {
            if refuses(protection, &with(headers)).await {
                return false;
            }
        }
        !guards.is_empty()
    }
}

fn with(headers: &HeaderMap) -> Probe {
    Probe {
        method: Method::GET,
        uri: Uri::from_static("http://a/"),
        headers: headers.clone(),
        client: None,
    }
}

async fn refuses(protection: &Protection, request: &Probe) -> bool {
    let Protection::Guarded(guard) = protection else {
        return true;
    };
    let asked = Asked {
        method: &request.method,
        uri: &request.uri,
        host: request.uri.host().unwrap_or_default(),
        scheme: "http",
        version: Version::HTTP_11,
        headers: &request.headers,
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        client_port: 1,
        door: ([192, 0, 2, 1], 443).into(),
        id: "probe",
        now: 0,
        probe: true,
    };
    let verdict = match guard.judge(&asked) {
        Judgement::Now(verdict) => verdict,
        Judgement::Later(verdict) => verdict.await,
    };
    matches!(verdict, Verdict::Deny(_))
}

impl DataPlane for Remembering {
    fn serve(&self, table: Arc<Table>, guards: Guards) -> BoxFuture<'_, Acknowledged> {
        let mut state = self.0.lock().unwrap();
        let refused = table
            .doors
            .keys()
            .filter(|door| state.privileged.contains(&door.port()));
        let closed = refused.map(|door| {
            let why = NotBound {
                needs_privilege: true,
                why: "Permission denied".to_owned(),
            };
            (*door, why)
        });
        let answer = Acknowledged {
            closed: closed.collect(),
        };
        (state.table, state.guards) = (table, guards);
        std::future::ready(answer).boxed()
    }

    fn explain(&self, _: Probe) -> BoxFuture<'_, Explained> {
        std::future::ready(Explained::default()).boxed()
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&self.0.lock().unwrap().table)
    }

    fn probe<'p>(
        &'p self,
        listener: &'p ListenerKey,
        request: Probe,
    ) -> BoxFuture<'p, Option<(RuleKey, bool)>> {
        if self.0.lock().unwrap().stalls {
            return std::future::pending().boxed();
        }
        let (found, lies) = {
            let state = self.0.lock().unwrap();
            let own = state.guards.iter().find(|(rule, _)| rule.listener == *listener);
            (own.map(|(rule, it)| (rule.clone(), it.clone())), state.lies)
        };
        async move {
            let (rule, protection) = found?;
            let refused = refuses(&protection, &request).await;
            Some((rule, refused && !lies))
        }
        .boxed()
    }
}
