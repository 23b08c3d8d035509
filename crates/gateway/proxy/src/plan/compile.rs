//! From a table to a plan.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use fairway_gateway_routes::lookup::Matcher;
use fairway_gateway_routes::table::{
    self, Action, CertificateKey, ClusterKey, Door, Entry, Filter, Listener, ListenerKey, Names, PathMatch,
    Rule, Table, Target, TlsListener, Traffic,
};
use rustls::sign::CertifiedKey;

use super::{
    BackendPlan, Backends, DoorPlan, ForwardPlan, ListenerPlan, Plan, RulePlan, Rules, Secrets, TargetPlan,
    TerminationKey, TlsPlan,
};
use crate::affinity::Marks;
use crate::applied::Problem;
use crate::guards::{self, Guards};
use crate::metrics::Metrics;
use crate::options::{Breaker, Outliers};
use crate::path;
use crate::tls::{self, Termination};
use crate::upstream::Endpoint;
use crate::upstream::cluster::Cluster;
use crate::upstream::tls as upstream_tls;

/// What a plan is made with beside the table.
pub(crate) struct Sources<'a> {
    pub(crate) guards: &'a Guards,
    pub(crate) metrics: &'a Metrics,
    pub(crate) marks: &'a Marks,
    pub(crate) breaker: &'a Breaker,
    pub(crate) outliers: &'a Outliers,
    pub(crate) workers: usize,
}

pub(crate) fn compile(table: Arc<Table>, before: &Plan, sources: &Sources<'_>) -> (Plan, Vec<Problem>) {
    let mut problems = Vec::new();
    let clusters = clusters(&table, before, sources, &mut problems);
    let certificates = certificates(&table, before, &mut problems);
    let mut compiler = Compiler {
        sources,
        clusters: &clusters,
        certificates: &certificates,
        before,
        terminations: HashMap::new(),
        rules: HashMap::new(),
        listeners: HashMap::new(),
        problems,
    };
    let doors: HashMap<SocketAddr, Arc<DoorPlan>> = table
        .doors
        .iter()
        .map(|(address, door)| (*address, Arc::new(compiler.door(door))))
        .collect();
    let (listeners, problems) = (compiler.listeners, compiler.problems);
    let (terminations, rules) = (compiler.terminations, compiler.rules);
    let inner = inner(&clusters, &doors);
    let listeners = listeners
        .into_values()
        .map(|listener| (listener.key.clone(), listener))
        .collect();
    sources.metrics.forget_others(&table);
    let plan = Plan {
        generation: before.generation + 1,
        table,
        guards: sources.guards.clone(),
        doors,
        listeners,
        clusters,
        inner,
        rules,
        secrets: Secrets {
            certificates,
            terminations,
        },
    };
    (plan, problems)
}

/// Where requests go whose backend is a listener of ours: of several, the one whose host name fits best.
fn inner(
    clusters: &HashMap<ClusterKey, Arc<Cluster>>,
    doors: &HashMap<SocketAddr, Arc<DoorPlan>>,
) -> HashMap<ClusterKey, Names<Arc<ListenerPlan>>> {
    let mut inner = HashMap::new();
    for (key, cluster) in clusters {
        let meant = |listener: &ListenerPlan| {
            let ours =
                |at: &table::Endpoint| matches!(at, table::Endpoint::Listener(key) if *key == listener.key);
            cluster.spec.endpoints.iter().any(ours)
        };
        if !cluster
            .spec
            .endpoints
            .iter()
            .any(|at| matches!(at, table::Endpoint::Listener(_)))
        {
            continue;
        }
        let mut names = Names::default();
        for door in doors.values() {
            match &**door {
                DoorPlan::Http(listeners) => {
                    for (pattern, listener) in listeners.iter().filter(|(_, listener)| meant(listener)) {
                        names.insert(pattern, Arc::clone(listener));
                    }
                }
                DoorPlan::Tls(listeners) => {
                    for (pattern, listener) in listeners.iter() {
                        match &**listener {
                            TlsPlan::Terminate { http, .. } if meant(http) => {
                                names.insert(pattern, Arc::clone(http));
                            }
                            TlsPlan::Terminate { .. } | TlsPlan::Passthrough(_) => {}
                        }
                    }
                }
                DoorPlan::Tcp(_) => {}
            }
        }
        inner.insert(key.clone(), names);
    }
    inner
}

