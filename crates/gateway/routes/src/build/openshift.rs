//! OpenShift's Routes, on the doors of the router.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use http::HeaderValue;
use http::header::STRICT_TRANSPORT_SECURITY;

use super::backends::{Clusters, Way};
use super::gateways::Plan;
use super::policies::Policies;
use super::precedence::Rank;
use super::{Built, Fault, Scope};
use crate::hostname;
use crate::observed::{Insecure, Kind, Meta, Name, Object, Observed, Route, RouteTls, Termination};
use crate::settings::{Router, Settings};
use crate::status::{Condition, Says, Status};
use crate::table::{
    Action, Affinity, Backend, BackendTls, Certificate, CertificateKey, Door, Entry, Filter, Forward,
    HostPattern, Listener, ListenerKey, Match, Names, PathChange, PathMatch, Redirect, Rule, RuleKey, Table,
    Target, Timeouts, TlsListener,
};

/// A Route on its way into the table.
pub(super) struct RoutePlan<'a> {
    pub(super) workspace: &'a str,
    pub(super) meta: &'a Meta,
    spec: Option<&'a Route>,
    pub(super) host: HostPattern,
    shown: String,
    pub(super) wants_http: bool,
    pub(super) wants_https: bool,
    /// The doors it has got.
    pub(super) http: Option<SocketAddr>,
    pub(super) https: Option<SocketAddr>,
    pub(super) refused: Option<Fault>,
    /// What is not as it was asked for, although it is admitted.
    pub(super) remark: Option<String>,
    certificate: Option<(CertificateKey, Arc<Certificate>)>,
}

pub(super) fn plans<'a>(observed: &'a Observed, settings: &Settings) -> Vec<RoutePlan<'a>> {
    let mut plans = Vec::new();
    for (id, held) in &observed.workspaces {
        let scope = Scope { id, held };
        let mut own: Vec<RoutePlan<'a>> = held
            .routes
            .values()
            .map(|route| plan(scope, route, settings))
            .collect();
        own.sort_by(|one, two| one.meta.age().cmp(&two.meta.age()));
        doubles(&mut own);
        plans.extend(own);
    }
    plans
}

fn plan<'a>(scope: Scope<'a>, object: &'a Object<Route>, settings: &Settings) -> RoutePlan<'a> {
    let mut plan = RoutePlan {
        workspace: scope.id,
        meta: &object.meta,
        spec: object.spec.as_ref().ok(),
        host: HostPattern::Any,
        shown: String::new(),
        wants_http: false,
        wants_https: false,
        http: None,
        https: None,
        refused: None,
        remark: None,
        certificate: None,
    };
    let invalid = |message: String| Some(Fault::new("ExtendedValidationFailed", message));
    let spec = match &object.spec {
        Ok(spec) => spec,
        Err(unread) => {
            plan.refused = invalid(unread.why.clone());
            return plan;
        }
    };
    let Name { namespace, name } = &object.meta.name;
    let domain = &settings.router.domain;
    plan.shown = match (spec.host.as_str(), spec.subdomain.as_str()) {
        ("", "") => format!("{name}-{namespace}.{domain}"),
        ("", subdomain) => format!("{subdomain}.{domain}"),
        (host, _) => host.to_owned(),
    };
    match hostname::read(&plan.shown) {
        Ok(HostPattern::Exact(host)) if spec.wildcard => match host.split_once('.') {
            Some((_, suffix)) if settings.router.wildcards => {
                plan.host = HostPattern::Wildcard(suffix.to_owned());
            }
            Some(_) => plan.refused = Some(Fault::new("RouteNotAdmitted", "wildcard routes are not allowed")),
            None => plan.refused = invalid(format!("spec.host: {host:?} has no subdomain")),
        },
        Ok(HostPattern::Exact(host)) => plan.host = HostPattern::Exact(host),
        Ok(_) => {
            plan.refused = invalid(format!(
                "spec.host: {:?} has a wildcard; that is what wildcardPolicy is for",
                plan.shown
            ));
        }
        Err(why) => plan.refused = invalid(format!("spec.host: {why}")),
    }
    match &spec.tls {
        None => plan.wants_http = true,
        Some(tls) => {
            plan.wants_https = true;
            plan.wants_http = tls.insecure != Insecure::None;
            if tls.termination != Termination::Passthrough {
                match certificate(scope, &object.meta.name, tls, settings) {
                    Ok(found) => plan.certificate = Some(found),
                    Err(why) => plan.refused = invalid(why),
                }
            }
        }
    }
    plan
}

