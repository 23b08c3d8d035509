//! Each Gateway by itself: whose it is, where it listens, and what of its listeners can be served.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::{Fault, Scope, condition, permitted};
use crate::hostname;
use crate::observed::{Gateway, Kind, Listener, Meta, Name, Object, ObjectRef, Protocol, Validation};
use crate::settings::{Addresses, GatewayName, Settings};
use crate::status::{Condition, Says, Status};
use crate::table::{CertificateKey, Entry, Forward, HostPattern, ListenerKey, Names};

/// The GatewayClasses of a workspace that are served, with the controller's name of each.
pub(super) fn classes(scope: Scope<'_>, settings: &Settings) -> BTreeMap<String, String> {
    let mut classes = settings.classes.clone();
    for (name, class) in scope.held.classes.iter() {
        // The workspace's own decides, also if it belongs to somebody else.
        classes.remove(&name.name);
        if let Ok(spec) = &class.spec
            && settings.controllers.contains(&spec.controller)
            && !spec.parameters
        {
            classes.insert(name.name.clone(), spec.controller.clone());
        }
    }
    classes
}

pub(super) fn class_statuses(scope: Scope<'_>, settings: &Settings) -> Vec<Status> {
    let ours = |class: &Object<crate::observed::GatewayClass>| {
        class
            .spec
            .as_ref()
            .is_ok_and(|spec| settings.controllers.contains(&spec.controller))
    };
    let classes = scope.held.classes.iter().filter(|(_, class)| ours(class));
    classes
        .map(|(name, class)| {
            let generation = class.meta.generation;
            let parameters = class.spec.as_ref().is_ok_and(|spec| spec.parameters);
            let fault = parameters.then(|| {
                Fault::new(
                    "InvalidParameters",
                    "spec.parametersRef: there are no parameters; remove it",
                )
            });
            let accepted = condition("Accepted", fault.as_ref(), generation);
            let version = Condition::new("SupportedVersion", true, "SupportedVersion", "", generation);
            Status {
                workspace: scope.id.to_owned(),
                kind: Kind::GatewayClass,
                name: name.clone(),
                says: Says::Class {
                    conditions: vec![accepted, version],
                    features: super::FEATURES.to_vec(),
                },
            }
        })
        .collect()
}

/// A Gateway on its way into the table.
pub(super) struct Plan<'a> {
    pub(super) workspace: &'a str,
    pub(super) meta: &'a Meta,
    pub(super) controller: String,
    /// Nothing of it is served.
    pub(super) refused: Option<Fault>,
    /// Where it listens, as far as that is known.
    pub(super) addresses: Vec<IpAddr>,
    /// Addresses that it asks for and cannot have, or that it waits for.
    pub(super) address_fault: Option<Fault>,
    /// What it asks for in vain.
    pub(super) remarks: &'a [String],
    /// The addresses are the ones that `spec.addresses` names.
    pub(super) named: bool,
    pub(super) listeners: Vec<ListenerPlan<'a>>,
}

pub(super) struct ListenerPlan<'a> {
    pub(super) key: ListenerKey,
    pub(super) spec: &'a Listener,
    pub(super) host: HostPattern,
    pub(super) kinds: Vec<Kind>,
    /// `Accepted` is false.
    pub(super) fault: Option<Fault>,
    /// `ResolvedRefs` is false.
    pub(super) unresolved: Option<Fault>,
    /// `Conflicted` is true.
    pub(super) conflict: Option<Fault>,
    /// What it refers to is needed and not there.
    pub(super) lacking: Option<String>,
    pub(super) overlapping: bool,
    pub(super) certificates: Vec<CertificateKey>,
    pub(super) authorities: Option<Arc<str>>,
    /// Where it is listened on.
    pub(super) doors: Vec<SocketAddr>,
    pub(super) attached: usize,
    pub(super) http: Names<Arc<Vec<Entry>>>,
    pub(super) streams: BTreeMap<HostPattern, Arc<Forward>>,
}

