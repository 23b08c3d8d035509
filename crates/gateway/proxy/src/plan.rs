//! A table made ready to serve: names resolved, matches indexed, TLS settings built, and what must outlive a table (endpoints
//! with their connections, counters) taken over from the one before.

mod compile;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use fairway_gateway_routes::lookup::{self, Matcher, Request};
use fairway_gateway_routes::table::{
    self, CertificateKey, ClusterKey, HostPattern, ListenerKey, Names, RuleKey, Table,
};
use rustls::sign::CertifiedKey;

pub(crate) use compile::{Sources, compile};

use crate::guards::{Guards, Protection};
use crate::metrics::RuleMetrics;
use crate::tls::Termination;
use crate::upstream::cluster::Cluster;

#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) generation: u64,
    pub(crate) table: Arc<Table>,
    pub(crate) guards: Guards,
    pub(crate) doors: HashMap<SocketAddr, Arc<DoorPlan>>,
    pub(crate) listeners: HashMap<ListenerKey, Arc<ListenerPlan>>,
    pub(crate) clusters: HashMap<ClusterKey, Arc<Cluster>>,
    /// Backends that are listeners of ours, by host name as at a door.
    pub(crate) inner: HashMap<ClusterKey, Names<Arc<ListenerPlan>>>,
    rules: Rules,
    secrets: Secrets,
}

/// What was made of rules, by their place in memory: entries of one rule share it, and so do tables where it has not changed. The plan
/// of a rule holds it, so no other one takes the place.
type Rules = HashMap<usize, Arc<RulePlan>>;

/// What was made of certificates. The next plan takes over what is the same: reading keys is work, and clients come back
/// with sessions that only those settings know that they were begun with.
#[derive(Default)]
struct Secrets {
    certificates: HashMap<CertificateKey, (Arc<table::Certificate>, Arc<CertifiedKey>)>,
    terminations: HashMap<TerminationKey, Termination>,
}

/// What TLS settings of a listener are made of: where its keys are in memory, and who signs clients' certificates.
type TerminationKey = (ListenerKey, Vec<usize>, Option<String>);

pub(crate) enum DoorPlan {
    Http(Names<Arc<ListenerPlan>>),
    Tls(Names<Arc<TlsPlan>>),
    Tcp(Arc<ForwardPlan>),
}

pub(crate) struct ListenerPlan {
    pub(crate) key: ListenerKey,
    /// Behind TLS.
    pub(crate) secure: bool,
    matcher: Matcher,
    /// By the position of their entries.
    rules: Vec<Arc<RulePlan>>,
}

pub(crate) enum TlsPlan {
    Terminate {
        /// None: it cannot be terminated, and handshakes are refused.
        tls: Option<Termination>,
        http: Arc<ListenerPlan>,
    },
    Passthrough(Arc<ForwardPlan>),
}

pub(crate) struct ForwardPlan {
    pub(crate) key: RuleKey,
    pub(crate) backends: Backends,
}

pub(crate) struct RulePlan {
    pub(crate) rule: Arc<table::Rule>,
    pub(crate) protection: Option<Protection>,
    pub(crate) backends: Backends,
    pub(crate) metrics: Arc<RuleMetrics>,
    /// Filters that mirror, with their backends found.
    pub(crate) mirrors: Vec<(table::Mirror, BackendPlan)>,
}

#[derive(Default)]
pub(crate) struct Backends {
    pub(crate) all: Vec<BackendPlan>,
    total: u64,
}

pub(crate) struct BackendPlan {
    pub(crate) weight: u32,
    pub(crate) target: TargetPlan,
    pub(crate) filters: Vec<table::Filter>,
}

pub(crate) enum TargetPlan {
    Cluster(Arc<Cluster>),
    Broken(Arc<str>),
}

/// A rule that fits, with the match that did.
pub(crate) struct Found<'a> {
    pub(crate) entry: &'a table::Entry,
    pub(crate) rule: &'a Arc<RulePlan>,
}

impl ListenerPlan {
    pub(crate) fn find<'a>(&'a self, host: &'a str, request: &Request<'_>) -> Option<Found<'a>> {
        let found = self.matcher.find(host, request)?;
        Some(Found {
            entry: found.entry,
            rule: self.rules.get(found.position)?,
        })
    }

    /// The same, with what was tried on the way.
    pub(crate) fn explain<'a>(&'a self, host: &'a str, request: &Request<'_>) -> lookup::Explanation<'a> {
        self.matcher.explain(host, request)
    }
}

impl Backends {
    pub(crate) fn new(all: Vec<BackendPlan>) -> Self {
        let total = all.iter().map(|backend| u64::from(backend.weight)).sum();
        Self { all, total }
    }

    /// By weight; `chance` is any number. None: there is nothing to choose from.
    pub(crate) fn pick(&self, chance: u64) -> Option<&BackendPlan> {
        if let [only] = &self.all[..] {
            return (only.weight > 0).then_some(only);
        }
        let mut left = ((u128::from(chance) * u128::from(self.total)) >> 64) as u64;
        for backend in &self.all {
            let weight = u64::from(backend.weight);
            if left < weight {
                return Some(backend);
            }
            left -= weight;
        }
        None
    }
}

impl DoorPlan {
    /// The HTTP listener for a host name. For TLS, `server_name` is what the connection asked for.
    pub(crate) fn listener(&self, host: &str, server_name: Option<&str>) -> Listening<'_> {
        match self {
            Self::Http(names) => names
                .candidates(host)
                .next()
                .map_or(Listening::Nobody, Listening::Here),
            Self::Tls(names) => {
                let by_name = match server_name {
                    Some(name) => names.candidates(name).next(),
                    None => names.get(&HostPattern::Any),
                };
                let Some(TlsPlan::Terminate { http, .. }) = by_name.map(|tls| &**tls) else {
                    return Listening::Nobody;
                };
                // Browsers reuse connections for other names of the same certificate; what belongs to another listener must
                // not come in through this one's TLS settings.
                match names.candidates(host).next().map(|tls| &**tls) {
                    Some(TlsPlan::Terminate { http: other, .. }) if other.key != http.key => {
                        Listening::Elsewhere
                    }
                    Some(TlsPlan::Passthrough(_)) => Listening::Elsewhere,
                    _ => Listening::Here(http),
                }
            }
            Self::Tcp(_) => Listening::Nobody,
        }
    }
}

pub(crate) enum Listening<'a> {
    Here(&'a Arc<ListenerPlan>),
    /// Another listener of the same door: 421.
    Elsewhere,
    Nobody,
}
