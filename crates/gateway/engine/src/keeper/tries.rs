//! What failed, and when it is tried again. Pure: the time is told.
//!
//! Each object is its own: one that some workspace's quota or policy refuses must not keep others from theirs, nor fill the log.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

/// Before what failed is tried again; it grows up to the last.
const RETRY: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
];
/// Failures in a row that are worth a line: mostly somebody else was quicker, and the watch has not told yet.
const WORTH_TELLING: usize = 3;

/// Failures by the path of the object.
#[derive(Default)]
pub(super) struct Tries(BTreeMap<String, Try>);

struct Try {
    /// Of what was to be written: something else is tried at once.
    print: u64,
    failures: usize,
    again: Instant,
    why: String,
    /// The reason that the log has.
    told: Option<String>,
    /// It came up in this pass.
    is_current: bool,
}

/// What the log should say of a failure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing that it has not said.
    Nothing,
    /// It does not work, and why.
    Fails,
    /// It works again.
    Works,
}

impl Tries {
    /// Begins a pass.
    pub(super) fn begin(&mut self) {
        self.0.values_mut().for_each(|one| one.is_current = false);
    }

    /// Whether something is to be tried in this pass.
    pub(super) fn is_due(&mut self, path: &str, wanted: &Value, now: Instant) -> bool {
        let Some(one) = self.0.get_mut(path) else {
            return true;
        };
        one.is_current = true;
        one.again <= now || one.print != print(wanted)
    }

    /// Takes in what became of it.
    pub(super) fn take(
        &mut self,
        path: &str,
        wanted: &Value,
        outcome: Result<(), String>,
        now: Instant,
    ) -> News {
        let why = match outcome {
            Ok(()) => {
                let before = self.0.remove(path);
                return match before.and_then(|one| one.told) {
                    Some(_) => News::Works,
                    None => News::Nothing,
                };
            }
            Err(why) => why,
        };
        let print = print(wanted);
        let one = self.0.entry(path.to_owned()).or_insert_with(|| Try {
            print,
            failures: 0,
            again: now,
            why: String::new(),
            told: None,
            is_current: true,
        });
        if one.print != print {
            (one.print, one.failures) = (print, 0);
        }
        one.is_current = true;
        let pause = RETRY.get(one.failures).or(RETRY.last()).copied();
        one.again = now + pause.unwrap_or_default();
        one.failures = one.failures.saturating_add(1);
        one.why = why;
        if one.failures < WORTH_TELLING || one.told.as_ref() == Some(&one.why) {
            return News::Nothing;
        }
        one.told = Some(one.why.clone());
        News::Fails
    }

    /// Ends a pass: what nobody wants any more is forgotten. When the next is due, if nothing changes.
    pub(super) fn end(&mut self) -> Option<Instant> {
        self.0.retain(|_, one| one.is_current);
        self.0.values().map(|one| one.again).min()
    }
}

fn print(wanted: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    wanted.to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fails_waits_longer_and_is_told_once() {
        let mut tries = Tries::default();
        let mut now = Instant::now();
        let wanted = json!({"a": 1});
        let mut told = Vec::new();
        for pause in [1, 2, 10, 60, 60] {
            tries.begin();
            assert!(tries.is_due("/a", &wanted, now));
            told.push(tries.take("/a", &wanted, Err("quota".to_owned()), now));
            assert!(tries.is_due("/b", &wanted, now), "others do not wait");
            let again = tries.end().unwrap();
            assert_eq!(again, now + Duration::from_secs(pause));
            let before = again.checked_sub(Duration::from_millis(1)).unwrap();
            assert!(!tries.is_due("/a", &wanted, before));
            now = again;
        }
        let expected = [News::Nothing, News::Nothing, News::Fails];
        assert_eq!(told[..3], expected);
        assert!(told[3..].iter().all(|it| *it == News::Nothing), "{told:?}");
        let other = tries.take("/a", &wanted, Err("denied".to_owned()), now);
        assert_eq!(other, News::Fails, "another reason is news");
        assert!(
            tries.is_due("/a", &json!({"a": 2}), now),
            "something else is tried at once"
        );
        assert_eq!(tries.take("/a", &wanted, Ok(()), now), News::Works);
        assert_eq!(tries.end(), None);
    }

    #[test]
    fn what_nobody_wants_is_forgotten() {
        let mut tries = Tries::default();
        let now = Instant::now();
        tries.take("/a", &json!({}), Err("quota".to_owned()), now);
        tries.begin();
        assert_eq!(tries.end(), None);
    }
}
