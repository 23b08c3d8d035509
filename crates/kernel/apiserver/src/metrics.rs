//! Figures about the server, in Prometheus' text form, under upstream's names where it has one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::kernel::Kernel;
use crate::request::RequestInfo;

/// Upper ends of the latency buckets, in seconds.
const BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

/// Labels of a series. They come from what the server knows (resources it serves, a handful of verbs), never from what a
/// client may invent, so their number is bounded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    verb: &'static str,
    group: String,
    resource: String,
    code: u16,
}

#[derive(Clone, Debug, Default)]
struct Histogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
}

/// Counters of requests.
#[derive(Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<Series, Histogram>>,
}

impl Metrics {
    /// Counts a request. `known` says that the resource exists.
    pub fn count(&self, info: &RequestInfo, known: bool, code: u16, took: Duration) {
        let (group, resource) = match &info.resource {
            Some(r) if known => (r.group.clone(), r.resource.clone()),
            _ => (String::new(), String::new()),
        };
        let series = Series {
            verb: info.verb,
            group,
            resource,
            code,
        };
        let seconds = took.as_secs_f64();
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let histogram = requests.entry(series).or_default();
        histogram.count += 1;
        histogram.seconds += seconds;
        if let Some(bucket) = BUCKETS.iter().position(|upper| seconds <= *upper) {
            histogram.buckets[bucket] += 1;
        }
    }
}

/// Everything, as text.
pub(crate) fn render(kernel: &Kernel) -> String {
    let mut out = String::with_capacity(16 * 1024);
    let requests = kernel
        .metrics
        .requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    head(
        &mut out,
        "apiserver_request_total",
        "counter",
        "Requests by verb, resource and code.",
    );
    for (s, histogram) in &requests {
        let _ = writeln!(
            out,
            "apiserver_request_total{{verb=\"{}\",group=\"{}\",resource=\"{}\",code=\"{}\"}} {}",
            s.verb, s.group, s.resource, s.code, histogram.count
        );
    }
    head(
        &mut out,
        "apiserver_request_duration_seconds",
        "histogram",
        "How long requests took.",
    );
    for (s, histogram) in &requests {
        let labels = format!(
            "verb=\"{}\",group=\"{}\",resource=\"{}\",code=\"{}\"",
            s.verb, s.group, s.resource, s.code
        );
        let mut below = 0;
        for (upper, count) in BUCKETS.iter().zip(histogram.buckets) {
            below += count;
            let _ = writeln!(
                out,
                "apiserver_request_duration_seconds_bucket{{{labels},le=\"{upper}\"}} {below}"
            );
        }
        let _ = writeln!(
            out,
            "apiserver_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}} {count}\n\
             apiserver_request_duration_seconds_sum{{{labels}}} {seconds}\n\
             apiserver_request_duration_seconds_count{{{labels}}} {count}",
            count = histogram.count,
            seconds = histogram.seconds,
        );
    }
    head(
        &mut out,
        "apiserver_resource_objects",
        "gauge",
        "Objects by kind.",
    );
    let kinds = by_name(kernel);
    for ((group, resource), (objects, _)) in &kinds {
        let _ = writeln!(
            out,
            "apiserver_resource_objects{{group=\"{group}\",resource=\"{resource}\"}} {objects}",
        );
    }
    head(
        &mut out,
        "apiserver_longrunning_requests",
        "gauge",
        "Open watches by kind.",
    );
    for ((group, resource), (_, watches)) in kinds.iter().filter(|(_, (_, watches))| *watches > 0) {
        let _ = writeln!(
            out,
            "apiserver_longrunning_requests{{verb=\"WATCH\",group=\"{group}\",resource=\"{resource}\"}} {watches}",
        );
    }
    head(
        &mut out,
        "fairway_store_revision",
        "gauge",
        "Revision up to which readers see everything.",
    );
    let _ = writeln!(out, "fairway_store_revision {}", kernel.storage.cache.applied());
    head(
        &mut out,
        "apiserver_audit_error_total",
        "counter",
        "Audit lines that were dropped.",
    );
    let _ = writeln!(out, "apiserver_audit_error_total {}", kernel.audit.dropped());
    out.push_str(&kernel.more_metrics.render());
    out
}

/// Figures of parts that run beside the kernel. Each part adds its own.
#[derive(Default)]
pub struct Beside(Mutex<Vec<Box<dyn Fn() -> String + Send + Sync>>>);

impl Beside {
    /// Shows what `figures` returns, in the text form, whenever somebody asks.
    pub fn add(&self, figures: impl Fn() -> String + Send + Sync + 'static) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::new(figures));
    }

    fn render(&self) -> String {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.iter().map(|figures| figures()).collect()
    }
}

/// Objects and watches of each kind. Kinds of the same name in different workspaces are one series: their number is
/// bounded by nobody.
fn by_name(kernel: &Kernel) -> BTreeMap<(String, String), (usize, usize)> {
    let mut kinds = BTreeMap::new();
    for kind in kernel.storage.cache.kinds() {
        let mut parts = kind.prefix().trim_matches('/').splitn(3, '/');
        let (group, resource) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let group = if group == "core" { "" } else { group };
        let (objects, watches): &mut (usize, usize) =
            kinds.entry((group.to_owned(), resource.to_owned())).or_default();
        *objects += kind.len();
        *watches += kind.watchers();
    }
    kinds
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}
