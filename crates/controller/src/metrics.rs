//! Figures on controllers, in Prometheus' text format. Labels are names from the code, so their number is bounded.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the histogram's buckets, in microseconds.
const BOUNDS: [u64; 8] = [500, 1_000, 5_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000];

/// How a reconcile went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Result {
    /// Nothing is left to do.
    Success,
    /// It asked to be called again.
    Requeue,
    /// Somebody else was quicker.
    Conflict,
    /// It failed.
    Error,
}

const RESULTS: [(Result, &str); 4] = [
    (Result::Success, "success"),
    (Result::Requeue, "requeue"),
    (Result::Conflict, "conflict"),
    (Result::Error, "error"),
];

/// The figures of one controller.
#[derive(Debug, Default)]
pub struct ControllerMetrics {
    results: [AtomicU64; RESULTS.len()],
    buckets: [AtomicU64; BOUNDS.len()],
    micros: AtomicU64,
    depth: AtomicU64,
    active: AtomicU64,
}

impl ControllerMetrics {
    /// Counts a reconcile.
    pub fn observe(&self, result: Result, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.results[result as usize].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        if let Some(bucket) = BOUNDS.iter().position(|bound| micros <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many keys wait, and how many are worked on.
    pub fn set_load(&self, depth: usize, active: usize) {
        self.depth.store(depth as u64, Ordering::Relaxed);
        self.active.store(active as u64, Ordering::Relaxed);
    }

    /// How often a result came.
    pub fn count(&self, result: Result) -> u64 {
        self.results[result as usize].load(Ordering::Relaxed)
    }
}

/// The figures of all controllers.
#[derive(Debug, Default)]
pub struct Metrics {
    controllers: Mutex<BTreeMap<&'static str, Arc<ControllerMetrics>>>,
    counters: Mutex<BTreeMap<&'static str, Arc<AtomicU64>>>,
}

impl Metrics {
    /// The figures of a controller; asked for twice, they are the same.
    pub fn controller(&self, name: &'static str) -> Arc<ControllerMetrics> {
        let mut all = self.controllers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(name).or_default())
    }

    /// A count of something else that a controller does, under its whole name; asked for twice, it is the same.
    pub fn counter(&self, name: &'static str) -> Arc<AtomicU64> {
        let mut all = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(name).or_default())
    }

    /// Everything as text, under the names that controller-runtime made known.
    pub fn render(&self) -> String {
        let all = self.controllers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
        // Writing to a String cannot fail.
        let mut line = |text: std::fmt::Arguments<'_>| {
            let _ = out.write_fmt(text);
            out.push('\n');
        };
        line(format_args!("# TYPE controller_runtime_reconcile_total counter"));
        for (name, figures) in &*all {
            for ((_, result), count) in RESULTS.iter().zip(&figures.results) {
                let count = load(count);
                line(format_args!(
                    "controller_runtime_reconcile_total{{controller=\"{name}\",result=\"{result}\"}} {count}"
                ));
            }
        }
        line(format_args!(
            "# TYPE controller_runtime_reconcile_time_seconds histogram"
        ));
        for (name, figures) in &*all {
            let family = "controller_runtime_reconcile_time_seconds";
            let mut below = 0;
            for (bound, bucket) in BOUNDS.iter().zip(&figures.buckets) {
                below += load(bucket);
                let seconds = Duration::from_micros(*bound).as_secs_f64();
                line(format_args!(
                    "{family}_bucket{{controller=\"{name}\",le=\"{seconds}\"}} {below}"
                ));
            }
            let total: u64 = figures.results.iter().map(load).sum();
            let sum = Duration::from_micros(load(&figures.micros)).as_secs_f64();
            line(format_args!(
                "{family}_bucket{{controller=\"{name}\",le=\"+Inf\"}} {total}"
            ));
            line(format_args!("{family}_sum{{controller=\"{name}\"}} {sum}"));
            line(format_args!("{family}_count{{controller=\"{name}\"}} {total}"));
        }
        for (family, figure) in [
            ("workqueue_depth", true),
            ("controller_runtime_active_workers", false),
        ] {
            line(format_args!("# TYPE {family} gauge"));
            for (name, figures) in &*all {
                let value = load(if figure { &figures.depth } else { &figures.active });
                line(format_args!("{family}{{controller=\"{name}\"}} {value}"));
            }
        }
        for (name, count) in &*self.counters.lock().unwrap_or_else(PoisonError::into_inner) {
            line(format_args!("# TYPE {name} counter"));
            line(format_args!("{name} {}", load(count)));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::{Metrics, Result};

    #[test]
    fn counts_and_durations_are_shown() {
        let metrics = Metrics::default();
        let figures = metrics.controller("namespace");
        figures.observe(Result::Success, Duration::from_micros(700));
        figures.observe(Result::Error, Duration::from_secs(20));
        metrics.controller("namespace").set_load(3, 1);
        metrics.counter("renders_total").fetch_add(2, Ordering::Relaxed);
        metrics.counter("renders_total").fetch_add(1, Ordering::Relaxed);
        let text = metrics.render();
        for want in [
            "controller_runtime_reconcile_total{controller=\"namespace\",result=\"success\"} 1\n",
            "controller_runtime_reconcile_total{controller=\"namespace\",result=\"error\"} 1\n",
            "controller_runtime_reconcile_time_seconds_bucket{controller=\"namespace\",le=\"0.0005\"} 0\n",
            "controller_runtime_reconcile_time_seconds_bucket{controller=\"namespace\",le=\"0.001\"} 1\n",
            "controller_runtime_reconcile_time_seconds_bucket{controller=\"namespace\",le=\"10\"} 1\n",
            "controller_runtime_reconcile_time_seconds_bucket{controller=\"namespace\",le=\"+Inf\"} 2\n",
            "controller_runtime_reconcile_time_seconds_count{controller=\"namespace\"} 2\n",
            "workqueue_depth{controller=\"namespace\"} 3\n",
            "# TYPE renders_total counter\nrenders_total 3\n",
        ] {
            assert!(text.contains(want), "{want} is not in\n{text}");
        }
    }
}
