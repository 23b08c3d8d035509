//! BackendTLSPolicies: which one applies to a port of a Service, and what Gateways say of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::json;

use super::backends::Used;
use super::gateways::Plan;
use super::{ByName, Fault, Scope, condition};
use crate::observed::{BackendTlsPolicy, Kind, Name, Object, ObjectRef};
use crate::status::{ParentSays, Says, Status};
use crate::table::BackendTls;

/// An object can have no more ancestors in its status.
const MOST_ANCESTORS: usize = 16;

pub(super) struct Policies {
    judged: ByName<Judged>,
    /// By Service: the policies that name it, the oldest first.
    about: HashMap<Name, Vec<(Option<String>, Name)>>,
}

struct Judged {
    generation: i64,
    tls: Result<BackendTls, String>,
    accepted: Option<Fault>,
    unresolved: Option<Fault>,
}

impl Policies {
    pub(super) fn of(scope: Scope<'_>) -> Self {
        let mut objects: Vec<&Arc<Object<BackendTlsPolicy>>> =
            scope.held.backend_tls_policies.values().collect();
        objects.sort_by(|one, two| one.meta.age().cmp(&two.meta.age()));
        let mut policies = Self {
            judged: ByName::new(),
            about: HashMap::new(),
        };
        for object in objects {
            let name = &object.meta.name;
            let mut judged = judge(scope, object);
            let mut lost = None;
            let mut won = false;
            for target in object.spec.iter().flat_map(|spec| &spec.targets) {
                if !target.to.is(Kind::Service) {
                    let message = format!(
                        "targetRefs: {} is of kind {}; only Services are supported",
                        target.to.name,
                        target.to.full_kind()
                    );
                    judged.accepted = Some(Fault::new("Invalid", message));
                    continue;
                }
                let about = policies.about.entry(target.to.name.clone()).or_default();
                match about.iter().find(|(section, _)| *section == target.section) {
                    Some((_, older)) if older != name => {
                        lost = Some(format!("{older}, which is older, has Service {}", target.to.name));
                    }
                    _ => won = true,
                }
                about.push((target.section.clone(), name.clone()));
            }
            if let (Some(message), false) = (lost, won) {
                judged.accepted = Some(Fault::new("Conflicted", message));
            }
            policies.judged.insert(name.clone(), judged);
        }
        policies
    }

    /// How a port of a Service is spoken to, or why it cannot be. One that names the port goes before one that does not.
    pub(super) fn find(&self, service: &Name, port: &str) -> Option<Result<&BackendTls, &str>> {
        let about = self.about.get(service)?;
        let named = about.iter().find(|(section, _)| section.as_deref() == Some(port));
        let (_, policy) = named.or_else(|| about.iter().find(|(section, _)| section.is_none()))?;
        let judged = self.judged.get(policy)?;
        Some(judged.tls.as_ref().map_err(String::as_str))
    }

    /// All that name it, also those that lost.
    pub(super) fn about(&self, service: &Name, port: &str) -> impl Iterator<Item = &Name> {
        let port = port.to_owned();
        let about = self.about.get(service).into_iter().flatten();
        about
            .filter(move |(section, _)| section.as_ref().is_none_or(|section| *section == port))
            .map(|(_, policy)| policy)
    }

    pub(super) fn statuses(&self, scope: Scope<'_>, plans: &[Plan<'_>], used: &Used) -> Vec<Status> {
        let ancestors = |name: &Name, judged: &Judged| -> Vec<ParentSays> {
            let gateways = used
                .get(name)
                .into_iter()
                .flatten()
                .filter_map(|at| plans.get(*at));
            let mut by_name: BTreeMap<&Name, &Plan<'_>> =
                gateways.map(|plan| (&plan.meta.name, plan)).collect();
            while by_name.len() > MOST_ANCESTORS {
                by_name.pop_last();
            }
            let says = |plan: &&Plan<'_>| ParentSays {
                reference: json!({
                    "group": Kind::Gateway.group(),
                    "kind": Kind::Gateway.name(),
                    "namespace": plan.meta.name.namespace,
                    "name": plan.meta.name.name,
                }),
                controller: plan.controller.clone(),
                conditions: vec![
                    condition("Accepted", judged.accepted.as_ref(), judged.generation),
                    condition("ResolvedRefs", judged.unresolved.as_ref(), judged.generation),
                ],
            };
            by_name.values().map(says).collect()
        };
        self.judged
            .iter()
            .map(|(name, judged)| Status {
                workspace: scope.id.to_owned(),
                kind: Kind::BackendTlsPolicy,
                name: name.clone(),
                says: Says::Ancestors(ancestors(name, judged)),
            })
            .collect()
    }
}

