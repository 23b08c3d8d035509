//! Figures of one round, and what is made of several rounds: medians, because one disturbed round must not decide.

use std::collections::BTreeMap;
use std::time::Duration;

/// What one operation costs under one kind of load.
pub(crate) struct Load {
    pub(crate) rate: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) cpu_ms: f64,
}

impl Load {
    pub(crate) fn new(mut latencies: Vec<Duration>, wall: Duration, cpu: Duration) -> Self {
        latencies.sort_unstable();
        let operations = latencies.len() as f64;
        Self {
            rate: operations / wall.as_secs_f64(),
            p50_ms: milliseconds(percentile(&latencies, 0.50)),
            p99_ms: milliseconds(percentile(&latencies, 0.99)),
            cpu_ms: milliseconds(cpu) / operations,
        }
    }
}

/// A figure's name: the operation, and what of it.
pub(crate) type Key = (&'static str, &'static str);

#[derive(Default)]
pub(crate) struct Figures {
    values: BTreeMap<Key, f64>,
}

impl Figures {
    pub(crate) fn set(&mut self, operation: &'static str, what: &'static str, value: f64) {
        self.values.insert((operation, what), value);
    }

    pub(crate) fn set_load(&mut self, operation: &'static str, load: &Load) {
        self.set(operation, "rate", load.rate);
        self.set(operation, "p50", load.p50_ms);
        self.set(operation, "p99", load.p99_ms);
        self.set(operation, "cpu", load.cpu_ms);
    }

    pub(crate) fn get(&self, key: Key) -> Option<f64> {
        self.values.get(&key).copied()
    }
}

#[derive(Default)]
pub(crate) struct Rounds {
    pub(crate) fairway: Vec<Figures>,
    pub(crate) peer: Vec<Figures>,
    pub(crate) ceilings: Vec<Figures>,
}

/// The median of one figure over the rounds that have it.
pub(crate) fn over_rounds(rounds: &[Figures], key: Key) -> Option<f64> {
    let values: Vec<f64> = rounds.iter().filter_map(|figures| figures.get(key)).collect();
    (!values.is_empty()).then(|| median(values))
}

/// What half of the values do not exceed; of none it is no number.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        even if even % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

/// The smallest value that at least this share of the values does not exceed.
pub(crate) fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.max(1) - 1)
        .or(sorted.last())
        .copied()
        .unwrap_or_default()
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let sorted: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(percentile(&sorted, 0.50), Duration::from_millis(50));
        assert_eq!(percentile(&sorted, 0.99), Duration::from_millis(99));
        assert_eq!(percentile(&sorted[..1], 0.99), Duration::from_millis(1));
        assert_eq!(percentile(&[], 0.5), Duration::ZERO);
    }

    #[test]
    fn a_median_ignores_one_disturbed_round() {
        let rounds: Vec<Figures> = [3.0, 100.0, 2.0]
            .iter()
            .map(|value| {
                let mut figures = Figures::default();
                figures.set("get", "cpu", *value);
                figures
            })
            .collect();
        assert_eq!(over_rounds(&rounds, ("get", "cpu")), Some(3.0));
        assert_eq!(over_rounds(&rounds[1..], ("get", "cpu")), Some(51.0));
        assert_eq!(over_rounds(&rounds, ("get", "rate")), None);
    }

    #[test]
    fn a_load_is_per_operation() {
        let latencies = vec![Duration::from_millis(4); 10];
        let load = Load::new(latencies, Duration::from_secs(2), Duration::from_millis(50));
        assert_eq!((load.rate, load.p50_ms, load.cpu_ms), (5.0, 4.0, 5.0));
    }
}
