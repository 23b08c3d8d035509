//! Prometheus' text format.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fairway_gateway_routes::table::{ClusterKey, RuleKey};

use super::{BUCKETS, Metrics, RuleMetrics, VERDICTS};
use crate::upstream::cluster::Cluster;

/// Everything, in an order that does not change. `now` is the proxy's clock.
pub(crate) fn exposition(
    metrics: &Metrics,
    clusters: &HashMap<ClusterKey, Arc<Cluster>>,
    now: u64,
) -> String {
    let mut out = String::with_capacity(16 * 1024);
    for (name, help, value) in metrics.totals.all() {
        let _ = writeln!(
            out,
            "# HELP fairway_gateway_{name}_total {help}\n# TYPE fairway_gateway_{name}_total counter\n\
             fairway_gateway_{name}_total {value}"
        );
    }
    rules(&mut out, metrics);
    denials(&mut out, metrics);
    endpoints(&mut out, clusters, now);
    out
}

/// What policies said, and how long they took; only of rules that have some.
fn judgements(out: &mut String, rules: &[(String, Arc<RuleMetrics>)]) {
    let counts = |rule: &RuleMetrics| [0, 1, 2].map(|at| rule.judged[at].load(Ordering::Relaxed));
    let guarded: Vec<_> = rules
        .iter()
        .map(|(labels, rule)| (labels, rule, counts(rule)))
        .filter(|(_, _, counts)| counts.iter().any(|count| *count > 0))
        .collect();
    out.push_str(
        "# HELP fairway_gateway_policy_requests_total Requests that policies judged, by route and verdict.\n\
         # TYPE fairway_gateway_policy_requests_total counter\n",
    );
    for (labels, _, counts) in &guarded {
        for (verdict, count) in VERDICTS.iter().zip(counts).filter(|(_, count)| **count > 0) {
            let _ = writeln!(
                out,
                "fairway_gateway_policy_requests_total{{{labels},verdict=\"{verdict}\"}} {count}"
            );
        }
    }
    out.push_str(
        "# HELP fairway_gateway_policy_duration_seconds How long policies took to judge requests.\n\
         # TYPE fairway_gateway_policy_duration_seconds summary\n",
    );
    for (labels, rule, counts) in &guarded {
        let sum = Seconds(rule.judging_nanos.load(Ordering::Relaxed) / 1000);
        let count: u64 = counts.iter().sum();
        let _ = writeln!(
            out,
            "fairway_gateway_policy_duration_seconds_sum{{{labels}}} {sum}\n\
             fairway_gateway_policy_duration_seconds_count{{{labels}}} {count}"
        );
    }
}

fn rules(out: &mut String, metrics: &Metrics) {
    let mut rules: Vec<(String, Arc<RuleMetrics>)> = match metrics.rules.lock() {
        Ok(rules) => rules
            .iter()
            .map(|(key, metrics)| (labels(key), Arc::clone(metrics)))
            .collect(),
        Err(_) => return,
    };
    rules.push((r#"route="other""#.into(), Arc::clone(&metrics.others)));
    rules.sort_by(|one, two| one.0.cmp(&two.0));
    out.push_str(
        "# HELP fairway_gateway_requests_total Requests by route and class of status.\n\
         # TYPE fairway_gateway_requests_total counter\n",
    );
    for (labels, rule) in &rules {
        for (class, count) in rule.by_class.iter().enumerate() {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let code = if class == 0 {
                    "none".to_owned()
                } else {
                    format!("{class}xx")
                };
                let _ = writeln!(
                    out,
                    "fairway_gateway_requests_total{{{labels},code=\"{code}\"}} {count}"
                );
            }
        }
    }
    out.push_str(
        "# HELP fairway_gateway_request_duration_seconds From a request's head to the end of its answer.\n\
         # TYPE fairway_gateway_request_duration_seconds histogram\n",
    );
    for (labels, rule) in &rules {
        let counts: Vec<u64> = rule
            .buckets
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed))
            .collect();
        let total: u64 = counts.iter().sum();
        if total == 0 {
            continue;
        }
        let name = "fairway_gateway_request_duration_seconds";
        let mut below = 0;
        for (bound, count) in BUCKETS.iter().zip(&counts) {
            below += count;
            let _ = writeln!(
                out,
                "{name}_bucket{{{labels},le=\"{}\"}} {below}",
                Seconds(*bound)
            );
        }
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {total}");
        let _ = writeln!(
            out,
            "{name}_sum{{{labels}}} {}",
            Seconds(rule.micros.load(Ordering::Relaxed))
        );
        let _ = writeln!(out, "{name}_count{{{labels}}} {total}");
    }
    judgements(out, &rules);
}

