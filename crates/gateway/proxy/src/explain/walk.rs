//! One listener on the way of a request that is not sent: what its rule matches, what policies say, and what filters make of
//! the request before it goes on, to a backend or to another listener, which sees it as it is then.

use std::sync::Arc;

use fairway_gateway_guard::{Step, Verdict};
use fairway_gateway_routes::lookup::Miss;
use fairway_gateway_routes::table::{Action, Filter, PathMatch};
use http::header::HOST;
use http::request::Parts;

use super::words::{
    filter_name, filter_text, listener_name, match_text, names_text, patience_text, rule_name,
};
use super::{Explanation, StageKind};
use crate::filters::{self, cors};
use crate::guards;
use crate::pipeline::{self, Arrived, Context};
use crate::plan::{BackendPlan, Found, ListenerPlan, RulePlan, TargetPlan};
use crate::upstream::cluster::Cluster;

/// Goes through a listener, and changes the request as it does. The listener that it leads to, if it leads to one of ours.
pub(super) async fn through(
    context: &Context,
    listener: &Arc<ListenerPlan>,
    parts: &mut Parts,
    arrived: &Arrived<'_>,
    told: &mut Explanation,
) -> Option<Arc<ListenerPlan>> {
    passed_over(listener, parts, arrived, told);
    let Some(Found { rule, entry }) = listener.find(&arrived.host.0, &pipeline::sought(parts)) else {
        told.status = Some(404);
        let seen = format!("no route of the listener fits {} {}", parts.method, parts.uri);
        told.add(StageKind::Route, "none", seen, Some(false));
        return None;
    };
    told.rule = Some(rule.rule.key.clone());
    told.add(
        StageKind::Route,
        rule_name(&rule.rule.key),
        match_text(&entry.matches),
        Some(true),
    );
    if let Some(filter) = pipeline::cors_of(rule)
        && cors::preflight(filter, &parts.method, &parts.headers).is_some()
    {
        told.status = Some(204);
        let seen = "a preflight is answered here, before any policy";
        told.add(StageKind::Filter, "CORS", seen, Some(false));
        return None;
    }
    if !policies(context, rule, parts, arrived, told).await {
        return None;
    }
    let matched = &entry.matches.path;
    if let Some(response) = pipeline::redirected(context, rule, matched, parts, arrived) {
        for filter in &rule.rule.filters {
            told.add(StageKind::Filter, filter_name(filter), filter_text(filter), None);
        }
        told.status = Some(response.status().as_u16());
        let to = response
            .headers()
            .get(http::header::LOCATION)
            .and_then(|value| value.to_str().ok());
        let seen = format!("redirects to {}", to.unwrap_or("nowhere"));
        told.add(StageKind::Filter, "RequestRedirect", seen, Some(false));
        return None;
    }
    for filter in &rule.rule.filters {
        let seen = applied(filter, matched, parts);
        told.add(StageKind::Filter, filter_name(filter), seen, None);
    }
    if rule.rule.action == Action::Answered {
        told.status = Some(500);
        let seen = "the rule's redirection cannot be written as a header";
        told.add(StageKind::Filter, "RequestRedirect", seen, Some(false));
        return None;
    }
    if let Some(seen) = patience_text(&rule.rule) {
        told.add(StageKind::Backend, "timeouts and retries", seen, None);
    }
    backends(context, rule, matched, parts, told);
    inner(context, rule, matched, parts, arrived, told)
}

/// Rules that were passed over and are told of; the rest is counted.
const MOST_TRIED: usize = 10;

/// Rules whose path fits and that something else kept from being meant.
fn passed_over(listener: &ListenerPlan, parts: &Parts, arrived: &Arrived<'_>, told: &mut Explanation) {
    let sought = pipeline::sought(parts);
    let tried = listener.explain(&arrived.host.0, &sought).tried;
    let missed: Vec<_> = tried
        .iter()
        .filter_map(|one| Some((one, one.miss.as_ref()?)))
        .collect();
    for (one, miss) in missed.iter().take(MOST_TRIED) {
        let seen = match miss {
            Miss::Path => "its path does not fit".to_owned(),
            Miss::Method => format!("it is not for {}", parts.method),
            Miss::Header(name) => format!("header {name} does not fit"),
            Miss::Query(name) => format!("query parameter {name} does not fit"),
        };
        let seen = format!("passed over: {seen} ({})", match_text(&one.entry.matches));
        told.add(StageKind::Route, rule_name(&one.entry.rule.key), seen, None);
    }
    if missed.len() > MOST_TRIED {
        let seen = format!("and {} more were passed over", missed.len() - MOST_TRIED);
        told.add(StageKind::Route, "others", seen, None);
    }
}