fn clusters(
    table: &Table,
    before: &Plan,
    sources: &Sources<'_>,
    problems: &mut Vec<Problem>,
) -> HashMap<ClusterKey, Arc<Cluster>> {
    let mut clusters = HashMap::with_capacity(table.clusters.len());
    for (key, spec) in &table.clusters {
        let old = before.clusters.get(key);
        if let Some(old) = old.filter(|old| Arc::ptr_eq(&old.spec, spec) || *old.spec == **spec) {
            clusters.insert(key.clone(), Arc::clone(old));
            continue;
        }
        // Connections that were made with other settings are not used any longer.
        let old = old.filter(|old| {
            let old = &old.spec;
            old.protocol == spec.protocol && old.tls == spec.tls && old.traffic == spec.traffic
        });
        let tls = match (&spec.tls, old) {
            (None, _) => None,
            (Some(_), Some(old)) => old.tls.clone(),
            (Some(tls), None) => Some(upstream_tls::backend(tls, spec.protocol)),
        };
        if let Some(Err(why)) = &tls {
            problems.push(Problem::BackendTls {
                cluster: key.clone(),
                why: why.to_string(),
            });
        }
        let known: BTreeMap<&table::Endpoint, &Arc<Endpoint>> = old
            .iter()
            .flat_map(|old| &old.endpoints)
            .map(|endpoint| (&endpoint.at, endpoint))
            .collect();
        let endpoint = |at: &table::Endpoint| match known.get(at) {
            Some(known) => Arc::clone(known),
            None => Arc::new(Endpoint::new(
                key.clone(),
                at.clone(),
                sources.marks.of(key, at),
                treatment(&spec.traffic, sources),
                sources.workers,
            )),
        };
        let endpoints = spec.endpoints.iter().map(endpoint).collect();
        clusters.insert(
            key.clone(),
            Arc::new(Cluster::new(Arc::clone(spec), tls, endpoints)),
        );
    }
    clusters
}

/// What a Service says of its endpoints goes before what holds for all.
fn treatment(traffic: &Traffic, sources: &Sources<'_>) -> (Breaker, Outliers) {
    let (breaker, outliers) = (sources.breaker, sources.outliers);
    let (own, ejection) = (&traffic.breaker, &traffic.ejection);
    let base = ejection.base.unwrap_or(outliers.base);
    (
        Breaker {
            connections: own.connections.unwrap_or(breaker.connections),
            pending: own.pending.unwrap_or(breaker.pending),
            requests: own.requests.unwrap_or(breaker.requests),
            idle: breaker.idle,
        },
        Outliers {
            failures: ejection.failures.unwrap_or(outliers.failures),
            base,
            longest: ejection.longest.unwrap_or(outliers.longest).max(base),
        },
    )
}

type Certificates = HashMap<CertificateKey, (Arc<table::Certificate>, Arc<CertifiedKey>)>;

fn certificates(table: &Table, before: &Plan, problems: &mut Vec<Problem>) -> Certificates {
    let mut certificates = HashMap::with_capacity(table.certificates.len());
    for (key, certificate) in &table.certificates {
        let old = before.secrets.certificates.get(key);
        if let Some((_, old)) = old.filter(|(of, _)| Arc::ptr_eq(of, certificate) || **of == **certificate) {
            certificates.insert(key.clone(), (Arc::clone(certificate), Arc::clone(old)));
            continue;
        }
        match tls::certified(certificate) {
            Ok(certified) => {
                certificates.insert(key.clone(), (Arc::clone(certificate), Arc::new(certified)));
            }
            Err(why) => problems.push(Problem::Certificate {
                key: key.clone(),
                why,
            }),
        }
    }
    certificates
}

