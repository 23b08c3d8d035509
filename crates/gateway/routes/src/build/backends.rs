//! From references to Services to clusters with endpoints.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use super::gateways::Plan;
use super::memo::Made;
use super::policies::Policies;
use super::{ByName, Fault, Scope, permitted};
use crate::observed::{BackendRef, EndpointSlice, Kind, Name, Object, Service, ServicePort};
use crate::table::{
    BackendProtocol, BackendTls, Cluster, ClusterKey, Endpoint, ListenerKey, Rule, Target, Traffic,
};

/// On the EndpointSlices of a Gateway's own Service.
pub(super) const GATEWAY_LABEL: &str = "gateway.networking.k8s.io/gateway-name";

/// Which BackendTLSPolicy has a say in which Gateway, by its place.
pub(super) type Used = ByName<BTreeSet<usize>>;

/// The clusters of one workspace, made as they are asked for.
pub(super) struct Clusters<'a> {
    scope: Scope<'a>,
    policies: &'a Policies,
    made: BTreeMap<ClusterKey, Arc<Cluster>>,
    /// The Services and names of ports that the route at hand leads to.
    touched: BTreeSet<(Name, String)>,
    used: Used,
    /// What is wrong with what the Services of the route at hand say of themselves.
    remarks: BTreeSet<String>,
    /// Listeners that are served, by Gateway and port.
    own: HashMap<(Name, u16), Vec<ListenerKey>>,
}

/// How the backend is spoken to, by who asks.
#[derive(Debug, Clone)]
pub(super) enum Way {
    Http,
    /// HTTP/2 unless the Service says otherwise.
    Grpc,
    /// Bytes.
    Stream,
    /// A Route of OpenShift: what BackendTLSPolicies say does not count.
    Route(Option<(String, BackendTls)>),
}

impl<'a> Clusters<'a> {
    pub(super) fn new(scope: Scope<'a>, policies: &'a Policies, plans: &[Plan<'_>]) -> Self {
        let mut own: HashMap<(Name, u16), Vec<ListenerKey>> = HashMap::new();
        for plan in plans
            .iter()
            .filter(|plan| plan.workspace == scope.id && plan.refused.is_none())
        {
            for listener in plan.listeners.iter().filter(|listener| listener.served()) {
                own.entry((plan.meta.name.clone(), listener.spec.port))
                    .or_default()
                    .push(listener.key.clone());
            }
        }
        Self {
            scope,
            policies,
            made: BTreeMap::new(),
            touched: BTreeSet::new(),
            used: Used::new(),
            remarks: BTreeSet::new(),
            own,
        }
    }

    /// What a backend of a route of `kind` in `namespace` leads to; a fault is one of the reference.
    pub(super) fn resolve(
        &mut self,
        kind: Kind,
        namespace: &str,
        backend: &BackendRef,
        way: &Way,
    ) -> Result<Target, Fault> {
        let to = &backend.to;
        if !to.is(Kind::Service) {
            let message = format!(
                "backend {} is of kind {}; only Services are supported",
                to.name,
                to.full_kind()
            );
            return Err(Fault::new("InvalidKind", message));
        }
        if !permitted(self.scope, kind, namespace, to) {
            let message = format!(
                "Service {} is in another namespace, where no ReferenceGrant allows it",
                to.name
            );
            return Err(Fault::new("RefNotPermitted", message));
        }
        let service = self.service(&to.name)?;
        let Some(number) = backend.port else {
            return Err(Fault::new(
                "BackendNotFound",
                format!("backend {} has no port; Services need one", to.name),
            ));
        };
        let Some(port) = service.port(number) else {
            return Err(Fault::new(
                "BackendNotFound",
                format!("Service {} has no TCP port {number}", to.name),
            ));
        };
        self.target(&to.name, port, way)
    }

    pub(super) fn service(&self, name: &Name) -> Result<&'a Service, Fault> {
        match self.scope.held.services.get(name).map(|service| &service.spec) {
            None => Err(Fault::new(
                "BackendNotFound",
                format!("Service {name} does not exist"),
            )),
            Some(Err(unread)) => Err(Fault::new(
                "BackendNotFound",
                format!("Service {name} cannot be read: {}", unread.why),
            )),
            // It would lead anywhere, past every grant.
            Some(Ok(service)) if service.is_external() => {
                let message = format!("Service {name} is of type ExternalName, which is not supported");
                Err(Fault::new("UnsupportedValue", message))
            }
            Some(Ok(service)) => Ok(service),
        }
    }