fn certificate(
    scope: Scope<'_>,
    name: &Name,
    tls: &RouteTls,
    settings: &Settings,
) -> Result<(CertificateKey, Arc<Certificate>), String> {
    let key = |namespace: &str, secret: String| CertificateKey {
        workspace: scope.id.to_owned(),
        namespace: namespace.to_owned(),
        secret,
    };
    if let Some(secret) = &tls.external {
        let object = scope.held.secrets.get(&Name::new(&name.namespace, secret));
        return match object.map(|object| &object.spec) {
            Some(Ok(credential)) => Ok((
                key(&name.namespace, secret.clone()),
                Arc::clone(&credential.certificate),
            )),
            Some(Err(unread)) => Err(format!(
                "spec.tls.externalCertificate: Secret {secret:?} cannot be used: {}",
                unread.why
            )),
            None => Err(format!(
                "spec.tls.externalCertificate: Secret {secret:?} does not exist"
            )),
        };
    }
    if let Some(own) = &tls.certificate {
        // No Secret has such a name, so it cannot be taken for one.
        return Ok((
            key(&name.namespace, format!("route/{}", name.name)),
            Arc::clone(own),
        ));
    }
    let shared = settings
        .router
        .certificate
        .as_ref()
        .ok_or("the router has no certificate; give one in spec.tls.certificate")?;
    let key = CertificateKey {
        workspace: String::new(),
        namespace: String::new(),
        secret: format!("router/{}", settings.router.name),
    };
    Ok((key, Arc::clone(shared)))
}