/// Whether policies let it on, with what they write on it.
async fn policies(
    context: &Context,
    rule: &RulePlan,
    parts: &mut Parts,
    arrived: &Arrived<'_>,
    told: &mut Explanation,
) -> bool {
    let Some(protection) = &rule.protection else {
        told.add(
            StageKind::Policy,
            "none",
            "no policy is attached to this rule",
            Some(true),
        );
        return true;
    };
    let (verdict, steps) = {
        let asked = pipeline::asked(&context.peer, parts, arrived, true);
        guards::explain(protection, &asked).await
    };
    let has_ended = steps.iter().any(|step| step.passes == Some(false));
    for Step { what, seen, passes } in steps {
        told.add(StageKind::Policy, what, seen, passes);
    }
    match verdict {
        Verdict::Allow(passage) => {
            let seen = format!(
                "backends are told {}, the client is told {}",
                names_text(&passage.request_headers),
                names_text(&passage.response_headers)
            );
            told.add(StageKind::Policy, "verdict", seen, Some(true));
            guards::withhold(&mut parts.headers, &passage.withheld);
            for (name, value) in passage.request_headers {
                parts.headers.insert(name, value);
            }
            true
        }
        Verdict::Deny(refusal) => {
            told.status = Some(refusal.status.as_u16());
            let seen = format!("{} {}: {}", refusal.status.as_u16(), refusal.by, refusal.why);
            // A request ends once: where a step has ended it, this says with what.
            told.add(StageKind::Policy, "verdict", seen, (!has_ended).then_some(false));
            false
        }
    }
}

/// Lets a filter do what it does to a request, and tells what has become of that.
fn applied(filter: &Filter, matched: &PathMatch, parts: &mut Parts) -> String {
    filters::on_request(std::slice::from_ref(filter), matched, parts);
    match filter {
        Filter::Rewrite { .. } => format!("{}\nnow {}", filter_text(filter), head_text(parts)),
        _ => filter_text(filter),
    }
}

/// The host and the path as whoever is next gets them.
fn head_text(parts: &Parts) -> String {
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    format!("host {:?}, path {}", host.unwrap_or_default(), parts.uri.path())
}

fn backends(context: &Context, rule: &RulePlan, matched: &PathMatch, parts: &Parts, told: &mut Explanation) {
    let total: u64 = rule
        .backends
        .all
        .iter()
        .map(|backend| u64::from(backend.weight))
        .sum();
    if total == 0 {
        told.status = Some(500);
        let seen = "the rule has no backend with a weight";
        return told.add(StageKind::Backend, "none", seen, Some(false));
    }
    let now = context.shared.now();
    for backend in &rule.backends.all {
        let share = format!("weight {} of {total}", backend.weight);
        match &backend.target {
            TargetPlan::Broken(why) => {
                told.status = (rule.backends.all.len() == 1).then_some(500);
                told.add(
                    StageKind::Backend,
                    "broken",
                    format!("{share}: {why}"),
                    Some(false),
                );
            }
            TargetPlan::Cluster(cluster) => {
                let key = &cluster.key;
                let what = format!("Service {}/{} port {}", key.namespace, key.service, key.port);
                if cluster.endpoints.is_empty() {
                    told.status = (rule.backends.all.len() == 1).then_some(503);
                    told.add(
                        StageKind::Backend,
                        what,
                        format!("{share}: no endpoints"),
                        Some(false),
                    );
                    continue;
                }
                let mut seen = format!("{share}: {}", endpoints_text(cluster, now));
                let mut own = parts.clone();
                for filter in &backend.filters {
                    let done = applied(filter, matched, &mut own);
                    seen += &format!("\n{} of this backend: {done}", filter_name(filter));
                }
                seen += &format!("\nasked with {}", head_text(&own));
                told.add(StageKind::Backend, what, seen, Some(true));
            }
        }
    }
}

fn endpoints_text(cluster: &Cluster, now: u64) -> String {
    let endpoints = cluster.endpoints.iter().map(|endpoint| {
        let state = if endpoint.health.is_up(now) {
            "up"
        } else {
            "left out"
        };
        format!("{endpoint} ({state}, {} requests)", endpoint.load())
    });
    endpoints.collect::<Vec<_>>().join(", ")
}

/// A Route leads to a Gateway's Service, and that to one of our own listeners: the way goes on there.
fn inner(
    context: &Context,
    rule: &RulePlan,
    matched: &PathMatch,
    parts: &mut Parts,
    arrived: &Arrived<'_>,
    told: &mut Explanation,
) -> Option<Arc<ListenerPlan>> {
    let ours = |backend: &&BackendPlan| backend.weight > 0;
    let (backend, inner) =
        (rule.backends.all.iter().filter(ours)).find_map(|backend| match &backend.target {
            TargetPlan::Cluster(cluster) => Some((backend, context.plan.inner.get(&cluster.key)?)),
            TargetPlan::Broken(_) => None,
        })?;
    filters::on_request(&backend.filters, matched, parts);
    match inner.candidates(&arrived.host.0).next() {
        Some(next) => {
            let seen = "it is one of our own, so the request goes there without a connection between";
            told.add(StageKind::Listener, listener_name(&next.key), seen, Some(true));
            Some(Arc::clone(next))
        }
        None => {
            told.status = Some(404);
            let seen = "the backend is a listener that is not meant for this host";
            told.add(StageKind::Listener, "none", seen, Some(false));
            None
        }
    }
}