fn judge(scope: Scope<'_>, object: &Object<BackendTlsPolicy>) -> Judged {
    let mut judged = Judged {
        generation: object.meta.generation,
        tls: Err(String::new()),
        accepted: None,
        unresolved: None,
    };
    let name = &object.meta.name;
    let spec = match &object.spec {
        Ok(spec) => spec,
        Err(unread) => {
            judged.accepted = Some(Fault::new(
                "Invalid",
                format!("the policy cannot be read: {}", unread.why),
            ));
            return judged;
        }
    };
    let authorities = authorities(scope, spec, &mut judged);
    let invalid = |message: &str| Some(Fault::new("Invalid", message));
    match &spec.hostname {
        Err(why) => judged.accepted = invalid(&format!("validation.hostname: {why}")),
        Ok(_) if !spec.faults.is_empty() => judged.accepted = invalid(&spec.faults.join("; ")),
        Ok(hostname) => {
            if judged.accepted.is_none() {
                judged.tls = Ok(BackendTls {
                    hostname: hostname.clone(),
                    names: spec.names.clone(),
                    authorities,
                });
            }
        }
    }
    if let Some(fault) = &judged.accepted {
        judged.tls = Err(format!("BackendTLSPolicy {name}: {}", fault.message));
    }
    judged
}

/// The authorities that it names; none where the system's are meant.
fn authorities(scope: Scope<'_>, spec: &BackendTlsPolicy, judged: &mut Judged) -> Option<Arc<str>> {
    let invalid = |message: String| Some(Fault::new("Invalid", message));
    match (spec.authorities.is_empty(), spec.well_known.as_deref()) {
        (true, Some("System")) => return None,
        (true, Some(other)) => {
            judged.accepted = invalid(format!(
                "validation.wellKnownCACertificates: {other:?} is not known"
            ));
        }
        (true, None) => {
            judged.accepted =
                invalid("validation needs caCertificateRefs or wellKnownCACertificates".to_owned());
        }
        (false, Some(_)) => {
            judged.accepted =
                invalid("validation has both caCertificateRefs and wellKnownCACertificates".to_owned());
        }
        (false, None) => {}
    }
    let mut texts: Vec<&str> = Vec::new();
    for to in &spec.authorities {
        match authority(scope, to) {
            Ok(text) => texts.push(text),
            Err(fault) => {
                judged.unresolved.get_or_insert(fault);
            }
        }
    }
    if texts.is_empty() && judged.accepted.is_none() {
        let message = judged
            .unresolved
            .as_ref()
            .map(|fault| fault.message.clone())
            .unwrap_or_default();
        judged.accepted = Some(Fault::new("NoValidCACertificate", message));
    }
    Some(texts.join("\n").into())
}

fn authority<'a>(scope: Scope<'a>, to: &ObjectRef) -> Result<&'a str, Fault> {
    if !to.is(Kind::ConfigMap) {
        let message = format!(
            "caCertificateRefs: {} is of kind {}; only ConfigMaps are supported",
            to.name.name,
            to.full_kind()
        );
        return Err(Fault::new("InvalidKind", message));
    }
    let invalid = |why: &str| {
        Fault::new(
            "InvalidCACertificateRef",
            format!("caCertificateRefs: ConfigMap {} {why}", to.name),
        )
    };
    match scope.held.config_maps.get(&to.name).map(|map| &map.spec) {
        None => Err(invalid("does not exist")),
        Some(Err(unread)) => Err(invalid(&format!("cannot be used: {}", unread.why))),
        Some(Ok(authorities)) => Ok(&*authorities.pem),
    }
}
