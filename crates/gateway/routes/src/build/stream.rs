//! TLSRoutes and TCPRoutes: where connections go as they are.

use std::sync::Arc;

use super::attach::{Hung, attach};
use super::backends::{Clusters, Way};
use super::gateways::{Index, Plan};
use super::{Fault, Scope, condition, resolved};
use crate::observed::{Kind, Object, StreamRoute};
use crate::status::{Condition, ParentSays};
use crate::table::{Backend, Forward, RuleKey, Target};

pub(super) fn route<'a>(
    scope: Scope<'a>,
    kind: Kind,
    object: &'a Arc<Object<StreamRoute>>,
    plans: &mut [Plan<'_>],
    index: &Index,
    clusters: &mut Clusters<'_>,
    hung: &mut Hung<'a>,
) -> Vec<ParentSays> {
    let Some(spec) = object.known() else {
        return Vec::new();
    };
    let meta = &object.meta;
    // A TCPRoute has no names, whatever it says.
    let hostnames = if kind == Kind::TlsRoute {
        spec.hostnames.as_slice()
    } else {
        &[]
    };
    let outcomes = attach(scope, kind, meta, &spec.parents, hostnames, plans, index);
    if outcomes.is_empty() {
        return Vec::new();
    }
    let refused = match &object.spec {
        Err(unread) => Some(Fault::new("UnsupportedValue", unread.why.clone())),
        Ok(_) if kind == Kind::TlsRoute && !spec.faults.is_empty() => Some(Fault::new(
            "UnsupportedValue",
            format!("hostnames: {}", spec.faults.join("; ")),
        )),
        Ok(_) if spec.rules.is_empty() => Some(Fault::new("UnsupportedValue", "spec.rules is empty")),
        Ok(_) => None,
    };
    let mut unresolved = None;
    let mut backends = Vec::new();
    // Nothing tells connections apart beside their name: the first rule takes all.
    for backend in spec.rules.first().into_iter().flat_map(|rule| &rule.backends) {
        let target = match clusters.resolve(kind, &meta.name.namespace, backend, &Way::Stream) {
            Ok(target) => target,
            Err(fault) => {
                let why = fault.message.clone();
                unresolved.get_or_insert(fault);
                Target::Broken(why)
            }
        };
        backends.push(Backend {
            weight: backend.weight,
            target,
            filters: Vec::new(),
        });
    }
    for outcome in outcomes.iter().filter(|_| refused.is_none()) {
        for (listener, hosts) in &outcome.listeners {
            let Some(key) = plans
                .get(outcome.gateway)
                .and_then(|plan| plan.listeners.get(*listener))
                .map(|plan| &plan.key)
            else {
                continue;
            };
            let forward = Arc::new(Forward {
                key: RuleKey {
                    listener: key.clone(),
                    kind: kind.name(),
                    namespace: meta.name.namespace.clone(),
                    name: meta.name.name.clone(),
                    rule: 0,
                    section: spec.rules.first().and_then(|rule| rule.section.clone()),
                },
                backends: backends.clone(),
            });
            for host in hosts {
                hung.stream(
                    (outcome.gateway, *listener),
                    host.clone(),
                    meta,
                    Arc::clone(&forward),
                );
            }
        }
    }
    let remarks = clusters.take_remarks();
    let says = |outcome: &super::attach::Outcome<'_>| {
        let fault = outcome.fault.as_ref().or(refused.as_ref());
        let mut conditions = vec![
            match fault {
                None => Condition::new(
                    "Accepted",
                    true,
                    "Accepted",
                    spec.remarks.join("; "),
                    meta.generation,
                ),
                fault => condition("Accepted", fault, meta.generation),
            },
            resolved(unresolved.as_ref(), &remarks, meta.generation),
        ];
        if fault.is_none() && spec.rules.len() > 1 {
            let message = "Dropped Rule 1 and those after it: connections cannot be told apart, the first rule takes all";
            conditions.push(Condition::new(
                "PartiallyInvalid",
                true,
                "UnsupportedValue",
                message,
                meta.generation,
            ));
        }
        ParentSays {
            reference: outcome.parent.shown.clone(),
            controller: plans
                .get(outcome.gateway)
                .map(|plan| plan.controller.clone())
                .unwrap_or_default(),
            conditions,
        }
    };
    outcomes.iter().map(says).collect()
}