impl ListenerPlan<'_> {
    /// Whether the data plane gets it.
    pub(super) fn served(&self) -> bool {
        self.fault.is_none() && self.conflict.is_none() && self.lacking.is_none()
    }

    pub(super) fn passthrough(&self) -> bool {
        self.spec.tls.as_ref().is_some_and(|tls| tls.passthrough)
    }
}

/// Gateways by workspace and name.
pub(super) struct Index(HashMap<String, HashMap<Name, usize>>);

impl Index {
    pub(super) fn of(plans: &[Plan<'_>]) -> Self {
        let mut index: HashMap<String, HashMap<Name, usize>> = HashMap::new();
        for (at, plan) in plans.iter().enumerate() {
            let own = index.entry(plan.workspace.to_owned()).or_default();
            own.insert(plan.meta.name.clone(), at);
        }
        Self(index)
    }

    pub(super) fn get(&self, scope: Scope<'_>, name: &Name) -> Option<usize> {
        self.0.get(scope.id)?.get(name).copied()
    }
}

pub(super) fn plans<'a>(
    scope: Scope<'a>,
    classes: &BTreeMap<String, String>,
    settings: &Settings,
) -> Vec<Plan<'a>> {
    let mut plans = Vec::new();
    for object in scope.held.gateways.values() {
        if let Some(spec) = object.known()
            && let Some(controller) = classes.get(&spec.class)
        {
            plans.push(plan(scope, object, spec, controller, settings));
        }
    }
    plans
}

fn plan<'a>(
    scope: Scope<'a>,
    object: &'a Object<Gateway>,
    spec: &'a Gateway,
    controller: &str,
    settings: &Settings,
) -> Plan<'a> {
    let meta = &object.meta;
    let (addresses, address_fault) = addresses(scope, meta, spec, settings);
    let foreign = spec.addresses.iter().find(|address| address.kind != "IPAddress");
    let refused = if let Err(unread) = &object.spec {
        Some(Fault::new(
            "Invalid",
            format!("the Gateway cannot be read: {}", unread.why),
        ))
    } else if spec.parameters {
        let message = "spec.infrastructure.parametersRef: there are no parameters; remove it";
        Some(Fault::new("InvalidParameters", message))
    } else if spec.backend_certificate {
        let message =
            "spec.tls.backend.clientCertificateRef is not supported: backends would not see the certificate";
        Some(Fault::new("Invalid", message))
    } else {
        foreign.map(|address| {
            let message = format!(
                "spec.addresses: type {:?} is not supported, only IPAddress",
                address.kind
            );
            Fault::new("UnsupportedAddress", message)
        })
    };
    let mut listeners: Vec<ListenerPlan<'a>> = spec
        .listeners
        .iter()
        .map(|one| listener(scope, meta, spec, one))
        .collect();
    conflicts(&mut listeners);
    Plan {
        workspace: scope.id,
        meta,
        controller: controller.to_owned(),
        refused,
        addresses,
        address_fault,
        remarks: &spec.remarks,
        named: spec.addresses.iter().any(|address| address.value.is_some()),
        listeners,
    }
}

