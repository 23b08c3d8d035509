//! One health of an application's many.

use serde_json::Value;

use crate::{Health, Status};

/// On a live object: its health does not count for its application.
pub const IGNORE_HEALTHCHECK: &str = "argocd.argoproj.io/ignore-healthcheck";

/// An object that an application manages. Hooks and what is left out of the comparison are not handed in.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// Its group.
    pub group: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// The object in the cluster, if it is there.
    pub live: Option<&'a Value>,
    /// Its health; none if its kind has none. Not looked at for what is missing.
    pub health: Option<&'a Health>,
    /// Whether it is the application itself, which must not wait for itself.
    pub is_self: bool,
}

/// The worst health of all. What is missing is a matter of sync, not of health, unless nothing is there at all; a child
/// application that is missing or unknown does not count, as it says nothing about what runs.
pub fn health(parts: &[Part<'_>]) -> Status {
    let worst = parts.iter().filter_map(counted).max().unwrap_or(Status::Healthy);
    let nothing_lives = !parts.is_empty() && parts.iter().all(|part| part.live.is_none());
    match nothing_lives {
        true => worst.max(Status::Missing),
        false => worst,
    }
}

fn counted(part: &Part<'_>) -> Option<Status> {
    let live = part.live?;
    if part.is_self || live["metadata"]["annotations"][IGNORE_HEALTHCHECK] == "true" {
        return None;
    }
    let status = part.health?.status_or_healthy();
    let is_application = part.group == "argoproj.io" && part.kind == "Application";
    let silent = is_application && matches!(status, Status::Missing | Status::Unknown);
    (!silent).then_some(status)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_application_is_as_healthy_as_its_worst_part() {
        let live = json!({"metadata": {"name": "x"}});
        let ignored = json!({"metadata": {"annotations": {IGNORE_HEALTHCHECK: "true"}}});
        let [healthy, progressing, degraded, unknown, missing] = [
            Status::Healthy,
            Status::Progressing,
            Status::Degraded,
            Status::Unknown,
            Status::Missing,
        ]
        .map(Health::plain);
        let part = |live, health| Part {
            group: "apps",
            kind: "Deployment",
            live,
            health,
            is_self: false,
        };
        let application = |health| Part {
            group: "argoproj.io",
            kind: "Application",
            ..part(Some(&live), Some(health))
        };
        let there = |health| part(Some(&live), Some(health));
        let cases: Vec<(&str, Vec<Part<'_>>, Status)> = vec![
            ("nothing to manage", vec![], Status::Healthy),
            (
                "the worst counts",
                vec![there(&healthy), there(&degraded), there(&progressing)],
                Status::Degraded,
            ),
            (
                "unknown is worse than degraded",
                vec![there(&degraded), there(&unknown)],
                Status::Unknown,
            ),
            (
                "a kind without health",
                vec![part(Some(&live), None)],
                Status::Healthy,
            ),
            (
                "one of two is missing",
                vec![there(&healthy), part(None, None)],
                Status::Healthy,
            ),
            (
                "all are missing",
                vec![part(None, None), part(None, None)],
                Status::Missing,
            ),
            (
                "ignored by annotation",
                vec![part(Some(&ignored), Some(&degraded))],
                Status::Healthy,
            ),
            (
                "an unknown child",
                vec![application(&unknown), application(&missing)],
                Status::Healthy,
            ),
            ("a degraded child", vec![application(&degraded)], Status::Degraded),
            (
                "itself",
                vec![Part {
                    is_self: true,
                    ..application(&degraded)
                }],
                Status::Healthy,
            ),
        ];
        for (reason, parts, expected) in cases {
            assert_eq!(health(&parts), expected, "{reason}");
        }
    }
}
