//! Service and EndpointSlice.

use std::net::IpAddr;

use serde::Deserialize;
use serde_json::Value;

use super::{Unread, read, traffic};
use crate::table::Traffic;

pub(super) const SERVICE_LABEL: &str = "kubernetes.io/service-name";

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Service {
    #[serde(default)]
    pub ports: Vec<ServicePort>,
    #[serde(rename = "type", default)]
    pub kind: String,
    /// What its annotations say.
    #[serde(skip)]
    pub traffic: Traffic,
    /// What is wrong with them.
    #[serde(skip)]
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    #[serde(default)]
    pub name: String,
    pub port: u16,
    /// A number or a name.
    #[serde(default)]
    pub target_port: Value,
    pub app_protocol: Option<String>,
    pub protocol: Option<String>,
}

impl Service {
    pub fn is_external(&self) -> bool {
        self.kind == "ExternalName"
    }

    pub fn port(&self, number: u16) -> Option<&ServicePort> {
        let tcp = |port: &&ServicePort| {
            port.port == number && port.protocol.as_deref().is_none_or(|name| name == "TCP")
        };
        self.ports.iter().find(tcp)
    }

    /// As OpenShift's Routes name one: the name of a port, or a target port by number or name.
    pub fn target(&self, wanted: &Value) -> Option<&ServicePort> {
        let by_name = self
            .ports
            .iter()
            .find(|port| wanted.as_str() == Some(port.name.as_str()));
        by_name.or_else(|| {
            self.ports.iter().find(|port| {
                port.target_port == *wanted
                    || (port.target_port.is_null() && wanted.as_u64() == Some(port.port.into()))
            })
        })
    }
}

pub(super) fn read(object: &Value) -> Result<Service, Unread<Service>> {
    let service: Service = read::part(&object["spec"], "spec").map_err(read::unread)?;
    let (traffic, remarks) = traffic::read(object);
    Ok(Service {
        traffic,
        remarks,
        ..service
    })
}

#[derive(Debug, Clone, PartialEq)]
pub struct EndpointSlice {
    pub ports: Vec<SlicePort>,
    /// Of those that are ready.
    pub addresses: Vec<IpAddr>,
    /// What stands in the place of addresses and is none: names (`addressType: FQDN`).
    pub names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SlicePort {
    #[serde(default)]
    pub name: Option<String>,
    pub port: Option<u16>,
}

#[derive(Deserialize)]
struct RawSlice {
    #[serde(default)]
    ports: Option<Vec<SlicePort>>,
    #[serde(default)]
    endpoints: Option<Vec<RawEndpoint>>,
}

#[derive(Deserialize)]
struct RawEndpoint {
    #[serde(default)]
    addresses: Vec<String>,
    conditions: Option<RawConditions>,
}

#[derive(Deserialize)]
struct RawConditions {
    ready: Option<bool>,
}

pub(super) fn read_slice(object: &Value) -> Result<EndpointSlice, Unread<EndpointSlice>> {
    let raw: RawSlice = read::part(object, "EndpointSlice").map_err(read::unread)?;
    let ready = |endpoint: &RawEndpoint| {
        endpoint
            .conditions
            .as_ref()
            .and_then(|known| known.ready)
            .unwrap_or(true)
    };
    let (mut addresses, mut names) = (Vec::new(), Vec::new());
    let endpoints = raw.endpoints.unwrap_or_default();
    for endpoint in endpoints.iter().filter(|endpoint| ready(endpoint)) {
        // The addresses of one endpoint are the same place; upstream's proxies take the first.
        match endpoint.addresses.first().map(|text| (text, text.parse())) {
            Some((_, Ok(address))) => addresses.push(address),
            Some((name, Err(_))) => names.push(name.clone()),
            None => {}
        }
    }
    addresses.sort_unstable();
    addresses.dedup();
    Ok(EndpointSlice {
        ports: raw.ports.unwrap_or_default(),
        addresses,
        names,
    })
}
