//! Progressive syncs (`strategy: RollingSync`): Applications in steps, each step when those before are done.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::Error;

/// An Application in a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// How far it is.
    pub progress: Progress,
}

/// How far an Application is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Out of sync, and not being synced.
    Waiting,
    /// Being synced, or synced and not yet healthy.
    Busy,
    /// It was done, and is no longer well: others wait for it, and it takes nobody's place.
    Unwell,
    /// Synced and healthy.
    Done,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rollout {
    /// Applications that may be synced now.
    pub sync: Vec<String>,
    /// The step of each Application, from one; those that no step selects are left to people.
    pub steps: BTreeMap<String, usize>,
    /// The step that is being worked on; none if all are done.
    pub current: Option<usize>,
}

/// Whether a set is rolled out in steps.
pub fn is_rolling(spec: &Value) -> bool {
    spec["strategy"]["type"] == "RollingSync"
}

/// Whether its Applications are deleted step by step, the last step first.
pub fn deletes_in_reverse(spec: &Value) -> bool {
    let order = spec["strategy"]["deletionOrder"].as_str().unwrap_or_default();
    has_steps(spec) && order.eq_ignore_ascii_case("Reverse")
}

fn has_steps(spec: &Value) -> bool {
    let steps = spec["strategy"]["rollingSync"]["steps"].as_array();
    is_rolling(spec) && steps.is_some_and(|steps| !steps.is_empty())
}

/// The next Applications to delete: those of the last step that has any. Those of no step go with the set.
pub fn next_deletions(spec: &Value, members: &[Member]) -> Result<Vec<String>, Error> {
    let steps = decide(spec, members)?.steps;
    let last = steps.values().max();
    let names = steps.iter().filter(|(_, step)| Some(*step) == last);
    Ok(names.map(|(name, _)| name.clone()).collect())
}

/// Takes an Application's own will to sync from it: its set says when. Whether it would have pruned.
pub fn hold(application: &mut Value) -> bool {
    let Some(policy) = application
        .pointer_mut("/spec/syncPolicy")
        .and_then(Value::as_object_mut)
    else {
        return false;
    };
    let automated = policy.get("automated").filter(|it| !it.is_null());
    let Some(automated) = automated.filter(|it| it["enabled"] != false) else {
        return false;
    };
    let prunes = automated["prune"] == true;
    policy.shift_remove("automated");
    prunes
}

/// The operation that syncs an Application whose turn it is.
pub fn operation(application: &Value, prunes: bool) -> Value {
    let policy = &application["spec"]["syncPolicy"];
    let mut sync = Map::new();
    if prunes {
        sync.insert("prune".to_owned(), true.into());
    }
    if let Some(options) = policy.get("syncOptions").filter(|it| !it.is_null()) {
        sync.insert("syncOptions".to_owned(), options.clone());
    }
    let retry = policy.get("retry").filter(|it| !it.is_null()).cloned();
    json!({
        "initiatedBy": {"username": "applicationset-controller", "automated": true},
        "info": [{"name": "Reason", "value": "ApplicationSet RollingSync triggered a sync of this Application resource"}],
        "sync": sync,
        "retry": retry.unwrap_or_else(|| json!({"limit": 5})),
    })
}