/// Those that can be listened on, and what is wrong with the others.
fn addresses(
    scope: Scope<'_>,
    meta: &Meta,
    spec: &Gateway,
    settings: &Settings,
) -> (Vec<IpAddr>, Option<Fault>) {
    let mut usable = Vec::new();
    let mut fault = None;
    let own = match &settings.addresses {
        Addresses::Shared(address) => Some(*address),
        Addresses::Each(given) => given
            .get(&GatewayName {
                workspace: scope.id.to_owned(),
                name: meta.name.clone(),
            })
            .copied(),
    };
    if spec.addresses.is_empty() || spec.addresses.iter().any(|address| address.value.is_none()) {
        match own {
            Some(address) => usable.push(address),
            None => {
                fault = Some(Fault::new(
                    "AddressNotAssigned",
                    "no address is free for this Gateway; who runs the platform can enlarge the pool",
                ));
            }
        }
    }
    for value in spec
        .addresses
        .iter()
        .filter_map(|address| address.value.as_deref())
    {
        // An address of IPv4 that is written as one of IPv6 is the same door.
        let judged = match value.parse::<IpAddr>().map(|address| address.to_canonical()) {
            Err(_) => Err("is not an IP address".to_owned()),
            Ok(address) if address.is_unspecified() || address.is_multicast() => {
                Err("stands for many addresses".to_owned())
            }
            Ok(address) if scope.id != settings.operator && own != Some(address) => {
                Err("is not this Gateway's to name; leave spec.addresses out to get one".to_owned())
            }
            Ok(address) => Ok(address),
        };
        match judged {
            Ok(address) if usable.contains(&address) => {}
            Ok(address) => usable.push(address),
            Err(why) => {
                fault = Some(Fault::new(
                    "AddressNotUsable",
                    format!("spec.addresses: {value:?} {why}"),
                ));
            }
        }
    }
    (usable, fault)
}

fn listener<'a>(scope: Scope<'a>, meta: &Meta, gateway: &'a Gateway, spec: &'a Listener) -> ListenerPlan<'a> {
    let mut plan = ListenerPlan {
        key: ListenerKey {
            workspace: scope.id.to_owned(),
            namespace: meta.name.namespace.clone(),
            gateway: meta.name.name.clone(),
            listener: spec.name.clone(),
        },
        spec,
        host: spec.hostname.clone().unwrap_or(HostPattern::Any),
        kinds: Vec::new(),
        fault: fault(gateway, spec),
        unresolved: None,
        conflict: None,
        lacking: None,
        overlapping: false,
        certificates: Vec::new(),
        authorities: None,
        doors: Vec::new(),
        attached: 0,
        http: Names::default(),
        streams: BTreeMap::new(),
    };
    kinds(&mut plan);
    if plan.fault.is_none() && spec.protocol == Protocol::Https {
        certificates(scope, meta, &mut plan);
        if let Some(validation) = gateway.validation(spec.port) {
            client_authorities(scope, meta, validation, &mut plan);
        }
    }
    plan
}

/// What cannot be served whatever it refers to.
fn fault(gateway: &Gateway, spec: &Listener) -> Option<Fault> {
    let terminates = spec.tls.as_ref().is_some_and(|tls| !tls.passthrough);
    match &spec.protocol {
        Protocol::Unsupported(name) => {
            let message = format!("protocol {name:?} is not supported: HTTP, HTTPS, TLS and TCP are");
            Some(Fault::new("UnsupportedProtocol", message))
        }
        Protocol::Https if spec.tls.as_ref().is_some_and(|tls| tls.passthrough) => Some(Fault::new(
            "UnsupportedProtocol",
            "HTTPS with tls.mode Passthrough sees no requests; use protocol TLS and a TLSRoute",
        )),
        Protocol::Https if spec.tls.is_none() => {
            Some(Fault::new("Invalid", "protocol HTTPS needs tls.certificateRefs"))
        }
        Protocol::Tls if terminates || spec.tls.is_none() => Some(Fault::new(
            "UnsupportedProtocol",
            "protocol TLS is supported with tls.mode Passthrough; to terminate, use HTTPS",
        )),
        Protocol::Http | Protocol::Tcp if spec.tls.is_some() => Some(Fault::new(
            "Invalid",
            format!("tls does not go with protocol {}", spec.protocol.name()),
        )),
        Protocol::Https
            if gateway
                .validation(spec.port)
                .is_some_and(|validation| validation.insecure_fallback) =>
        {
            let message = "client certificates are required or not asked for; mode AllowInsecureFallback is not supported";
            Some(Fault::new("Invalid", message))
        }
        _ => {
            let hostname = spec.hostname.as_ref().err().cloned();
            let why = hostname.or_else(|| options(spec).find_map(asks_who_comes));
            why.map(|why| Fault::new("Invalid", why))
        }
    }
}

