//! What the platform decides for all guards.

use std::time::Duration;

/// What happens to a request that a rate limit cannot be counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailureMode {
    /// It passes; upstream's choice for rate limits (`RATELIMIT_SERVICE_FAILURE_MODE`).
    #[default]
    Allow,
    /// It is answered with 500.
    Deny,
}

/// Which headers tell how much of a limit is left (Limitador's `rateLimitHeaders`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateLimitHeaders {
    None,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset` of draft 3 of the IETF's document, on every answer.
    #[default]
    DraftVersion03,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub rate_limit_failure: FailureMode,
    pub rate_limit_headers: RateLimitHeaders,
    /// Counters that are kept; some 200 bytes each.
    pub max_counters: usize,
    /// Verified tokens that are kept for each issuer; some 1 KiB each.
    pub max_tokens: usize,
    /// Answers of others that are kept; of 64 KiB at most each, and 16 MiB together.
    pub max_answers: usize,
    /// How long a Rego module may take to judge one request. It runs on a worker of the proxy, whose other requests wait meanwhile.
    pub rego_time: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rate_limit_failure: FailureMode::default(),
            rate_limit_headers: RateLimitHeaders::default(),
            max_counters: 100_000,
            max_tokens: 4_096,
            max_answers: 4_096,
            rego_time: Duration::from_millis(5),
        }
    }
}