/// Routes of one namespace share a host if their paths differ, the oldest first; what is passed through has no paths to share by.
fn doubles(plans: &mut [RoutePlan<'_>]) {
    let mut taken: HashMap<(HostPattern, String, String), String> = HashMap::new();
    let mut passes: HashMap<(HostPattern, String), (bool, String)> = HashMap::new();
    for plan in plans.iter_mut().filter(|plan| plan.refused.is_none()) {
        let Some(spec) = plan.spec else { continue };
        let namespace = plan.meta.name.namespace.clone();
        let who = plan.meta.name.to_string();
        let passthrough = passes_through(spec);
        if plan.wants_https {
            let known = passes
                .entry((plan.host.clone(), namespace.clone()))
                .or_insert_with(|| (passthrough, who.clone()));
            if known.0 != passthrough {
                let message = format!(
                    "route {}, which is older, has the host and ends TLS elsewhere",
                    known.1
                );
                plan.refused = Some(Fault::new("HostAlreadyClaimed", message));
                continue;
            }
        }
        let older = taken
            .entry((plan.host.clone(), spec.path.clone(), namespace))
            .or_insert_with(|| who.clone());
        if *older != who {
            plan.refused = Some(Fault::new(
                "HostAlreadyClaimed",
                format!("route {older} already exposes {} and is older", plan.shown),
            ));
        }
    }
}

fn passes_through(spec: &Route) -> bool {
    spec.tls
        .as_ref()
        .is_some_and(|tls| tls.termination == Termination::Passthrough)
}

/// What goes to one host name of a door: it belongs to one namespace, so it is one listener.
#[derive(Default)]
struct Host<'a> {
    entries: Vec<(Rank<'a>, Entry)>,
    certificates: Vec<CertificateKey>,
    passthrough: Option<Arc<Forward>>,
}

pub(super) fn serve(
    observed: &Observed,
    routes: &[RoutePlan<'_>],
    plans: &[Plan<'_>],
    settings: &Settings,
    built: &mut Built,
) {
    for (id, held) in &observed.workspaces {
        let scope = Scope { id, held };
        let policies = Policies::of(scope);
        let mut clusters = Clusters::new(scope, &policies, plans);
        let mut hosts: BTreeMap<(SocketAddr, HostPattern), (ListenerKey, Host<'_>)> = BTreeMap::new();
        for route in routes.iter().filter(|route| route.workspace == id) {
            let mut remarks = String::new();
            if route.refused.is_none()
                && let Some(spec) = route.spec
            {
                hang(route, spec, &mut clusters, settings, &mut hosts);
                remarks = clusters.take_remarks();
                if let Some((key, certificate)) = &route.certificate {
                    built
                        .table
                        .certificates
                        .insert(key.clone(), Arc::clone(certificate));
                }
            }
            built.statuses.push(Arc::new(status(route, settings, remarks)));
        }
        built.table.clusters.extend(clusters.finish().0);
        for ((door, host), (key, what)) in hosts {
            open(door, host, key, what, &mut built.table);
        }
    }
}

fn hang<'a>(
    route: &RoutePlan<'a>,
    spec: &Route,
    clusters: &mut Clusters<'_>,
    settings: &Settings,
    hosts: &mut BTreeMap<(SocketAddr, HostPattern), (ListenerKey, Host<'a>)>,
) {
    let listener = |name: &str| ListenerKey {
        workspace: route.workspace.to_owned(),
        namespace: route.meta.name.namespace.clone(),
        gateway: String::new(),
        listener: name.to_owned(),
    };
    let matches = matches(spec);
    let rank = || Rank::new(Kind::Route, &matches, route.meta, 0, 0);
    let passthrough = passes_through(spec);
    let backends = backends(route.meta, spec, clusters);
    if let Some(door) = route.https {
        let key = listener("https");
        let (_, host) = hosts
            .entry((door, route.host.clone()))
            .or_insert_with(|| (key.clone(), Host::default()));
        if passthrough {
            host.passthrough = Some(Arc::new(Forward {
                key: rule_key(key, route.meta),
                backends: backends.clone(),
            }));
        } else {
            let (key, hsts) = (rule_key(key, route.meta), spec.hsts.as_ref());
            let entry = forwards(key, spec, &matches, backends.clone(), hsts);
            host.entries.push((rank(), entry));
            // The one of the oldest Route that brings its own goes first.
            if let Some((certificate, _)) = &route.certificate
                && !host.certificates.contains(certificate)
            {
                host.certificates.push(certificate.clone());
            }
        }
    }
    if let Some(door) = route.http {
        let key = listener("http");
        let (_, host) = hosts
            .entry((door, route.host.clone()))
            .or_insert_with(|| (key.clone(), Host::default()));
        let key = rule_key(key, route.meta);
        let entry = match spec.tls.as_ref().map(|tls| tls.insecure) {
            Some(Insecure::Redirect) => redirects(key, &matches, settings),
            _ => forwards(key, spec, &matches, backends, None),
        };
        host.entries.push((rank(), entry));
    }
}

fn matches(spec: &Route) -> Match {
    let path = spec.path.trim_end_matches('/');
    Match {
        path: PathMatch::Prefix(if path.is_empty() {
            "/".to_owned()
        } else {
            path.to_owned()
        }),
        method: None,
        headers: Vec::new(),
        query: Vec::new(),
    }
}

fn rule_key(listener: ListenerKey, meta: &Meta) -> RuleKey {
    RuleKey {
        listener,
        kind: Kind::Route.name(),
        namespace: meta.name.namespace.clone(),
        name: meta.name.name.clone(),
        rule: 0,
        section: None,
    }
}

fn backends(meta: &Meta, spec: &Route, clusters: &mut Clusters<'_>) -> Vec<Backend> {
    let resolve = |backend: &crate::observed::RouteBackend| {
        let name = Name::new(&meta.name.namespace, &backend.service);
        let mut target = || -> Result<Target, Fault> {
            if backend.kind != Kind::Service.name() {
                return Err(Fault::new(
                    "",
                    format!(
                        "{} is of kind {}; only Services are supported",
                        name, backend.kind
                    ),
                ));
            }
            let service = clusters.service(&name)?;
            let port = match &spec.port {
                Some(wanted) => service.target(wanted),
                None => service.ports.first(),
            };
            let port = port.ok_or_else(|| Fault::new("", format!("Service {name} has no such port")))?;
            clusters.target(&name, port, &way(meta, spec, &name))
        };
        Backend {
            weight: backend.weight,
            target: target().unwrap_or_else(|fault| Target::Broken(fault.message)),
            filters: Vec::new(),
        }
    };
    spec.backends.iter().map(resolve).collect()
}

fn way(meta: &Meta, spec: &Route, service: &Name) -> Way {
    match spec.tls.as_ref().map(|tls| &tls.termination) {
        Some(Termination::Passthrough) => Way::Stream,
        // The name that OpenShift's own certificates for Services have.
        Some(Termination::Reencrypt(authorities)) => Way::Route(Some((
            format!("route/{}", meta.name.name),
            BackendTls {
                hostname: format!("{}.{}.svc", service.name, service.namespace),
                names: Vec::new(),
                authorities: authorities.clone(),
            },
        ))),
        Some(Termination::Edge) | None => Way::Route(None),
    }
}

fn forwards(
    key: RuleKey,
    spec: &Route,
    matches: &Match,
    backends: Vec<Backend>,
    hsts: Option<&HeaderValue>,
) -> Entry {
    let mut filters = Vec::new();
    if spec.request_headers != Default::default() {
        filters.push(Filter::RequestHeaders(spec.request_headers.clone()));
    }
    let mut response_headers = spec.response_headers.clone();
    if let Some(hsts) = hsts {
        response_headers
            .set
            .push((STRICT_TRANSPORT_SECURITY, hsts.clone()));
    }
    if response_headers != Default::default() {
        filters.push(Filter::ResponseHeaders(response_headers));
    }
    if let Some(path) = &spec.rewrite {
        filters.push(Filter::Rewrite {
            hostname: None,
            path: Some(PathChange::Prefix(path.clone())),
        });
    }
    let affinity = spec.cookie.as_ref().map(|name| Affinity {
        name: name.clone(),
        by_header: false,
        lifetime: None,
    });
    Entry {
        matches: matches.clone(),
        rule: Arc::new(Rule {
            key,
            filters,
            action: Action::Forward(backends),
            timeouts: Timeouts {
                request: spec.timeout,
                backend_request: None,
            },
            retry: None,
            affinity,
        }),
    }
}

fn redirects(key: RuleKey, matches: &Match, settings: &Settings) -> Entry {
    let router = &settings.router;
    let https = settings
        .bound(SocketAddr::new(router.address, router.https))
        .port();
    Entry {
        matches: matches.clone(),
        rule: Arc::new(Rule {
            key,
            filters: vec![Filter::Redirect(Redirect {
                scheme: Some("https".to_owned()),
                hostname: None,
                path: None,
                port: (https != 443).then_some(https),
                status: 302,
            })],
            action: Action::Answered,
            timeouts: Timeouts::default(),
            retry: None,
            affinity: None,
        }),
    }
}

fn open(door: SocketAddr, host: HostPattern, key: ListenerKey, what: Host<'_>, table: &mut Table) {
    let mut entries = what.entries;
    entries.sort_by(|one, two| one.0.cmp(&two.0));
    let mut routes = Names::default();
    routes.insert(
        host.clone(),
        Arc::new(entries.into_iter().map(|(_, entry)| entry).collect()),
    );
    let tls = key.listener == "https";
    let http = Arc::new(Listener { key, routes });
    if !tls {
        if let Door::Http(names) = table
            .doors
            .entry(door)
            .or_insert_with(|| Door::Http(Names::default()))
        {
            names.insert(host, http);
        }
        return;
    }
    let made = match what.passthrough {
        Some(forward) => TlsListener::Passthrough(forward),
        None => TlsListener::Terminate {
            certificates: what.certificates,
            client_authorities: None,
            http,
        },
    };
    if let Door::Tls(names) = table
        .doors
        .entry(door)
        .or_insert_with(|| Door::Tls(Names::default()))
    {
        names.insert(host, Arc::new(made));
    }
}

/// What a Route that is admitted is told: other ports than a browser asks for, and what is not served.
fn told(route: &RoutePlan<'_>, router: &Router, remarks: String) -> String {
    let ports = [
        ("https", router.https, route.https),
        ("http", router.http, route.http),
    ];
    let moved = ports.into_iter().filter_map(|(scheme, asked, door)| {
        let port = door?.port();
        (port != asked).then(|| format!("served at {scheme}://{}:{port}", route.shown))
    });
    let remarks = Some(remarks).filter(|remarks| !remarks.is_empty());
    let of_annotations = route.spec.into_iter().flat_map(|spec| spec.remarks.clone());
    let all: Vec<String> = (moved.chain(route.remark.clone()))
        .chain(of_annotations)
        .chain(remarks)
        .collect();
    all.join("; ")
}

fn status(route: &RoutePlan<'_>, settings: &Settings, remarks: String) -> Status {
    let router = &settings.router;
    let admitted = match &route.refused {
        Some(fault) => Condition::new(
            "Admitted",
            false,
            fault.reason,
            fault.message.clone(),
            route.meta.generation,
        ),
        None => Condition::new(
            "Admitted",
            true,
            "",
            told(route, router, remarks),
            route.meta.generation,
        ),
    };
    Status {
        workspace: route.workspace.to_owned(),
        kind: Kind::Route,
        name: route.meta.name.clone(),
        says: Says::Ingress {
            host: route.shown.clone(),
            router: router.name.clone(),
            canonical: format!("router-{}.{}", router.name, router.domain),
            wildcard: if route.spec.is_some_and(|spec| spec.wildcard) {
                "Subdomain"
            } else {
                "None"
            },
            conditions: vec![admitted],
        },
    }
}