fn options(spec: &Listener) -> impl Iterator<Item = (&str, &str)> {
    let all = spec.tls.iter().flat_map(|tls| &tls.options);
    all.map(|(name, value)| (name.as_str(), value.as_str()))
}

/// Istio's way to say that TLS ends here, which goes without saying.
const SIMPLE: (&str, &str) = ("gateway.istio.io/tls-terminate-mode", "SIMPLE");

/// Why an option cannot be left aside: without it everybody would be let in.
fn asks_who_comes((name, value): (&str, &str)) -> Option<String> {
    let text = format!("{name} {value}").to_ascii_lowercase();
    let is_about_clients = ["mutual", "mtls", "client", "verify"]
        .iter()
        .any(|word| text.contains(word));
    is_about_clients.then(|| {
        format!(
            "tls.options: {name} {value:?} asks for clients' certificates, which is not supported in this way; \
             use spec.tls.frontend.default.validation of the Gateway"
        )
    })
}

/// Options that change nothing, for whoever wrote them.
pub(super) fn unheeded(spec: &Listener) -> Option<String> {
    let others = options(spec).filter(|option| *option != SIMPLE);
    let names: Vec<&str> = others.map(|(name, _)| name).collect();
    (!names.is_empty()).then(|| format!("tls.options: {} is not known and does nothing", names.join(", ")))
}

fn kinds(plan: &mut ListenerPlan<'_>) {
    let of_protocol: &[Kind] = match plan.spec.protocol {
        Protocol::Http | Protocol::Https => &[Kind::HttpRoute, Kind::GrpcRoute],
        Protocol::Tls => &[Kind::TlsRoute],
        Protocol::Tcp => &[Kind::TcpRoute],
        Protocol::Unsupported(_) => &[],
    };
    if plan.spec.allowed.kinds.is_empty() {
        plan.kinds = of_protocol.to_vec();
        return;
    }
    for (group, name) in &plan.spec.allowed.kinds {
        match of_protocol
            .iter()
            .find(|kind| kind.group() == group && kind.name() == name)
        {
            Some(kind) if plan.kinds.contains(kind) => {}
            Some(kind) => plan.kinds.push(*kind),
            None => {
                let message = format!(
                    "allowedRoutes.kinds: {name}.{group} does not go with protocol {}",
                    plan.spec.protocol.name()
                );
                plan.unresolved = Some(Fault::new("InvalidRouteKinds", message));
            }
        }
    }
    if plan.kinds.is_empty() && plan.unresolved.is_some() {
        plan.lacking = Some("no kind of route that may attach is supported".to_owned());
    }
}

fn certificates(scope: Scope<'_>, meta: &Meta, plan: &mut ListenerPlan<'_>) {
    let refs = plan
        .spec
        .tls
        .as_ref()
        .map(|tls| tls.certificates.as_slice())
        .unwrap_or_default();
    if refs.is_empty() {
        plan.unresolved = Some(Fault::new(
            "InvalidCertificateRef",
            "tls.certificateRefs is empty",
        ));
    }
    for to in refs {
        match certificate(scope, meta, to) {
            Ok(key) => plan.certificates.push(key),
            Err(fault) => plan.unresolved = Some(fault),
        }
    }
    if plan.certificates.is_empty() {
        plan.lacking = Some("there is no certificate to serve".to_owned());
    }
}

fn certificate(scope: Scope<'_>, meta: &Meta, to: &ObjectRef) -> Result<CertificateKey, Fault> {
    let invalid = |why: &str| {
        Fault::new(
            "InvalidCertificateRef",
            format!("tls.certificateRefs: {} {} {why}", to.kind, to.name),
        )
    };
    if !to.is(Kind::Secret) {
        return Err(invalid("is not a Secret"));
    }
    if !permitted(scope, Kind::Gateway, &meta.name.namespace, to) {
        let message = format!(
            "tls.certificateRefs: Secret {} is in another namespace, where no ReferenceGrant allows it",
            to.name
        );
        return Err(Fault::new("RefNotPermitted", message));
    }
    match scope.held.secrets.get(&to.name).map(|secret| &secret.spec) {
        None => Err(invalid("does not exist")),
        Some(Err(unread)) => Err(invalid(&format!("cannot be used: {}", unread.why))),
        Some(Ok(_)) => Ok(CertificateKey {
            workspace: scope.id.to_owned(),
            namespace: to.name.namespace.clone(),
            secret: to.name.name.clone(),
        }),
    }
}