fn denials(out: &mut String, metrics: &Metrics) {
    let Ok(denials) = metrics.denials.lock() else {
        return;
    };
    out.push_str(
        "# HELP fairway_gateway_policy_denials_total Requests that a policy refused.\n\
         # TYPE fairway_gateway_policy_denials_total counter\n",
    );
    for (policy, count) in denials.iter() {
        let _ = writeln!(
            out,
            "fairway_gateway_policy_denials_total{{policy=\"{}\"}} {count}",
            escaped(policy)
        );
    }
}

/// Endpoints of which numbers are told; the rest of a large table is left out.
const MOST_ENDPOINTS: usize = 2_000;

fn endpoints(out: &mut String, clusters: &HashMap<ClusterKey, Arc<Cluster>>, now: u64) {
    let mut lines: Vec<(String, usize, usize, bool)> = clusters
        .values()
        .flat_map(|cluster| cluster.endpoints.iter().map(move |endpoint| (cluster, endpoint)))
        .map(|(cluster, endpoint)| {
            let key = &cluster.key;
            let labels = format!(
                "workspace=\"{}\",namespace=\"{}\",service=\"{}\",port=\"{}\",endpoint=\"{endpoint}\"",
                escaped(&key.workspace),
                escaped(&key.namespace),
                escaped(&key.service),
                key.port
            );
            let open = endpoint
                .breaker
                .connections
                .saturating_sub(endpoint.room.available_permits());
            (labels, endpoint.load(), open, endpoint.health.is_up(now))
        })
        .collect();
    lines.sort();
    lines.truncate(MOST_ENDPOINTS);
    type Value = fn(&(String, usize, usize, bool)) -> usize;
    let families: [(&str, &str, Value); 3] = [
        (
            "upstream_requests_active",
            "Requests that an endpoint is busy with.",
            |line| line.1,
        ),
        (
            "upstream_connections",
            "Open connections to an endpoint.",
            |line| line.2,
        ),
        (
            "upstream_up",
            "Whether an endpoint is asked: neither ejected nor found unhealthy.",
            |line| usize::from(line.3),
        ),
    ];
    for (name, help, value) in families {
        let _ = writeln!(
            out,
            "# HELP fairway_gateway_{name} {help}\n# TYPE fairway_gateway_{name} gauge"
        );
        for line in &lines {
            let _ = writeln!(out, "fairway_gateway_{name}{{{}}} {}", line.0, value(line));
        }
    }
}

fn labels(key: &RuleKey) -> String {
    let listener = &key.listener;
    format!(
        "workspace=\"{}\",gateway=\"{}/{}\",listener=\"{}\",route=\"{}/{}/{}\",rule=\"{}\"",
        escaped(&listener.workspace),
        escaped(&listener.namespace),
        escaped(&listener.gateway),
        escaped(&listener.listener),
        key.kind,
        escaped(&key.namespace),
        escaped(&key.name),
        key.section
            .as_deref()
            .map_or_else(|| key.rule.to_string(), escaped),
    )
}

fn escaped(text: &str) -> String {
    text.replace('\\', r"\\")
        .replace('"', r#"\""#)
        .replace('\n', r"\n")
}

/// Microseconds written as seconds.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0 as f64 / 1e6)
    }
}
