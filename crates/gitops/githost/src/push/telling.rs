//! How much a pusher is told of what follows from his push, and for how long.

use std::time::Duration;

use crate::catalog::PushAnswers;

/// For how long, if nobody says.
const LIMIT: Duration = Duration::from_secs(60);
/// For how long at most.
pub(super) const LONGEST: Duration = Duration::from_secs(1800);
/// The option with a value.
const WAIT: &str = "fairway.wait";
/// The option without one.
const NO_ANSWER: &str = "no-answer";

/// What a pusher is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Telling {
    /// Whether the outcome alone is told.
    pub is_brief: bool,
    /// When he is left to himself.
    pub limit: Duration,
}

/// What a pusher is told, by the setting of the repository and the options of the push, of which the last counts; nothing if
/// either says so.
pub fn telling(setting: PushAnswers, options: &[String]) -> Option<Telling> {
    let usual = |is_brief: bool| {
        Some(Telling {
            is_brief,
            limit: LIMIT,
        })
    };
    let mut wanted = match setting {
        PushAnswers::Full => usual(false),
        PushAnswers::Brief => usual(true),
        PushAnswers::Off => None,
    };
    for option in options {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match (name, value) {
            (NO_ANSWER, "") | (WAIT, "false" | "no" | "off" | "0" | "0s") => wanted = None,
            (WAIT, "" | "true" | "yes" | "on" | "full") => wanted = usual(false),
            (WAIT, "brief") => wanted = usual(true),
            (WAIT, time) => {
                // What is no time changes nothing: a push does not fail for it.
                if let Ok(seconds) = time.strip_suffix('s').unwrap_or(time).parse() {
                    wanted = Some(Telling {
                        is_brief: wanted.is_some_and(|wanted| wanted.is_brief),
                        limit: Duration::from_secs(seconds).min(LONGEST),
                    });
                }
            }
            _ => {}
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_before_settings() {
        use PushAnswers::{Brief, Full, Off};
        let (full, brief) = (Some((false, 60)), Some((true, 60)));
        for (setting, options, expected) in [
            (Full, "", full),
            (Brief, "", brief),
            (Off, "", None),
            (Full, "no-answer", None),
            (Full, "fairway.wait=false", None),
            (Brief, "fairway.wait=0", None),
            (Off, "fairway.wait", full),
            (Off, "fairway.wait=true", full),
            (Full, "fairway.wait=brief", brief),
            (Brief, "fairway.wait=5", Some((true, 5))),
            (Full, "fairway.wait=90s", Some((false, 90))),
            (Full, "fairway.wait=99999", Some((false, 1800))),
            (Full, "fairway.wait=never", full),
            (Full, "no-answer fairway.wait=10", Some((false, 10))),
            (Full, "ci.skip something=else", full),
        ] {
            let options: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
            let found = telling(setting, &options);
            let found = found.map(|found| (found.is_brief, found.limit.as_secs()));
            assert_eq!(found, expected, "{setting:?} {options:?}");
        }
    }
}
