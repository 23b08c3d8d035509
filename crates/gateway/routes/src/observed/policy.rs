//! BackendTLSPolicy.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::reference::{ObjectRef, RawObject};
use super::{Kind, Unread, read};
use crate::hostname;
use crate::table::HostPattern;

#[derive(Debug, Clone, PartialEq)]
pub struct BackendTlsPolicy {
    pub targets: Vec<PolicyTarget>,
    pub authorities: Vec<ObjectRef>,
    pub well_known: Option<String>,
    pub hostname: Result<String, String>,
    pub names: Vec<String>,
    /// What is asked for and not supported.
    pub faults: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PolicyTarget {
    pub to: ObjectRef,
    /// The name of a port.
    pub section: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    target_refs: Vec<RawTarget>,
    validation: RawValidation,
    #[serde(default)]
    options: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTarget {
    #[serde(flatten)]
    to: RawObject,
    section_name: Option<String>,
}

#[derive(Deserialize)]
struct RawValidation {
    #[serde(rename = "caCertificateRefs", default)]
    authorities: Vec<RawObject>,
    #[serde(rename = "wellKnownCACertificates")]
    well_known: Option<String>,
    #[serde(default)]
    hostname: String,
    #[serde(rename = "subjectAltNames", default)]
    names: Vec<RawName>,
}

#[derive(Deserialize)]
struct RawName {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    hostname: String,
    #[serde(default)]
    uri: String,
}

pub(super) fn read(object: &Value) -> Result<BackendTlsPolicy, Unread<BackendTlsPolicy>> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let raw: Raw = read::part(&object["spec"], "spec").map_err(read::unread)?;
    let options = raw.options.keys();
    let mut faults: Vec<String> = options
        .map(|name| format!("options: {name:?} is not supported"))
        .collect();
    let mut names = Vec::new();
    for name in raw.validation.names {
        match name.kind.as_str() {
            "Hostname" => match hostname::read(&name.hostname) {
                Ok(HostPattern::Any) => faults.push("subjectAltNames: a host name is empty".to_owned()),
                Ok(pattern) => names.push(hostname::show(&pattern)),
                Err(fault) => faults.push(format!("subjectAltNames: {fault}")),
            },
            "URI" if name.uri.contains("://") => names.push(name.uri),
            other => faults.push(format!(
                "subjectAltNames: type {other:?} with {:?} is not known",
                name.uri
            )),
        }
    }
    Ok(BackendTlsPolicy {
        targets: raw
            .target_refs
            .into_iter()
            .map(|target| PolicyTarget {
                to: target.to.into_ref(Kind::Service.name(), namespace),
                section: target.section_name.filter(|name| !name.is_empty()),
            })
            .collect(),
        authorities: raw
            .validation
            .authorities
            .into_iter()
            .map(|one| one.into_ref(Kind::ConfigMap.name(), namespace))
            .collect(),
        well_known: raw.validation.well_known.filter(|name| !name.is_empty()),
        hostname: match hostname::read(&raw.validation.hostname) {
            Ok(HostPattern::Exact(name)) => Ok(name),
            Ok(_) => Err(format!(
                "hostname {:?} is not a single one",
                raw.validation.hostname
            )),
            Err(fault) => Err(fault),
        },
        names,
        faults,
    })
}
