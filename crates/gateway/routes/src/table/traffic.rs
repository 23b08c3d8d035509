//! How a Service wants its endpoints to be treated. What it does not say is for the data plane to choose.

use std::time::Duration;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    pub health: Option<HealthCheck>,
    pub ejection: Ejection,
    pub breaker: Breaker,
}

/// A request that endpoints are asked for, whether or not clients come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    pub path: String,
    pub interval: Duration,
    pub timeout: Duration,
    /// In a row, until an endpoint is left out.
    pub unhealthy: u32,
    /// In a row, until it is asked again.
    pub healthy: u32,
}

/// When an endpoint is left out for a while because of what became of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ejection {
    /// In a row; zero is never.
    pub failures: Option<u32>,
    /// The first time; then longer.
    pub base: Option<Duration>,
    pub longest: Option<Duration>,
}

/// What one endpoint is asked to carry at most.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Breaker {
    pub connections: Option<usize>,
    pub pending: Option<usize>,
    pub requests: Option<usize>,
}
