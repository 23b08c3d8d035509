//! The promises about speed and size, each judged by the same run's figures of both servers.

use std::fmt::Write;

use super::{number, ratio};
use crate::figures::{Figures, Key, Rounds, over_rounds};

enum Rule {
    /// The peer's figure divided by Fairway's.
    TimesLess(f64),
    /// The same after taking from both what no server can avoid: one fdatasync at its median.
    TimesLessBeyondSync(f64),
    /// Fairway's figure alone.
    AtMost(f64),
}

struct Floor {
    what: &'static str,
    key: Key,
    unit: &'static str,
    rule: Rule,
}

const FLOORS: &[Floor] = &[
    Floor {
        what: "ready after start",
        key: ("ready", "wall"),
        unit: "ms",
        rule: Rule::TimesLess(40.0),
    },
    Floor {
        what: "idle memory",
        key: ("idle", "memory"),
        unit: "MiB",
        rule: Rule::TimesLess(10.0),
    },
    Floor {
        what: "CPU per create, 16 clients",
        key: ("create, 16 clients", "cpu"),
        unit: "ms",
        rule: Rule::TimesLess(8.0),
    },
    Floor {
        what: "CPU per GET, 16 clients",
        key: ("GET, 16 clients", "cpu"),
        unit: "ms",
        rule: Rule::TimesLess(8.0),
    },
    Floor {
        what: "CPU per apply that creates",
        key: ("apply, create, 16 clients", "cpu"),
        unit: "ms",
        rule: Rule::TimesLess(6.0),
    },
    Floor {
        what: "CPU per apply that updates",
        key: ("apply, update, 16 clients", "cpu"),
        unit: "ms",
        rule: Rule::TimesLess(6.0),
    },
    Floor {
        what: "CPU per LIST of 10,000",
        key: ("LIST 10,000", "cpu"),
        unit: "ms",
        rule: Rule::TimesLess(20.0),
    },
    Floor {
        what: "CPU per LIST of 10,000, gzip",
        key: ("LIST 10,000, gzip", "cpu"),
        unit: "ms",
        rule: Rule::TimesLess(20.0),
    },
    Floor {
        what: "create to watch, p50, beyond fdatasync",
        key: ("watch, 1 writer", "p50"),
        unit: "ms",
        rule: Rule::TimesLessBeyondSync(3.0),
    },
    Floor {
        what: "50 CRDs until established",
        key: ("50 CRDs, established", "wall"),
        unit: "ms",
        rule: Rule::TimesLess(3.0),
    },
    Floor {
        what: "memory per CRD",
        key: ("50 CRDs", "kilobytes each"),
        unit: "KiB",
        rule: Rule::AtMost(100.0),
    },
];

pub(super) fn table(rounds: &Rounds) -> String {
    let mut text = String::from(
        "\n## Floors\n\n| what | Fairway | peer | ratio | floor | met |\n|---|---|---|---|---|---|\n",
    );
    let sync = over_rounds(&rounds.ceilings, ("fdatasync", "p50")).unwrap_or_default();
    for floor in FLOORS {
        let verdict = judge(floor, &rounds.fairway, &rounds.peer, sync);
        let bound = match floor.rule {
            Rule::TimesLess(times) | Rule::TimesLessBeyondSync(times) => format!("{times:.0} times less"),
            Rule::AtMost(limit) => format!("at most {limit:.0} {}", floor.unit),
        };
        let met = match verdict.met {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "not measured",
        };
        let (unit, ours, theirs) = (floor.unit, number(verdict.ours), number(verdict.theirs));
        let ratio = number(ratio(verdict.theirs, verdict.ours));
        let _ = writeln!(
            text,
            "| {} | {ours} {unit} | {theirs} {unit} | {ratio} | {bound} | {met} |",
            floor.what
        );
    }
    text
}

struct Verdict {
    ours: Option<f64>,
    theirs: Option<f64>,
    met: Option<bool>,
}

fn judge(floor: &Floor, fairway: &[Figures], peer: &[Figures], sync: f64) -> Verdict {
    let unavoidable = if matches!(floor.rule, Rule::TimesLessBeyondSync(_)) {
        sync
    } else {
        0.0
    };
    let beyond = |value: f64| (value - unavoidable).max(0.0);
    let ours = over_rounds(fairway, floor.key).map(beyond);
    let theirs = over_rounds(peer, floor.key).map(beyond);
    let met = match floor.rule {
        Rule::AtMost(limit) => ours.map(|ours| ours <= limit),
        Rule::TimesLess(times) | Rule::TimesLessBeyondSync(times) => {
            ours.zip(theirs).map(|(ours, theirs)| ours * times <= theirs)
        }
    };
    Verdict { ours, theirs, met }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(key: Key, value: f64) -> Vec<Figures> {
        let mut figures = Figures::default();
        figures.set(key.0, key.1, value);
        vec![figures]
    }

    #[test]
    fn floors_are_judged_by_their_rule() {
        const KEY: Key = ("x", "y");
        let cases = [
            ("just met", Rule::TimesLess(8.0), 1.0, 8.0, Some(true)),
            ("just missed", Rule::TimesLess(8.0), 1.0, 7.9, Some(false)),
            (
                "met beyond the sync",
                Rule::TimesLessBeyondSync(3.0),
                0.7,
                2.0,
                Some(true),
            ),
            (
                "missed beyond the sync",
                Rule::TimesLessBeyondSync(3.0),
                1.1,
                2.0,
                Some(false),
            ),
            (
                "faster than one sync",
                Rule::TimesLessBeyondSync(3.0),
                0.4,
                0.6,
                Some(true),
            ),
            (
                "a limit ignores the peer",
                Rule::AtMost(100.0),
                99.0,
                1.0,
                Some(true),
            ),
            (
                "a limit exceeded",
                Rule::AtMost(100.0),
                101.0,
                1000.0,
                Some(false),
            ),
        ];
        for (why, rule, ours, theirs, expected) in cases {
            let floor = Floor {
                what: "",
                key: KEY,
                unit: "",
                rule,
            };
            assert_eq!(
                judge(&floor, &round(KEY, ours), &round(KEY, theirs), 0.5).met,
                expected,
                "{why}"
            );
        }
        let floor = Floor {
            what: "",
            key: KEY,
            unit: "",
            rule: Rule::TimesLess(8.0),
        };
        assert_eq!(
            judge(&floor, &round(KEY, 1.0), &[], 0.5).met,
            None,
            "nothing to compare with"
        );
    }
}
