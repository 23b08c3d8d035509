//! The status of a budget, from its pods.

use fairway_kernel_kinds::read::{has, list, part, text};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// How long an eviction may take before its pod counts again.
const DELETION_SECONDS: i64 = 120;

/// What was seen of the pods.
pub(super) struct Observed<'a> {
    /// Those that the budget selects.
    pub(super) pods: &'a [Value],
    /// How many their controllers want, or why that is not known.
    pub(super) scale: Result<i64, String>,
}

/// What follows.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Decided {
    /// The new status; `None`: it says so already.
    pub(super) status: Option<Value>,
    /// When to look again, in seconds.
    pub(super) again_in: Option<u64>,
}

/// Whether the budget is a share of what controllers want, and not a number of pods.
pub(super) fn needs_scale(spec: &Value) -> bool {
    has(spec, "maxUnavailable") || spec.get("minAvailable").is_some_and(Value::is_string)
}

/// Counts.
pub(super) fn decide(budget: &Value, observed: &Observed<'_>, now: i64) -> Decided {
    let generation = part(budget, "metadata")["generation"].as_i64().unwrap_or(0);
    let old = part(budget, "status");
    let (expected, desired) = match counts(part(budget, "spec"), observed) {
        Ok(counts) => counts,
        Err(why) => return failed(old, &why, now),
    };
    let (disrupted, again_in) = still_disrupted(old, observed.pods, now);
    let healthy = observed
        .pods
        .iter()
        .filter(|pod| is_healthy(pod) && !disrupted.contains_key(text(part(pod, "metadata"), "name")))
        .count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let allowed = if expected <= 0 {
        0
    } else {
        (healthy - desired).max(0)
    };
    let (state, reason) = if allowed > 0 {
        ("True", "SufficientPods")
    } else {
        ("False", "InsufficientPods")
    };
    let mut status = json!({
        "observedGeneration": generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": with_condition(old, state, reason, "", generation, now),
    });
    if !disrupted.is_empty() {
        status["disruptedPods"] = Value::Object(disrupted);
    }
    Decided {
        status: (!same(old, &status)).then_some(status),
        again_in,
    }
}

/// How many pods there should be, and how many of them healthy.
fn counts(spec: &Value, observed: &Observed<'_>) -> Result<(i64, i64), String> {
    if let Some(most) = spec.get("maxUnavailable").filter(|v| !v.is_null()) {
        let expected = observed.scale.clone()?;
        return Ok((expected, (expected - share(most, expected)?).max(0)));
    }
    match spec.get("minAvailable").filter(|v| !v.is_null()) {
        Some(least @ Value::String(_)) => {
            let expected = observed.scale.clone()?;
            Ok((expected, share(least, expected)?))
        }
        Some(least) => {
            let there = i64::try_from(observed.pods.len()).unwrap_or(i64::MAX);
            Ok((there, least.as_i64().unwrap_or(0)))
        }
        None => Ok((0, 0)),
    }
}

/// A number, or a percentage of a number, rounded up.
fn share(value: &Value, of: i64) -> Result<i64, String> {
    match value {
        Value::String(text) => {
            let percent: i64 = text
                .strip_suffix('%')
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(|| format!("invalid value for IntOrString: {text:?} is not a percentage"))?;
            Ok((of.saturating_mul(percent).saturating_add(99)) / 100)
        }
        number => Ok(number.as_i64().unwrap_or(0)),
    }
}

fn is_healthy(pod: &Value) -> bool {
    text(part(pod, "metadata"), "deletionTimestamp").is_empty()
        && list(part(pod, "status"), "conditions")
            .iter()
            .any(|condition| text(condition, "type") == "Ready" && text(condition, "status") == "True")
}

/// The evictions that are still under way, and when the next of them is overdue.
fn still_disrupted(old: &Value, pods: &[Value], now: i64) -> (Map<String, Value>, Option<u64>) {
    let mut kept = Map::new();
    let mut next: Option<u64> = None;
    for (name, at) in part(old, "disruptedPods").as_object().into_iter().flatten() {
        let waiting = pods.iter().any(|pod| {
            let metadata = part(pod, "metadata");
            text(metadata, "name") == name && text(metadata, "deletionTimestamp").is_empty()
        });
        let since = at.as_str().and_then(|text| text.parse::<Timestamp>().ok());
        let Some(since) = since.filter(|_| waiting) else {
            continue;
        };
        let left = since
            .as_second()
            .saturating_add(DELETION_SECONDS)
            .saturating_sub(now);
        if let Ok(left) = u64::try_from(left) {
            next = Some(next.map_or(left + 1, |soonest| soonest.min(left + 1)));
            kept.insert(name.clone(), at.clone());
        }
    }
    (kept, next)
}

/// Nothing may be disrupted as long as it is not known how much there should be.
fn failed(old: &Value, why: &str, now: i64) -> Decided {
    let generation = old["observedGeneration"].as_i64().unwrap_or(0);
    let mut status = if old.is_object() { old.clone() } else { json!({}) };
    status["disruptionsAllowed"] = json!(0);
    for field in ["currentHealthy", "desiredHealthy", "expectedPods"] {
        if !has(&status, field) {
            status[field] = json!(0);
        }
    }
    status["conditions"] = with_condition(old, "False", "SyncFailed", why, generation, now);
    Decided {
        status: (!same(old, &status)).then_some(status),
        again_in: None,
    }
}

