//! Policies that lead to objects and names instead of verdicts: TLSPolicy, DNSPolicy, and the RateLimitPolicy that stands for a
//! PlanPolicy. Pure.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

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
use crate::certificates;
use crate::names::{Names, is_below};
use crate::settings::Settings;

/// What these policies ask for.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) certificates: Vec<Certificate>,
    pub(crate) records: Vec<Record>,
    /// DNSPolicies, of which it shows later whether their names are answered.
    pub(crate) named: Vec<Named>,
    /// RateLimitPolicies, by their keys.
    pub(crate) limits: BTreeMap<ObjectKey, Value>,
    pub(crate) conditions: BTreeMap<PolicyKey, Vec<Condition>>,
}

/// A DNSPolicy, and what it came to.
pub(crate) struct Named {
    policy: Policy,
    decided: dns::Decided,
}

impl Named {
    pub(crate) fn key(&self) -> PolicyKey {
        self.policy.key.clone()
    }

    /// The policy's conditions, by what the name server really answers.
    pub(crate) fn conditions(&self, names: &Names) -> Vec<Condition> {
        let mut denied = self.decided.denied.clone();
        denied.extend(self.decided.records.iter().filter_map(|it| unanswered(it, names)));
        tls::conditions(
            &self.policy,
            &self.decided.standing,
            (&[], &denied),
            &self.decided.notes,
        )
    }
}

/// Why a name does not lead where the policy wants it.
fn unanswered(record: &Record, names: &Names) -> Option<String> {
    let name = &record.name;
    let told = names.get(&name.to_ascii_lowercase());
    let wanted: Vec<Ipv4Addr> = (record.addresses.iter())
        .filter_map(|text| text.parse().ok())
        .collect();
    if record.addresses.is_empty() {
        return Some(format!("{name}: the Gateway has no address"));
    }
    if wanted.is_empty() {
        return Some(format!(
            "{name} is not answered: the name server knows addresses of IPv4 alone, and the Gateway has {}",
            record.addresses.join(", ")
        ));
    }
    match told {
        None => Some(format!(
            "{name} is not answered: it belongs to somebody else, or nothing listens there"
        )),
        Some(told) if !wanted.iter().any(|address| told.contains(address)) => Some(format!(
            "{name} is answered with other addresses: it leads to the Gateway of somebody who has it already"
        )),
        Some(_) => None,
    }
}

/// Decides about all of them.
pub(crate) fn decide(
    seen: &Seen,
    observed: &Observed,
    statuses: &[Arc<Status>],
    settings: &Settings,
) -> Objects {
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
        let mut decided = tls::decide(policy, &same_workspace(&all, policy), &gateways, rights);
        let mut missing = Vec::new();
        for certificate in &decided.certificates {
            let secret = format!("Secret ({}/{})", certificate.namespace, certificate.secret);
            match secret_of(observed, certificate) {
                Secret::Fits => {}
                Secret::Missing => missing.push(secret),
                Secret::OfSomebodyElse => decided.denied.push(format!(
                    "{secret} was made by somebody else, stays as it is, and has no certificate for {}",
                    certificate.dns_names.join(", ")
                )),
            }
        }
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
            let (own, others) = (decided.records.into_iter()).partition(|it| is_below(&it.name, domain));
            decided.records = own;
            let others: Vec<Record> = others;
            decided.denied.extend(others.into_iter().map(|record| {
                let name = record.name;
                format!("{name} is not below {domain}: such names are answered for the root workspace only")
            }));
        }
        objects.records.extend(decided.records.iter().cloned());
        objects.named.push(Named {
            policy: policy.clone(),
            decided,
        });
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

/// What there is in the place of a certificate.
enum Secret {
    Fits,
    Missing,
    OfSomebodyElse,
}

fn secret_of(observed: &Observed, asked: &Certificate) -> Secret {
    let name = Name::new(asked.namespace.clone(), asked.secret.clone());
    let held = observed.workspaces.get(&asked.policy.workspace);
    let Some(secret) = held.and_then(|held| held.secrets.get(&name)) else {
        return Secret::Missing;
    };
    let chain = secret
        .spec
        .as_ref()
        .ok()
        .map(|credential| &*credential.certificate.chain);
    match chain.is_some_and(|chain| certificates::is_for(chain, &asked.dns_names)) {
        true => Secret::Fits,
        false if certificates::is_ours(&secret.meta.labels) => Secret::Missing,
        false => Secret::OfSomebodyElse,
    }
}

/// Gateways that are served, as these policies look at them.
fn gateways(observed: &Observed, statuses: &[Arc<Status>]) -> Vec<GatewayView> {
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
        let grants = held.into_iter().flat_map(|held| held.grants.iter());
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
