//! Annotations of a Service about its endpoints: health checks, ejection, circuit breaking. What cannot be read does not count
//! and is told.

use std::collections::BTreeMap;
use std::time::Duration;

use fairway_text_gotext::duration;
use serde_json::Value;

use crate::table::{Breaker, Ejection, HealthCheck, Traffic};

/// What the annotations begin with.
const PREFIX: &str = "gateway.fairway.dev/";
const LONGEST_PATH: usize = 1024;
const MOST: u64 = 100_000;

/// Tenants choose these, so checks must neither flood a backend nor wait for one for ever.
const INTERVAL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));
const TIMEOUT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
const EJECTION: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3600));

/// Reads them; and what is wrong with some.
pub(super) fn read(object: &Value) -> (Traffic, Vec<String>) {
    let all = object["metadata"]["annotations"].as_object();
    let own = all.into_iter().flatten();
    let own = own.filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?, value.as_str()?)));
    let mut notes = Notes {
        left: own.collect(),
        wrong: Vec::new(),
    };
    if notes.left.is_empty() {
        return (Traffic::default(), Vec::new());
    }
    let traffic = Traffic {
        health: health(&mut notes),
        ejection: Ejection {
            failures: notes.number("ejection-failures", 0, 1000),
            base: notes.time("ejection-time", EJECTION),
            longest: notes.time("ejection-time-max", EJECTION),
        },
        breaker: Breaker {
            connections: notes.number("max-connections", 1, MOST),
            pending: notes.number("max-pending-requests", 0, MOST),
            requests: notes.number("max-parallel-requests", 1, MOST),
        },
    };
    let unknown = notes.left.into_keys();
    notes
        .wrong
        .extend(unknown.map(|name| format!("{PREFIX}{name} is not known")));
    (traffic, notes.wrong)
}

fn health(notes: &mut Notes<'_>) -> Option<HealthCheck> {
    let path = notes.left.remove("health-check-path");
    let interval = notes.time("health-check-interval", INTERVAL);
    let timeout = notes.time("health-check-timeout", TIMEOUT);
    let unhealthy = notes.number("health-check-unhealthy-threshold", 1, 100);
    let healthy = notes.number("health-check-healthy-threshold", 1, 100);
    let path = path?;
    let is_sound = path.starts_with('/')
        && path.len() <= LONGEST_PATH
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if !is_sound {
        notes.wrong(
            "health-check-path",
            "must be a path of printable ASCII such as /healthz",
        );
        return None;
    }
    Some(HealthCheck {
        path: path.to_owned(),
        interval: interval.unwrap_or(Duration::from_secs(10)),
        timeout: timeout.unwrap_or(Duration::from_secs(2)),
        unhealthy: unhealthy.unwrap_or(3),
        healthy: healthy.unwrap_or(2),
    })
}

struct Notes<'a> {
    /// Those that nobody has asked for.
    left: BTreeMap<&'a str, &'a str>,
    wrong: Vec<String>,
}

impl Notes<'_> {
    fn wrong(&mut self, name: &str, why: &str) {
        self.wrong.push(format!("{PREFIX}{name} {why}"));
    }

    fn number<T: TryFrom<u64>>(&mut self, name: &str, least: u64, most: u64) -> Option<T> {
        let text = self.left.remove(name)?;
        let read = text
            .parse::<u64>()
            .ok()
            .filter(|number| (least..=most).contains(number));
        let read = read.and_then(|number| T::try_from(number).ok());
        if read.is_none() {
            self.wrong(name, &format!("must be a number from {least} to {most}"));
        }
        read
    }

    fn time(&mut self, name: &str, (least, most): (Duration, Duration)) -> Option<Duration> {
        let text = self.left.remove(name)?;
        let read = duration::span(text).filter(|time| (least..=most).contains(time));
        if read.is_none() {
            self.wrong(
                name,
                &format!("must be a time from {least:?} to {most:?}, such as 5s"),
            );
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotations_are_read_and_what_is_wrong_is_told() {
        let read = |annotations: Value| read(&json!({"metadata": {"annotations": annotations}}));
        let (traffic, wrong) = read(json!({"other": "x"}));
        assert_eq!((traffic, wrong.len()), (Traffic::default(), 0));
        let (traffic, wrong) = read(json!({
            "gateway.fairway.dev/health-check-path": "/healthz",
            "gateway.fairway.dev/health-check-interval": "5s",
            "gateway.fairway.dev/ejection-failures": "0",
            "gateway.fairway.dev/max-connections": "10",
        }));
        assert!(wrong.is_empty(), "{wrong:?}");
        let health = traffic.health.unwrap();
        assert_eq!((health.interval, health.unhealthy), (Duration::from_secs(5), 3));
        assert_eq!(traffic.ejection.failures, Some(0));
        assert_eq!(traffic.breaker.connections, Some(10));
        for (name, value, reason) in [
            ("health-check-path", "healthz", "no path"),
            (
                "health-check-path",
                "/a b\r\nhost: evil",
                "it would write more than a path",
            ),
            ("health-check-interval", "1ms", "it would be a flood"),
            ("health-check-timeout", "1h", "it would wait for ever"),
            ("max-connections", "0", "nobody would be served"),
            ("max-connections", "many", "no number"),
            ("max-conections", "1", "nobody knows it"),
        ] {
            let (traffic, wrong) = read(json!({format!("gateway.fairway.dev/{name}"): value}));
            assert_eq!((traffic, wrong.len()), (Traffic::default(), 1), "{reason}");
        }
    }
}