    pub(super) fn target(&mut self, name: &Name, port: &ServicePort, way: &Way) -> Result<Target, Fault> {
        let (tls, via) = match way {
            Way::Stream => (None, "stream"),
            Way::Route(Some((via, tls))) => (Some(tls.clone()), via.as_str()),
            Way::Route(None) => (
                None,
                if self.policies.find(name, &port.name).is_some() {
                    "route"
                } else {
                    ""
                },
            ),
            Way::Http | Way::Grpc => {
                self.touched.insert((name.clone(), port.name.clone()));
                match self.policies.find(name, &port.name) {
                    None => (None, ""),
                    Some(Ok(tls)) => (Some(tls.clone()), ""),
                    Some(Err(why)) => return Ok(Target::Broken(why.to_owned())),
                }
            }
        };
        let protocol = protocol(name, port, way, tls.is_some())?;
        let via = if matches!(way, Way::Grpc) && port.app_protocol.is_none() {
            "grpc"
        } else {
            via
        };
        let key = ClusterKey {
            workspace: self.scope.id.to_owned(),
            namespace: name.namespace.clone(),
            service: name.name.clone(),
            port: port.port,
            via: via.to_owned(),
        };
        let traffic = self.traffic(name, way);
        self.remarks.extend(self.names(name));
        if !self.made.contains_key(&key) {
            let cluster = Cluster {
                key: key.clone(),
                protocol,
                tls,
                traffic,
                endpoints: self.endpoints(name, port),
            };
            self.made.insert(key.clone(), Arc::new(cluster));
        }
        Ok(Target::Cluster(key))
    }

    /// What a Service says of its endpoints, and remarks on it.
    fn traffic(&mut self, name: &Name, way: &Way) -> Traffic {
        let service = self.scope.held.services.get(name);
        let Some(Ok(service)) = service.map(|service| &service.spec) else {
            return Traffic::default();
        };
        let told = |remark: &String| format!("Service {name}: {remark}");
        self.remarks.extend(service.remarks.iter().map(told));
        let mut traffic = service.traffic.clone();
        if matches!(way, Way::Stream) {
            // What is spoken there is not known.
            traffic.health = None;
        }
        traffic
    }

