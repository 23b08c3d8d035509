//! When a sync that failed is tried again.

use std::time::Duration;

use fairway_text_gotext::duration;
use serde_json::Value;

/// `spec.syncPolicy.retry` or that of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// How often; negative: for ever; zero: not at all.
    pub limit: i64,
    /// Before the first time.
    pub duration: Duration,
    /// How much longer each time.
    pub factor: f64,
    /// At most.
    pub max_duration: Duration,
    /// Whether a newer revision is taken.
    pub refresh: bool,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            limit: 0,
            duration: Duration::from_secs(5),
            factor: 2.0,
            max_duration: Duration::from_secs(180),
            refresh: false,
        }
    }
}

/// A duration that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("retry.backoff.{field}: {text:?} is no duration; write for example 5s, 2m or 1h30m")]
pub struct BadDuration {
    field: &'static str,
    text: String,
}

impl Retry {
    /// Reads a retry strategy; what is missing is Argo CD's default.
    pub fn read(value: &Value) -> Result<Self, BadDuration> {
        let default = Self::default();
        let backoff = &value["backoff"];
        let read = |field: &'static str, default: Duration| match backoff[field].as_str() {
            None | Some("") => Ok(default),
            Some(text) => go_duration(text).ok_or_else(|| BadDuration {
                field,
                text: text.to_owned(),
            }),
        };
        Ok(Self {
            limit: value["limit"].as_i64().unwrap_or(0),
            duration: read("duration", default.duration)?,
            factor: backoff["factor"].as_f64().unwrap_or(default.factor),
            max_duration: read("maxDuration", default.max_duration)?,
            refresh: value["refresh"].as_bool().unwrap_or(false),
        })
    }

    /// How long to wait before the next try, after so many; none if there is none.
    pub fn next(&self, tried: u32) -> Option<Duration> {
        if self.limit >= 0 && i64::from(tried) >= self.limit {
            return None;
        }
        let growth = self
            .factor
            .max(0.0)
            .powi(i32::try_from(tried).unwrap_or(i32::MAX));
        let seconds = self.duration.as_secs_f64() * growth;
        let bounded = match seconds.is_finite() && seconds < self.max_duration.as_secs_f64() {
            true => Duration::from_secs_f64(seconds),
            false => self.max_duration,
        };
        Some(bounded)
    }
}

/// A duration as Go writes it; a plain number is of seconds.
pub fn go_duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    duration::span(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn waits_grow_and_end() {
        let retry = |value: Value| Retry::read(&value).unwrap();
        let seconds = |retry: &Retry| -> Vec<Option<u64>> {
            (0..6)
                .map(|tried| retry.next(tried).map(|wait| wait.as_secs()))
                .collect()
        };
        let cases = [
            ("none", json!({}), vec![None; 6]),
            (
                "defaults",
                json!({"limit": 5}),
                vec![Some(5), Some(10), Some(20), Some(40), Some(80), None],
            ),
            (
                "a cap",
                json!({"limit": -1, "backoff": {"duration": "1m", "factor": 3, "maxDuration": "5m"}}),
                vec![Some(60), Some(180), Some(300), Some(300), Some(300), Some(300)],
            ),
            (
                "one",
                json!({"limit": 1, "backoff": {"duration": "7", "factor": 1}}),
                vec![Some(7), None, None, None, None, None],
            ),
        ];
        for (reason, value, expected) in cases {
            assert_eq!(seconds(&retry(value)), expected, "{reason}");
        }
        assert_eq!(
            retry(json!({"limit": -1})).next(u32::MAX),
            Some(Duration::from_secs(180)),
            "no overflow"
        );
        let error = Retry::read(&json!({"backoff": {"duration": "soon"}})).unwrap_err();
        assert!(error.to_string().contains("retry.backoff.duration: \"soon\""));
    }

    #[test]
    fn durations() {
        let cases = [
            ("5s", Some(5000)),
            ("1h30m", Some(5_400_000)),
            ("1.5m", Some(90_000)),
            ("100ms", Some(100)),
            ("30", Some(30_000)),
            ("", None),
            ("s", None),
            ("5x", None),
            ("1e9999h", None),
            ("99999999999999999999h", None),
        ];
        for (text, expected) in cases {
            assert_eq!(
                go_duration(text).map(|value| value.as_millis()),
                expected,
                "{text}"
            );
        }
    }
}
