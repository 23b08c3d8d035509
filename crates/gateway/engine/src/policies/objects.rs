//! Policies that lead to objects and names instead of verdicts: TLSPolicy, DNSPolicy, and the RateLimitPolicy that stands for a
//! PlanPolicy. Pure.

use std::collections::BTreeMap;

use fairway_controller::{ObjectKey, WorkspaceId};
use fairway_gateway_policy::dns::{self, Record};
use fairway_gateway_policy::object::{Kind, Policy, PolicyKey};
use fairway_gateway_policy::plan;
use fairway_gateway_policy::status::Condition;
use fairway_gateway_policy::tls::{self, Certificate, GatewayView, ListenerView, Rights};
use fairway_gateway_routes::observed::{Kind as Observable, Name, ObjectRef, Observed, Workspace};
use fairway_gateway_routes::status::{ListenerSays, Says, Status};
use fairway_gateway_routes::table::HostPattern;
use serde_json::Value;

use super::held::Seen;
use crate::names::is_below;
use crate::settings::Settings;

/// What these policies ask for.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) certificates: Vec<Certificate>,
    pub(crate) records: Vec<Record>,
    /// RateLimitPolicies, by their keys.
    pub(crate) limits: BTreeMap<ObjectKey, Value>,
    pub(crate) conditions: BTreeMap<PolicyKey, Vec<Condition>>,
}

/// Decides about all of them.
pub(crate) fn decide(seen: &Seen, observed: &Observed, statuses: &[Status], settings: &Settings) -> Objects {
    let domain = settings.domain.as_str();
    let rights = Rights {
        domain,
        reserved: &settings.reserved,
    };
    let mut objects = Objects::default();
    let gateways = gateways(observed, statuses);
    let of_kind = |kind: Kind| -> Vec<Policy> {
        let all = seen.policies.values().map(|one| &one.policy);
        all.filter(|it| it.key.kind == kind).cloned().collect()
    };
    let all = of_kind(Kind::TlsPolicy);
    for policy in all.iter().filter(|it| !it.deleting) {
        let decided = tls::decide(policy, &same_workspace(&all, policy), &gateways, rights);
        let missing: Vec<String> = (decided.certificates.iter())
            .filter(|it| !has_secret(observed, it))
            .map(|it| format!("Secret ({}/{})", it.namespace, it.secret))
            .collect();
        let conditions = tls::conditions(
            policy,
            &decided.standing,
            (&missing, &decided.denied),
            &decided.notes,
        );
        objects.conditions.insert(policy.key.clone(), conditions);
        objects.certificates.extend(decided.certificates);
    }
    let all = of_kind(Kind::DnsPolicy);
    for policy in all.iter().filter(|it| !it.deleting) {
        let mut decided = dns::decide(policy, &same_workspace(&all, policy), &gateways);
        // A name that is somebody else's is not a tenant's to give.
        if policy.key.workspace != WorkspaceId::root_ref().as_str() {
            let before = decided.records.len();
            decided.records.retain(|record| is_below(&record.name, domain));
            if decided.records.len() < before {
                let note =
                    format!("names that are not below {domain} are answered for the root workspace only");
                decided.notes.push(note);
            }
        }
        let conditions = tls::conditions(policy, &decided.standing, (&[], &[]), &decided.notes);
        objects.conditions.insert(policy.key.clone(), conditions);
        objects.records.extend(decided.records);
    }
    for one in seen
        .policies
        .values()
        .filter(|it| it.policy.key.kind == Kind::PlanPolicy)
    {
        if let (false, Ok(limits)) = (one.policy.deleting, plan::rate_limit_policy(&one.object)) {
            objects.limits.insert(one.key.clone(), limits);
        }
    }
    objects
}

fn same_workspace(all: &[Policy], policy: &Policy) -> Vec<Policy> {
    let same = all.iter().filter(|it| it.key.workspace == policy.key.workspace);
    same.cloned().collect()
}

fn has_secret(observed: &Observed, certificate: &Certificate) -> bool {
    let name = Name::new(certificate.namespace.clone(), certificate.secret.clone());
    let held = observed.workspaces.get(&certificate.policy.workspace);
    held.and_then(|held| held.secrets.get(&name))
        .is_some_and(|secret| secret.spec.is_ok())
}