const CONDITION: &str = "DisruptionAllowed";

fn with_condition(old: &Value, state: &str, reason: &str, message: &str, generation: i64, now: i64) -> Value {
    let mut conditions: Vec<Value> = list(old, "conditions").to_vec();
    let before = conditions.iter().position(|c| text(c, "type") == CONDITION);
    let since = before
        .map(|at| &conditions[at])
        .filter(|c| text(c, "status") == state)
        .map(|c| c["lastTransitionTime"].clone());
    let now = || Timestamp::from_second(now).map_or(Value::Null, |t| json!(t.to_string()));
    let condition = json!({
        "type": CONDITION, "status": state, "observedGeneration": generation,
        "lastTransitionTime": since.unwrap_or_else(now), "reason": reason, "message": message,
    });
    match before {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    Value::Array(conditions)
}

/// Whether two statuses say the same, whatever the order of their fields.
fn same(old: &Value, new: &Value) -> bool {
    let zero =
        |value: &Value| value.is_null() || value == &json!(0) || value == &json!({}) || value == &json!("");
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => a.keys().chain(b.keys()).all(|key| {
            let (a, b) = (
                a.get(key).unwrap_or(&Value::Null),
                b.get(key).unwrap_or(&Value::Null),
            );
            same(a, b) || (zero(a) && zero(b))
        }),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Observed, decide};

    const NOW: i64 = 1_800_000_000;

    fn pod(name: &str, ready: bool) -> Value {
        json!({"metadata": {"name": name}, "status": {"conditions": [
            {"type": "Ready", "status": if ready { "True" } else { "False" }}]}})
    }

    #[test]
    fn budgets_are_counted() {
        let three = [pod("a", true), pod("b", true), pod("c", false)];
        for (name, spec, pods, scale, want) in [
            (
                "no pods",
                json!({"minAvailable": 1}),
                &three[..0],
                0,
                (0, 0, 1, 0),
            ),
            (
                "a number",
                json!({"minAvailable": 1}),
                &three[..],
                0,
                (3, 2, 1, 1),
            ),
            ("too few", json!({"minAvailable": 2}), &three[..], 0, (3, 2, 2, 0)),
            (
                "a share of what should be",
                json!({"minAvailable": "50%"}),
                &three[..],
                4,
                (4, 2, 2, 0),
            ),
            (
                "rounded up",
                json!({"minAvailable": "1%"}),
                &three[..],
                4,
                (4, 2, 1, 1),
            ),
            (
                "the most that may be missing",
                json!({"maxUnavailable": 2}),
                &three[..],
                3,
                (3, 2, 1, 1),
            ),
            (
                "a share of it",
                json!({"maxUnavailable": "50%"}),
                &three[..],
                3,
                (3, 2, 1, 1),
            ),
            (
                "everything may",
                json!({"maxUnavailable": 9}),
                &three[..],
                3,
                (3, 2, 0, 2),
            ),
        ] {
            let budget = json!({"metadata": {"generation": 2}, "spec": spec});
            let decided = decide(
                &budget,
                &Observed {
                    pods,
                    scale: Ok(scale),
                },
                NOW,
            );
            let status = decided.status.unwrap();
            let found = [
                "expectedPods",
                "currentHealthy",
                "desiredHealthy",
                "disruptionsAllowed",
            ]
            .map(|field| status[field].as_i64().unwrap());
            assert_eq!((found[0], found[1], found[2], found[3]), want, "{name}");
            assert_eq!(status["observedGeneration"], 2, "{name}");
            let allowed = &status["conditions"][0];
            assert_eq!(allowed["status"] == "True", want.3 > 0, "{name}");
            // Asked again, it has nothing to say.
            let mut settled = budget.clone();
            settled["status"] = status;
            let again = decide(
                &settled,
                &Observed {
                    pods,
                    scale: Ok(scale),
                },
                NOW + 60,
            );
            assert_eq!(again.status, None, "{name}");
        }
    }

    #[test]
    fn evictions_under_way_do_not_count() {
        let pods = [pod("a", true), pod("b", true)];
        let budget = json!({"spec": {"minAvailable": 1}, "status": {"disruptedPods": {
            "a": "2027-01-15T07:59:00Z", "b": "2027-01-15T07:00:00Z", "gone": "2027-01-15T07:59:30Z"}}});
        let decided = decide(
            &budget,
            &Observed {
                pods: &pods,
                scale: Ok(0),
            },
            NOW,
        );
        let status = decided.status.unwrap();
        assert_eq!(status["disruptedPods"], json!({"a": "2027-01-15T07:59:00Z"}));
        assert_eq!(
            (&status["currentHealthy"], decided.again_in),
            (&json!(1), Some(61))
        );
    }

    #[test]
    fn what_cannot_be_counted_allows_nothing() {
        let budget = json!({"spec": {"minAvailable": "50%"}, "status": {"observedGeneration": 1, "disruptionsAllowed": 3}});
        let observed = Observed {
            pods: &[],
            scale: Err("found no controllers".to_owned()),
        };
        let status = decide(&budget, &observed, NOW).status.unwrap();
        assert_eq!(status["disruptionsAllowed"], 0);
        assert_eq!(status["conditions"][0]["reason"], "SyncFailed");
    }
}