/// Decides what may be synced.
pub fn decide(spec: &Value, members: &[Member]) -> Result<Rollout, Error> {
    let steps = spec["strategy"]["rollingSync"]["steps"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let mut rollout = Rollout::default();
    let mut by_step: Vec<Vec<&Member>> = vec![Vec::new(); steps.len()];
    for member in members {
        for (index, step) in steps.iter().enumerate() {
            if selects(step, &member.labels)? {
                rollout.steps.insert(member.name.clone(), index + 1);
                by_step[index].push(member);
                break;
            }
        }
    }
    for (index, group) in by_step.iter_mut().enumerate() {
        let is_done = |member: &&Member| member.progress == Progress::Done;
        if group.iter().all(is_done) {
            continue;
        }
        rollout.current = Some(index + 1);
        group.sort_by(|a, b| a.name.cmp(&b.name));
        let most = max_update(&steps[index]["maxUpdate"], group.len())?;
        let busy = group
            .iter()
            .filter(|member| member.progress == Progress::Busy)
            .count();
        let waiting = group.iter().filter(|member| member.progress == Progress::Waiting);
        rollout.sync = waiting
            .take(most.saturating_sub(busy))
            .map(|member| member.name.clone())
            .collect();
        break;
    }
    Ok(rollout)
}

fn selects(step: &Value, labels: &BTreeMap<String, String>) -> Result<bool, Error> {
    for expression in step["matchExpressions"].as_array().into_iter().flatten() {
        let own = labels.get(expression["key"].as_str().unwrap_or_default());
        let values = expression["values"].as_array().into_iter().flatten();
        let listed = own.is_some_and(|own| values.filter_map(Value::as_str).any(|value| value == own));
        let fits = match expression["operator"].as_str() {
            Some("In") => listed,
            Some("NotIn") => !listed,
            other => {
                return Err(Error::Generator(format!(
                    "the operator of a step's matchExpressions is In or NotIn, not {other:?}"
                )));
            }
        };
        if !fits {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How many may be on their way at once: a number, or a percentage, of which a little more than nothing is one.
fn max_update(value: &Value, all: usize) -> Result<usize, Error> {
    let bad = || Error::Generator(format!("maxUpdate is a number or a percentage, not {value}"));
    match value {
        Value::Null => Ok(all),
        Value::Number(number) => number
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(bad),
        Value::String(text) => {
            let percent: usize = text
                .strip_suffix('%')
                .and_then(|text| text.parse().ok())
                .ok_or_else(bad)?;
            let share = all.saturating_mul(percent) / 100;
            Ok(if percent > 0 { share.max(1) } else { 0 })
        }
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn member(name: &str, environment: &str, progress: Progress) -> Member {
        Member {
            name: name.to_owned(),
            labels: [("env".to_owned(), environment.to_owned())].into(),
            progress,
        }
    }

    fn spec(second: Value) -> Value {
        let step = |environment: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [environment]}]});
        let mut prod = step("prod");
        prod["maxUpdate"] = second;
        json!({"strategy": {"type": "RollingSync", "rollingSync": {"steps": [step("dev"), prod]}}})
    }

    #[test]
    fn steps_follow_each_other() {
        use Progress::{Busy, Done, Unwell, Waiting};
        let members = |dev: Progress, prod: [Progress; 4]| {
            let mut all = vec![member("d", "dev", dev), member("x", "test", Waiting)];
            all.extend(
                prod.into_iter()
                    .enumerate()
                    .map(|(index, progress)| member(&format!("p{index}"), "prod", progress)),
            );
            all
        };
        type Case<'a> = (&'a str, Value, Vec<Member>, &'a [&'a str], Option<usize>);
        let cases: Vec<Case<'_>> = vec![
            (
                "the first step",
                json!(1),
                members(Waiting, [Waiting; 4]),
                &["d"],
                Some(1),
            ),
            (
                "the first step is busy",
                json!(1),
                members(Busy, [Waiting; 4]),
                &[],
                Some(1),
            ),
            (
                "one at a time",
                json!(1),
                members(Done, [Waiting; 4]),
                &["p0"],
                Some(2),
            ),
            (
                "one is on its way",
                json!(1),
                members(Done, [Busy, Waiting, Waiting, Waiting]),
                &[],
                Some(2),
            ),
            (
                "half of them",
                json!("50%"),
                members(Done, [Done, Waiting, Waiting, Waiting]),
                &["p1", "p2"],
                Some(2),
            ),
            (
                "a little is one",
                json!("10%"),
                members(Done, [Waiting; 4]),
                &["p0"],
                Some(2),
            ),
            ("none", json!(0), members(Done, [Waiting; 4]), &[], Some(2)),
            (
                "no limit",
                Value::Null,
                members(Done, [Waiting; 4]),
                &["p0", "p1", "p2", "p3"],
                Some(2),
            ),
            ("all done", json!(1), members(Done, [Done; 4]), &[], None),
        ];
        for (reason, second, members, sync, current) in cases {
            let rollout = decide(&spec(second), &members).unwrap();
            assert_eq!(
                (rollout.sync.as_slice(), rollout.current),
                (
                    sync.iter()
                        .map(|name| (*name).to_owned())
                        .collect::<Vec<_>>()
                        .as_slice(),
                    current
                ),
                "{reason}"
            );
            assert_eq!(
                rollout.steps.get("x"),
                None,
                "{reason}: what no step selects is left to people"
            );
        }
        assert!(decide(&spec(json!("many")), &members(Done, [Waiting; 4])).is_err());
        let unwell = members(Unwell, [Waiting; 4]);
        let found = decide(&spec(json!(1)), &unwell).unwrap();
        assert_eq!(
            (found.sync.len(), found.current),
            (0, Some(1)),
            "others wait for it"
        );
    }

    #[test]
    fn the_last_step_is_deleted_first() {
        let mut spec = spec(json!(1));
        let all = [
            member("d", "dev", Progress::Done),
            member("x", "test", Progress::Done),
            member("p", "prod", Progress::Done),
        ];
        assert!(!deletes_in_reverse(&spec));
        spec["strategy"]["deletionOrder"] = json!("reverse");
        assert!(deletes_in_reverse(&spec));
        assert_eq!(next_deletions(&spec, &all).unwrap(), ["p"]);
        assert_eq!(next_deletions(&spec, &all[..2]).unwrap(), ["d"]);
        assert!(next_deletions(&spec, &all[1..2]).unwrap().is_empty());
    }

    #[test]
    fn the_set_syncs_instead_of_the_application() {
        for (policy, prunes, left) in [
            (
                json!({"automated": {"prune": true}, "syncOptions": ["a=b"]}),
                true,
                json!({"syncOptions": ["a=b"]}),
            ),
            (json!({"automated": {}}), false, json!({})),
            (
                json!({"automated": {"enabled": false, "prune": true}}),
                false,
                json!({"automated": {"enabled": false, "prune": true}}),
            ),
        ] {
            let mut application = json!({"spec": {"syncPolicy": policy}});
            assert_eq!(hold(&mut application), prunes);
            assert_eq!(application["spec"]["syncPolicy"], left);
        }
        assert!(!hold(&mut json!({"spec": {}})));
        let application = json!({"spec": {"syncPolicy": {"syncOptions": ["a=b"], "retry": {"limit": 1}}}});
        let found = operation(&application, true);
        assert_eq!(found["sync"], json!({"prune": true, "syncOptions": ["a=b"]}));
        assert_eq!(found["retry"], json!({"limit": 1}));
        assert_eq!(operation(&json!({}), false)["retry"], json!({"limit": 5}));
    }
}