struct Compiler<'a> {
    sources: &'a Sources<'a>,
    clusters: &'a HashMap<ClusterKey, Arc<Cluster>>,
    certificates: &'a Certificates,
    before: &'a Plan,
    terminations: HashMap<TerminationKey, Termination>,
    rules: Rules,
    listeners: HashMap<*const Listener, Arc<ListenerPlan>>,
    problems: Vec<Problem>,
}

impl Compiler<'_> {
    fn door(&mut self, door: &Door) -> DoorPlan {
        match door {
            Door::Http(names) => DoorPlan::Http(map(names, |listener| self.listener(listener, false))),
            Door::Tls(names) => DoorPlan::Tls(map(names, |listener| self.tls(listener))),
            Door::Tcp(forward) => DoorPlan::Tcp(self.forward(forward)),
        }
    }

    fn tls(&mut self, listener: &Arc<TlsListener>) -> Arc<TlsPlan> {
        Arc::new(match &**listener {
            TlsListener::Passthrough(forward) => TlsPlan::Passthrough(self.forward(forward)),
            TlsListener::Terminate {
                certificates,
                client_authorities,
                http,
            } => {
                let keys: Vec<_> = certificates
                    .iter()
                    .filter_map(|key| self.certificates.get(key))
                    .map(|(_, key)| Arc::clone(key))
                    .collect();
                for key in certificates
                    .iter()
                    .filter(|key| !self.certificates.contains_key(key))
                {
                    let problem = Problem::Certificate {
                        key: key.clone(),
                        why: "it is not in the table".into(),
                    };
                    if !self
                        .problems
                        .iter()
                        .any(|old| matches!(old, Problem::Certificate { key: old, .. } if old == key))
                    {
                        self.problems.push(problem);
                    }
                }
                let tls = match self.termination(&http.key, keys, client_authorities.as_deref()) {
                    Ok(tls) => tls,
                    Err(why) => {
                        self.problems.push(Problem::ClientAuthorities {
                            listener: http.key.clone(),
                            why,
                        });
                        None
                    }
                };
                TlsPlan::Terminate {
                    tls,
                    http: self.listener(http, true),
                }
            }
        })
    }

    /// The settings of before, where they are made of the same.
    fn termination(
        &mut self,
        listener: &ListenerKey,
        keys: Vec<Arc<CertifiedKey>>,
        authorities: Option<&str>,
    ) -> Result<Option<Termination>, String> {
        // Keys are taken over, so the same place in memory is the same key: what is compared lives in both plans.
        let places = keys.iter().map(|key| Arc::as_ptr(key).addr()).collect();
        let made_of = (listener.clone(), places, authorities.map(str::to_owned));
        let known = self.terminations.get(&made_of);
        let made = match known.or_else(|| self.before.secrets.terminations.get(&made_of)) {
            Some(known) => Some(known.clone()),
            None => tls::termination(keys, authorities)?,
        };
        if let Some(made) = &made {
            self.terminations.insert(made_of, made.clone());
        }
        Ok(made)
    }

    fn listener(&mut self, listener: &Arc<Listener>, secure: bool) -> Arc<ListenerPlan> {
        if let Some(known) = self.listeners.get(&Arc::as_ptr(listener)) {
            return Arc::clone(known);
        }
        let matcher = match plain(listener) {
            Some(plain) => Matcher::new(&plain),
            None => Matcher::new(listener),
        };
        let rules = matcher.entries().map(|entry| self.rule(&entry.rule)).collect();
        let plan = Arc::new(ListenerPlan {
            key: listener.key.clone(),
            secure,
            matcher,
            rules,
        });
        self.listeners.insert(Arc::as_ptr(listener), Arc::clone(&plan));
        plan
    }

    fn rule(&mut self, rule: &Arc<Rule>) -> Arc<RulePlan> {
        let place = Arc::as_ptr(rule).addr();
        if let Some(known) = self.rules.get(&place) {
            return Arc::clone(known);
        }
        let before = self.before.rules.get(&place);
        if let Some(before) = before.filter(|before| self.is_same(before)) {
            self.rules.insert(place, Arc::clone(before));
            return Arc::clone(before);
        }
        let backends = match &rule.action {
            Action::Forward(backends) => backends.iter().map(|backend| self.backend(backend)).collect(),
            Action::Answered => Vec::new(),
        };
        let mirrors = rule.filters.iter().filter_map(|filter| match filter {
            Filter::Mirror(mirror) => Some((mirror.clone(), self.backend(&mirror.to))),
            _ => None,
        });
        let plan = Arc::new(RulePlan {
            rule: Arc::clone(rule),
            protection: self.sources.guards.of(&rule.key),
            backends: Backends::new(backends),
            metrics: self.sources.metrics.rule(&rule.key),
            mirrors: mirrors.collect(),
        });
        self.rules.insert(place, Arc::clone(&plan));
        plan
    }

    /// Whether what was made of a rule for the plan before is what would be made of it now.
    fn is_same(&self, before: &RulePlan) -> bool {
        let mirrors = before.mirrors.iter().map(|(_, to)| to);
        let mut targets = before
            .backends
            .all
            .iter()
            .chain(mirrors)
            .filter_map(|to| match &to.target {
                TargetPlan::Cluster(cluster) => Some(cluster),
                TargetPlan::Broken(_) => None,
            });
        let mut clusters = before.rule.clusters();
        // One that was not there may be there now.
        let same_clusters = clusters.all(|key| {
            let pair = targets.next().zip(self.clusters.get(key));
            pair.is_some_and(|(old, now)| Arc::ptr_eq(old, now))
        });
        let protection = self.sources.guards.of(&before.rule.key);
        same_clusters
            && guards::are_same(before.protection.as_ref(), protection.as_ref())
            && !self.sources.metrics.has_room_for(&before.metrics)
    }

    fn forward(&self, forward: &Arc<table::Forward>) -> Arc<ForwardPlan> {
        let backends = forward
            .backends
            .iter()
            .map(|backend| self.backend(backend))
            .collect();
        Arc::new(ForwardPlan {
            key: forward.key.clone(),
            backends: Backends::new(backends),
        })
    }

    fn backend(&self, backend: &table::Backend) -> BackendPlan {
        let target = match &backend.target {
            Target::Broken(why) => TargetPlan::Broken(why.as_str().into()),
            Target::Cluster(key) => match self.clusters.get(key) {
                Some(cluster) => TargetPlan::Cluster(Arc::clone(cluster)),
                None => TargetPlan::Broken(
                    format!(
                        "{}/{}:{} is not in the table",
                        key.namespace, key.service, key.port
                    )
                    .into(),
                ),
            },
        };
        BackendPlan {
            weight: backend.weight,
            target,
            filters: backend.filters.clone(),
        }
    }
}

/// Rules whose paths have escapes that requests' paths do not have any longer, with plain paths; none if there are none.
fn plain(listener: &Listener) -> Option<Listener> {
    let spelled = |entry: &Entry| match &entry.matches.path {
        PathMatch::Exact(path) | PathMatch::Prefix(path) => {
            matches!(path::decode_unreserved(path), Cow::Owned(_))
        }
        PathMatch::Regex(_) => false,
    };
    let mut all = listener.routes.iter();
    if !all.any(|(_, entries)| entries.iter().any(spelled)) {
        return None;
    }
    let routes = map(&listener.routes, |entries| {
        let mut entries = (**entries).clone();
        for entry in &mut entries {
            if let PathMatch::Exact(path) | PathMatch::Prefix(path) = &mut entry.matches.path {
                *path = path::decode_unreserved(path).into_owned();
            }
        }
        Arc::new(entries)
    });
    Some(Listener {
        key: listener.key.clone(),
        routes,
    })
}

fn map<T, U>(names: &Names<T>, mut change: impl FnMut(&T) -> U) -> Names<U> {
    let mut changed = Names::default();
    for (pattern, value) in names.iter() {
        changed.insert(pattern, change(value));
    }
    changed
}

#[cfg(test)]
mod tests;