/// Without an authority nobody's certificate would be checked, so then the listener is not served.
fn client_authorities(scope: Scope<'_>, meta: &Meta, validation: &Validation, plan: &mut ListenerPlan<'_>) {
    let mut texts: Vec<&str> = Vec::new();
    for to in &validation.authorities {
        let invalid = |why: &str| {
            Fault::new(
                "InvalidCertificateRef",
                format!("caCertificateRefs: {} {} {why}", to.kind, to.name),
            )
        };
        let found = if !to.is(Kind::ConfigMap) {
            Err(invalid("is not a ConfigMap"))
        } else if !permitted(scope, Kind::Gateway, &meta.name.namespace, to) {
            let message = format!(
                "caCertificateRefs: ConfigMap {} is in another namespace, where no ReferenceGrant allows it",
                to.name
            );
            Err(Fault::new("RefNotPermitted", message))
        } else {
            match scope.held.config_maps.get(&to.name).map(|map| &map.spec) {
                None => Err(invalid("does not exist")),
                Some(Err(unread)) => Err(invalid(&format!("cannot be used: {}", unread.why))),
                Some(Ok(authorities)) => Ok(&*authorities.pem),
            }
        };
        match found {
            Ok(text) => texts.push(text),
            Err(fault) => plan.unresolved = Some(fault),
        }
    }
    if texts.is_empty() {
        plan.lacking = Some("there is no authority to check client certificates with".to_owned());
    } else {
        plan.authorities = Some(texts.join("\n").into());
    }
}

/// Within a Gateway nobody is older: all that are in each other's way are out.
fn conflicts(listeners: &mut [ListenerPlan<'_>]) {
    let mut found: Vec<(usize, Fault)> = Vec::new();
    let mut overlapping = Vec::new();
    for (at, one) in listeners.iter().enumerate() {
        for (other, two) in listeners.iter().enumerate() {
            let apart = one.spec.port != two.spec.port || one.fault.is_some() || two.fault.is_some();
            if at == other || apart {
                continue;
            }
            let name = &two.spec.name;
            let (mine, theirs) = (one.spec.protocol.name(), two.spec.protocol.name());
            if class(&one.spec.protocol) != class(&two.spec.protocol) || one.spec.protocol == Protocol::Tcp {
                let message = format!(
                    "listener {name:?} has port {} for {theirs}, this one for {mine}",
                    one.spec.port
                );
                found.push((at, Fault::new("ProtocolConflict", message)));
            } else if one.host == two.host {
                let message = format!(
                    "listener {name:?} has the same port {} and host name",
                    one.spec.port
                );
                found.push((at, Fault::new("HostnameConflict", message)));
            } else if one.spec.protocol == Protocol::Https
                && two.spec.protocol == Protocol::Https
                && hostname::intersect(&one.host, &two.host).is_some()
            {
                overlapping.push(at);
            }
        }
    }
    for at in overlapping {
        if let Some(listener) = listeners.get_mut(at) {
            listener.overlapping = true;
        }
    }
    for (at, fault) in found {
        if let Some(listener) = listeners.get_mut(at)
            && listener.conflict.is_none()
        {
            listener.conflict = Some(fault);
        }
    }
}

/// What can share a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Http,
    Tls,
    Tcp,
}

pub(super) fn class(protocol: &Protocol) -> Class {
    match protocol {
        Protocol::Http => Class::Http,
        Protocol::Https | Protocol::Tls => Class::Tls,
        Protocol::Tcp | Protocol::Unsupported(_) => Class::Tcp,
    }
}
