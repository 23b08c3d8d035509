//! GatewayClass and Gateway.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::read::{self, Selector};
use super::reference::{ObjectRef, RawObject};
use super::{Kind, Unread};
use crate::hostname;
use crate::table::HostPattern;

#[derive(Debug, Clone, PartialEq)]
pub struct GatewayClass {
    pub controller: String,
    /// Somebody expects parameters to be read: there are none here.
    pub parameters: bool,
}

pub(super) fn read_class(object: &Value) -> Result<GatewayClass, Unread<GatewayClass>> {
    let spec = &object["spec"];
    match spec["controllerName"].as_str() {
        Some(controller) => Ok(GatewayClass {
            controller: controller.to_owned(),
            parameters: spec["parametersRef"].is_object(),
        }),
        None => Err(read::unread("spec.controllerName is not a text".to_owned())),
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Gateway {
    pub class: String,
    pub listeners: Vec<Listener>,
    pub addresses: Vec<Address>,
    /// `infrastructure.parametersRef`, which nothing here reads.
    pub parameters: bool,
    /// Client certificates: for all ports, and for some.
    pub validation: Option<Validation>,
    pub validation_by_port: Vec<(u16, Option<Validation>)>,
    /// `tls.backend.clientCertificateRef` is set, which is not supported.
    pub backend_certificate: bool,
    /// Fields that change nothing here.
    pub remarks: Vec<String>,
}

impl Gateway {
    pub fn validation(&self, port: u16) -> Option<&Validation> {
        match self.validation_by_port.iter().find(|(own, _)| *own == port) {
            Some((_, validation)) => validation.as_ref(),
            None => self.validation.as_ref(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Address {
    pub kind: String,
    pub value: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Listener {
    pub name: String,
    pub port: u16,
    pub protocol: Protocol,
    /// Or what is wrong with it.
    pub hostname: Result<HostPattern, String>,
    pub tls: Option<ListenerTls>,
    pub allowed: AllowedRoutes,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Protocol {
    Http,
    Https,
    Tls,
    Tcp,
    Unsupported(String),
}

impl Protocol {
    pub fn name(&self) -> &str {
        match self {
            Self::Http => "HTTP",
            Self::Https => "HTTPS",
            Self::Tls => "TLS",
            Self::Tcp => "TCP",
            Self::Unsupported(name) => name,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ListenerTls {
    pub passthrough: bool,
    pub certificates: Vec<ObjectRef>,
    /// `tls.options`, of which none means anything here.
    pub options: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AllowedRoutes {
    pub from: From,
    /// Group and kind; empty means those of the protocol.
    pub kinds: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum From {
    Same,
    All,
    Selector(Selector),
    /// What it says is not known, so nobody may.
    Nobody(String),
}

/// `tls.frontend…validation`.
#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    pub authorities: Vec<ObjectRef>,
    /// Clients without a certificate are let in (`AllowInsecureFallback`), which is not supported.
    pub insecure_fallback: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(default)]
    gateway_class_name: String,
    #[serde(default)]
    listeners: Vec<RawListener>,
    #[serde(default)]
    addresses: Vec<RawAddress>,
    infrastructure: Option<RawInfrastructure>,
    tls: Option<RawGatewayTls>,
    default_scope: Option<String>,
    allowed_listeners: Option<RawAllowedListeners>,
}

#[derive(Deserialize)]
struct RawAllowedListeners {
    namespaces: Option<RawNamespaces>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawInfrastructure {
    parameters_ref: Option<Value>,
}

#[derive(Deserialize)]
struct RawAddress {
    #[serde(rename = "type")]
    kind: Option<String>,
    value: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawListener {
    name: String,
    hostname: Option<String>,
    port: u16,
    protocol: String,
    tls: Option<RawTls>,
    allowed_routes: Option<RawAllowed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTls {
    mode: Option<String>,
    #[serde(default)]
    certificate_refs: Vec<RawObject>,
    #[serde(default)]
    options: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct RawAllowed {
    namespaces: Option<RawNamespaces>,
    #[serde(default)]
    kinds: Vec<RawKind>,
}

#[derive(Deserialize)]
struct RawNamespaces {
    from: Option<String>,
    selector: Option<Selector>,
}

#[derive(Deserialize)]
struct RawKind {
    group: Option<String>,
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawGatewayTls {
    frontend: Option<RawFrontend>,
    backend: Option<RawBackendTls>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawBackendTls {
    client_certificate_ref: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawFrontend {
    default: Option<RawPortTls>,
    #[serde(default)]
    per_port: Vec<RawPerPort>,
}

#[derive(Deserialize)]
struct RawPerPort {
    port: u16,
    tls: Option<RawPortTls>,
}

#[derive(Deserialize)]
struct RawPortTls {
    validation: Option<RawValidation>,
}

#[derive(Deserialize)]
struct RawValidation {
    #[serde(rename = "caCertificateRefs", default)]
    authorities: Vec<RawObject>,
    mode: Option<String>,
}

pub(super) fn read(object: &Value) -> Result<Gateway, Unread<Gateway>> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let spec = &object["spec"];
    match read::part::<Raw>(spec, "spec") {
        Ok(raw) => Ok(raw.into_gateway(namespace)),
        Err(why) => Err(Unread {
            why,
            rest: Some(Box::new(Gateway {
                class: spec["gatewayClassName"].as_str().unwrap_or_default().to_owned(),
                listeners: Vec::new(),
                addresses: Vec::new(),
                parameters: false,
                validation: None,
                validation_by_port: Vec::new(),
                backend_certificate: false,
                remarks: Vec::new(),
            })),
        }),
    }
}

impl Raw {
    fn into_gateway(self, namespace: &str) -> Gateway {
        let (frontend, backend) = self.tls.map_or((None, None), |tls| (tls.frontend, tls.backend));
        let (default, per_port) = frontend.map_or((None, Vec::new()), |frontend| {
            (frontend.default, frontend.per_port)
        });
        let validation = |tls: Option<RawPortTls>| {
            tls.and_then(|tls| tls.validation)
                .map(|raw| raw.into_validation(namespace))
        };
        let mut remarks = Vec::new();
        if self.default_scope.is_some_and(|scope| scope != "None") {
            remarks.push("spec.defaultScope does nothing: routes name their Gateways".to_owned());
        }
        let of_sets = self
            .allowed_listeners
            .and_then(|allowed| allowed.namespaces?.from);
        if of_sets.is_some_and(|from| from != "None") {
            remarks.push("spec.allowedListeners does nothing: there are no ListenerSets".to_owned());
        }
        Gateway {
            class: self.gateway_class_name,
            listeners: self
                .listeners
                .into_iter()
                .map(|raw| raw.into_listener(namespace))
                .collect(),
            addresses: self
                .addresses
                .into_iter()
                .map(|raw| Address {
                    kind: raw.kind.unwrap_or_else(|| "IPAddress".to_owned()),
                    value: raw.value.filter(|value| !value.is_empty()),
                })
                .collect(),
            parameters: self
                .infrastructure
                .is_some_and(|infrastructure| infrastructure.parameters_ref.is_some()),
            validation: validation(default),
            validation_by_port: per_port
                .into_iter()
                .map(|one| (one.port, validation(one.tls)))
                .collect(),
            backend_certificate: backend.is_some_and(|backend| backend.client_certificate_ref.is_some()),
            remarks,
        }
    }
}

impl RawValidation {
    fn into_validation(self, namespace: &str) -> Validation {
        Validation {
            authorities: refs(self.authorities, Kind::ConfigMap, namespace),
            insecure_fallback: self.mode.as_deref() == Some("AllowInsecureFallback"),
        }
    }
}

impl RawListener {
    fn into_listener(self, namespace: &str) -> Listener {
        Listener {
            name: self.name,
            port: self.port,
            protocol: match self.protocol.as_str() {
                "HTTP" => Protocol::Http,
                "HTTPS" => Protocol::Https,
                "TLS" => Protocol::Tls,
                "TCP" => Protocol::Tcp,
                _ => Protocol::Unsupported(self.protocol),
            },
            hostname: hostname::read(self.hostname.as_deref().unwrap_or_default()),
            tls: self.tls.map(|tls| ListenerTls {
                passthrough: tls.mode.as_deref() == Some("Passthrough"),
                certificates: refs(tls.certificate_refs, Kind::Secret, namespace),
                options: tls.options,
            }),
            allowed: self
                .allowed_routes
                .map_or_else(AllowedRoutes::same, RawAllowed::into_allowed),
        }
    }
}

fn refs(raw: Vec<RawObject>, kind: Kind, namespace: &str) -> Vec<ObjectRef> {
    raw.into_iter()
        .map(|one| one.into_ref(kind.name(), namespace))
        .collect()
}

impl AllowedRoutes {
    fn same() -> Self {
        Self {
            from: From::Same,
            kinds: Vec::new(),
        }
    }
}

impl RawAllowed {
    fn into_allowed(self) -> AllowedRoutes {
        let (from, selector) = self
            .namespaces
            .map_or((None, None), |namespaces| (namespaces.from, namespaces.selector));
        let from = match from.as_deref() {
            None | Some("Same") => From::Same,
            Some("All") => From::All,
            Some("Selector") => match selector {
                None => From::Nobody("allowedRoutes.namespaces.selector is missing".to_owned()),
                Some(selector) => match selector.fault() {
                    Some(fault) => From::Nobody(format!("allowedRoutes.namespaces.selector: {fault}")),
                    None => From::Selector(selector),
                },
            },
            Some(other) => From::Nobody(format!("allowedRoutes.namespaces.from: {other:?} is not known")),
        };
        AllowedRoutes {
            from,
            kinds: self
                .kinds
                .into_iter()
                .map(|one| {
                    (
                        one.group.unwrap_or_else(|| Kind::Gateway.group().to_owned()),
                        one.kind,
                    )
                })
                .collect(),
        }
    }
}