/// Gateways that are served, as these policies look at them.
fn gateways(observed: &Observed, statuses: &[Status]) -> Vec<GatewayView> {
    let mut found = Vec::new();
    for status in statuses {
        let Says::Gateway {
            addresses, listeners, ..
        } = &status.says
        else {
            continue;
        };
        let held = observed.workspaces.get(&status.workspace).map(|held| &**held);
        let gateway = held.and_then(|held| held.gateways.get(&status.name));
        let Some(spec) = gateway.and_then(|it| it.known()) else {
            continue;
        };
        let views = spec.listeners.iter().map(|listener| {
            let told = listeners.iter().find(|it| it.name == listener.name);
            let tls = listener.tls.as_ref().filter(|tls| !tls.passthrough);
            let secrets = tls.map(|tls| tls.certificates.as_slice()).unwrap_or_default();
            let (permitted, not_permitted): (Vec<_>, Vec<_>) =
                (secrets.iter()).partition(|to| is_permitted(held, &status.name.namespace, to));
            ListenerView {
                name: listener.name.clone(),
                hostname: match &listener.hostname {
                    Ok(HostPattern::Exact(name)) => Some(name.clone()),
                    Ok(HostPattern::Wildcard(suffix)) => Some(format!("*.{suffix}")),
                    Ok(HostPattern::Any) | Err(_) => None,
                },
                certificates: (permitted.iter())
                    .map(|it| (it.name.namespace.clone(), it.name.name.clone()))
                    .collect(),
                not_permitted: (not_permitted.iter())
                    .map(|it| {
                        format!(
                            "{} {} is not a Secret, or in another namespace, where no ReferenceGrant allows it",
                            it.kind, it.name
                        )
                    })
                    .collect(),
                not_served: not_served(told),
                attached_routes: told.map_or(0, |it| u32::try_from(it.attached).unwrap_or(u32::MAX)),
            }
        });
        found.push(GatewayView {
            workspace: status.workspace.clone(),
            namespace: status.name.namespace.clone(),
            name: status.name.name.clone(),
            listeners: views.collect(),
            addresses: addresses.iter().map(|(_, value)| value.clone()).collect(),
        });
    }
    found
}

/// Whether a Gateway may have a Secret, as its listener is judged: within its namespace always, else by a grant there. Whoever
/// may not read a Secret must not have it written either.
fn is_permitted(held: Option<&Workspace>, namespace: &str, to: &ObjectRef) -> bool {
    let is_granted = || {
        let grants = held.into_iter().flat_map(|held| &held.grants);
        let of_there = grants.filter(|(name, _)| name.namespace == to.name.namespace);
        of_there
            .filter_map(|(_, grant)| grant.known())
            .any(|grant| grant.allows(Observable::Gateway, namespace, to))
    };
    to.is(Observable::Secret) && (to.name.namespace == namespace || is_granted())
}

/// Why a listener is not served. That it lacks a certificate is no reason: that is what a TLSPolicy is there for.
fn not_served(told: Option<&ListenerSays>) -> Option<String> {
    let Some(told) = told else {
        return Some("it is not served".to_owned());
    };
    let accepted = told.conditions.iter().find(|it| it.kind == "Accepted");
    let refused = accepted.filter(|it| !it.status)?;
    Some(format!(
        "it is not served ({}): {}",
        refused.reason, refused.message
    ))
}

/// RateLimitPolicies that stood for PlanPolicies which are gone, and those that are to be made or changed.
pub(crate) fn limits_to_write(
    seen: &Seen,
    wanted: &BTreeMap<ObjectKey, Value>,
) -> Vec<(ObjectKey, Value, bool)> {
    let there = |key: &ObjectKey| {
        let key = PolicyKey {
            workspace: key.workspace.as_str().to_owned(),
            kind: Kind::RateLimitPolicy,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        };
        seen.policies.get(&key)
    };
    let mut found = Vec::new();
    for (key, wanted) in wanted {
        match there(key) {
            None => found.push((key.clone(), wanted.clone(), true)),
            // One of that name which somebody else made stays as it is.
            Some(one) if !plan::stands_for(&one.object, wanted) => {}
            Some(one) if one.object["spec"] == wanted["spec"] => {}
            Some(_) => found.push((key.clone(), wanted.clone(), false)),
        }
    }
    found
}

#[cfg(test)]
mod tests;
