//! TLSRoute and TCPRoute: bytes to backends.

use serde::Deserialize;
use serde_json::Value;

use super::http_route::hostnames;
use super::reference::{self, BackendRef, ParentRef, RawBackend};
use super::{Unread, read};
use crate::table::HostPattern;

#[derive(Debug, Clone, PartialEq)]
pub struct StreamRoute {
    pub parents: Vec<ParentRef>,
    /// Of TLSRoutes.
    pub hostnames: Vec<HostPattern>,
    pub rules: Vec<StreamRule>,
    pub faults: Vec<String>,
    /// What it asks for in vain.
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StreamRule {
    pub section: Option<String>,
    pub backends: Vec<BackendRef>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    name: Option<String>,
    #[serde(default)]
    backend_refs: Vec<RawBackend>,
}

pub(super) fn read(object: &Value, namespace: &str) -> Result<StreamRoute, Unread<StreamRoute>> {
    let parents = reference::parents(object, namespace).map_err(read::unread)?;
    let (hostnames, faults) = hostnames(&object["spec"]["hostnames"]);
    let route = |rules| StreamRoute {
        parents,
        hostnames,
        rules,
        faults,
        remarks: reference::unheeded(&object["spec"]),
    };
    match read::part::<Vec<Raw>>(&object["spec"]["rules"], "spec.rules") {
        Ok(rules) => Ok(route(
            rules
                .into_iter()
                .map(|raw| StreamRule {
                    section: raw.name,
                    backends: raw
                        .backend_refs
                        .into_iter()
                        .map(|one| one.into_ref(namespace))
                        .collect(),
                })
                .collect(),
        )),
        Err(why) => Err(Unread {
            why,
            rest: Some(Box::new(route(Vec::new()))),
        }),
    }
}