    /// Copies go to backends and not through our own listeners once more, with their policies and limits: a mirror to a Gateway's
    /// own Service sends nothing.
    pub(super) fn remark_mirror(&mut self, target: &Target) {
        let Target::Cluster(key) = target else { return };
        let is_ours = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Listener(_));
        if self
            .made
            .get(key)
            .is_some_and(|made| made.endpoints.iter().any(is_ours))
        {
            let (namespace, name) = (&key.namespace, &key.service);
            self.remarks.insert(format!(
                "Service {namespace}/{name}: it leads to a Gateway, to which nothing is mirrored; name the Service behind it"
            ));
        }
    }

    /// Remarks on the Services of the route at hand.
    pub(super) fn take_remarks(&mut self) -> String {
        let remarks: Vec<String> = std::mem::take(&mut self.remarks).into_iter().collect();
        remarks.join("; ")
    }

    fn slices(&self, name: &Name) -> impl Iterator<Item = &'a Object<EndpointSlice>> {
        let of_service = self.scope.held.slices_of.get(name);
        of_service
            .into_iter()
            .flat_map(BTreeMap::values)
            .map(|slice| &**slice)
    }

    /// What to say of endpoints that have names in the place of addresses: a name may lead anywhere, past every grant. Those of
    /// a Gateway's own Service are not asked for theirs.
    fn names(&self, name: &Name) -> Option<String> {
        let slices = self.slices(name);
        let others = slices.filter(|slice| !slice.meta.labels.contains_key(GATEWAY_LABEL));
        let specs = others.filter_map(|slice| slice.spec.as_ref().ok());
        let first = specs.flat_map(|spec| &spec.names).next()?;
        Some(format!(
            "Service {name}: endpoints need addresses, and names such as {first:?} are left out"
        ))
    }

    fn endpoints(&self, name: &Name, port: &ServicePort) -> Vec<Endpoint> {
        let mut endpoints = BTreeSet::new();
        for slice in self.slices(name) {
            let Ok(spec) = &slice.spec else { continue };
            let gateway = slice
                .meta
                .labels
                .get(GATEWAY_LABEL)
                .map(|own| Name::new(&name.namespace, own));
            if let Some(own) = gateway.and_then(|gateway| self.own.get(&(gateway, port.port))) {
                endpoints.extend(own.iter().cloned().map(Endpoint::Listener));
                continue;
            }
            let numbers = spec
                .ports
                .iter()
                .filter(|one| one.name.as_deref().unwrap_or_default() == port.name);
            for number in numbers.filter_map(|one| one.port) {
                endpoints.extend(
                    spec.addresses
                        .iter()
                        .map(|ip| Endpoint::Address(SocketAddr::new(*ip, number))),
                );
            }
        }
        endpoints.into_iter().collect()
    }

    /// The route at hand is served by these Gateways, and so the policies about what it leads to are asked: these.
    pub(super) fn mark(&mut self, gateways: &BTreeSet<usize>) -> BTreeSet<Name> {
        let touched = std::mem::take(&mut self.touched);
        let about = touched
            .iter()
            .flat_map(|(service, port)| self.policies.about(service, port));
        let policies: BTreeSet<Name> = about.cloned().collect();
        self.mark_by(&policies, gateways);
        policies
    }

    fn mark_by(&mut self, policies: &BTreeSet<Name>, gateways: &BTreeSet<usize>) {
        for policy in policies {
            self.used.entry(policy.clone()).or_default().extend(gateways);
        }
    }

    /// A route that is as it was leads where it did.
    pub(super) fn again(&mut self, made: &Made) {
        for cluster in &made.clusters {
            if !self.made.contains_key(&cluster.key) {
                self.made.insert(cluster.key.clone(), Arc::clone(cluster));
            }
        }
        self.mark_by(&made.policies, &made.gateways);
    }

    /// Where these rules lead.
    pub(super) fn of<'r>(&self, rules: impl IntoIterator<Item = &'r Rule>) -> Vec<Arc<Cluster>> {
        let mut found: Vec<Arc<Cluster>> = Vec::new();
        for key in rules.into_iter().flat_map(Rule::clusters) {
            if let Some(cluster) = self.made.get(key)
                && !found.iter().any(|known| Arc::ptr_eq(known, cluster))
            {
                found.push(Arc::clone(cluster));
            }
        }
        found
    }

    pub(super) fn finish(self) -> (BTreeMap<ClusterKey, Arc<Cluster>>, Used) {
        (self.made, self.used)
    }
}

fn protocol(name: &Name, port: &ServicePort, way: &Way, tls: bool) -> Result<BackendProtocol, Fault> {
    let unsupported = |why: String| {
        Fault::new(
            "UnsupportedProtocol",
            format!("Service {name} port {}: {why}", port.port),
        )
    };
    match port.app_protocol.as_deref() {
        _ if matches!(way, Way::Stream) => Ok(BackendProtocol::Http1),
        None if matches!(way, Way::Grpc) => Ok(BackendProtocol::Http2),
        None => Ok(BackendProtocol::Http1),
        Some("kubernetes.io/h2c" | "h2c" | "http2" | "grpc") => Ok(BackendProtocol::Http2),
        Some("kubernetes.io/wss") if !tls && !matches!(way, Way::Route(_)) => Err(unsupported(
            "appProtocol kubernetes.io/wss needs a BackendTLSPolicy".to_owned(),
        )),
        Some("kubernetes.io/ws" | "kubernetes.io/wss") => Ok(BackendProtocol::WebSocket),
        Some(text) if text.eq_ignore_ascii_case("http") || text.eq_ignore_ascii_case("https") => {
            Ok(BackendProtocol::Http1)
        }
        // Routes of OpenShift never looked at it.
        Some(_) if matches!(way, Way::Route(_)) => Ok(BackendProtocol::Http1),
        Some(other) => Err(unsupported(format!("appProtocol {other:?} is not HTTP"))),
    }
}
