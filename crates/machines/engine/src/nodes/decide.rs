//! What is said of a node, and whether its machines are let go: a pure decision.

use std::time::Duration;

use k8s_openapi::api::core::v1::{NodeCondition, Taint};

use super::Patience;
use crate::schedule::node::{NOT_READY, UNREACHABLE};

/// An operator says that nothing runs on a node any more.
pub(crate) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Effects of the taints of a node that is not well.
const EFFECTS: [&str; 2] = ["NoSchedule", "NoExecute"];

/// What is known of a node.
#[derive(Clone, Debug)]
pub(super) struct Observed<'o> {
    /// Its condition `Ready`.
    pub(super) ready: Option<&'o NodeCondition>,
    /// An operator says that nothing runs there any more.
    pub(super) told: bool,
    /// What keeps machines away.
    pub(super) taints: &'o [Taint],
    /// After so many seconds without a renewed lease its machines have ended; nothing if it cannot promise that.
    pub(super) fence: Option<u64>,
    /// How long it has been silent.
    pub(super) silence: Duration,
    /// There are machines on it.
    pub(super) has_machines: bool,
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Decision {
    /// It counts as lost.
    pub(super) lost: bool,
    /// Nobody knows how it is: to be said.
    pub(super) unknown: bool,
    /// Its taints, if they are to be others.
    pub(super) taints: Option<Vec<(String, String)>>,
    /// Its machines are let go.
    pub(super) release: bool,
    /// Look again then.
    pub(super) look_again: Option<Duration>,
}

/// Whether an operator says that nothing runs on a node any more.
pub(super) fn is_given_up(taints: &[Taint]) -> bool {
    taints.iter().any(|it| it.key == OUT_OF_SERVICE)
}

/// Decides about a node.
pub(super) fn decide(observed: &Observed<'_>, patience: Patience) -> Decision {
    let silence = observed.silence;
    let lost = silence >= patience.grace;
    let ready = observed.ready.map(|it| it.status.as_str());
    let unknown = lost && ready != Some("Unknown");
    // A node that was heard of again says itself how it is.
    let sign = match (lost || ready == Some("Unknown"), ready) {
        (true, _) => Some(UNREACHABLE),
        (false, Some("False")) => Some(NOT_READY),
        _ => None,
    };
    let promised = observed
        .fence
        .map(|it| Duration::from_secs(it).max(patience.grace) + patience.margin);
    let ended = lost && (observed.told || promised.is_some_and(|it| silence >= it));
    let next = match (lost, promised) {
        (false, _) => Some(patience.grace - silence),
        (true, Some(promised)) if !ended => Some(promised - silence),
        _ => None,
    };
    Decision {
        lost,
        unknown,
        taints: taints(observed.taints, sign),
        release: ended && observed.has_machines,
        look_again: next,
    }
}

/// Key and effect of all taints, if those that tell how a node is must change.
fn taints(before: &[Taint], sign: Option<&str>) -> Option<Vec<(String, String)>> {
    let pair = |key: &str, effect: &str| (key.to_owned(), effect.to_owned());
    let ours = |it: &&Taint| [NOT_READY, UNREACHABLE].contains(&it.key.as_str());
    let mut there: Vec<(String, String)> = before
        .iter()
        .filter(ours)
        .map(|it| pair(&it.key, &it.effect))
        .collect();
    let mut wanted: Vec<(String, String)> = sign
        .into_iter()
        .flat_map(|key| EFFECTS.map(|effect| pair(key, effect)))
        .collect();
    there.sort();
    wanted.sort();
    (there != wanted).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node: how it is, its taints, its promise, how long it has been silent.
    struct Case(
        &'static str,
        Option<&'static str>,
        &'static [&'static str],
        Option<u64>,
        u64,
        &'static str,
    );

    fn shown(decision: &Decision) -> String {
        let mut words = Vec::new();
        if decision.lost {
            words.push("lost".to_owned());
        }
        if decision.unknown {
            words.push("unknown".to_owned());
        }
        if let Some(taints) = &decision.taints {
            let taints: Vec<String> = taints
                .iter()
                .map(|(key, effect)| format!("{}:{effect}", key.rsplit('/').next().unwrap_or_default()))
                .collect();
            words.push(format!("taints [{}]", taints.join(" ")));
        }
        if decision.release {
            words.push("release".to_owned());
        }
        if let Some(after) = decision.look_again {
            words.push(format!("again in {}", after.as_secs()));
        }
        words.join(", ")
    }

    #[test]
    fn what_becomes_of_a_node_and_its_machines() {
        const GONE: &[&str] = &[
            "node.kubernetes.io/unreachable:NoSchedule",
            "node.kubernetes.io/unreachable:NoExecute",
        ];
        const TOLD: &[&str] = &[
            "node.kubernetes.io/unreachable:NoSchedule",
            "node.kubernetes.io/unreachable:NoExecute",
            "node.kubernetes.io/out-of-service:NoExecute",
        ];
        const ALIVE_AND_TOLD: &[&str] = &["node.kubernetes.io/out-of-service:NoExecute"];
        let cases = [
            Case("well", Some("True"), &[], Some(40), 12, "again in 28"),
            Case(
                "not ready",
                Some("False"),
                &[],
                Some(40),
                12,
                "taints [not-ready:NoExecute not-ready:NoSchedule], again in 28",
            ),
            Case(
                "other taints stay",
                Some("True"),
                &["gpu:NoSchedule"],
                None,
                0,
                "again in 40",
            ),
            Case(
                "silent for too long",
                Some("True"),
                &[],
                Some(40),
                40,
                "lost, unknown, taints [unreachable:NoExecute unreachable:NoSchedule], again in 15",
            ),
            Case(
                "its machines may still run",
                Some("Unknown"),
                GONE,
                Some(40),
                54,
                "lost, again in 1",
            ),
            Case(
                "its machines have ended",
                Some("Unknown"),
                GONE,
                Some(40),
                55,
                "lost, release",
            ),
            Case(
                "a longer promise",
                Some("Unknown"),
                GONE,
                Some(100),
                60,
                "lost, again in 55",
            ),
            Case(
                "a promise that is shorter than the grace",
                Some("Unknown"),
                GONE,
                Some(1),
                41,
                "lost, again in 14",
            ),
            Case("no promise", Some("Unknown"), GONE, None, 100_000, "lost"),
            Case(
                "an operator says so",
                Some("Unknown"),
                TOLD,
                None,
                41,
                "lost, release",
            ),
            Case(
                "but it is there",
                Some("True"),
                ALIVE_AND_TOLD,
                Some(40),
                12,
                "again in 28",
            ),
            Case(
                "heard of again, and silent about itself",
                Some("Unknown"),
                GONE,
                Some(40),
                3,
                "again in 37",
            ),
            Case(
                "heard of again, and well",
                Some("True"),
                GONE,
                Some(40),
                3,
                "taints [], again in 37",
            ),
            Case(
                "never said how it is",
                None,
                &[],
                None,
                50,
                "lost, unknown, taints [unreachable:NoExecute unreachable:NoSchedule]",
            ),
        ];
        for Case(name, ready, taints, fence, silence, expected) in cases {
            let ready = ready.map(|status| NodeCondition {
                type_: "Ready".to_owned(),
                status: status.to_owned(),
                ..NodeCondition::default()
            });
            let taints: Vec<Taint> = taints
                .iter()
                .map(|it| {
                    let (key, effect) = it.split_once(':').unwrap();
                    Taint {
                        key: key.to_owned(),
                        effect: effect.to_owned(),
                        ..Taint::default()
                    }
                })
                .collect();
            let observed = Observed {
                told: is_given_up(&taints),
                ready: ready.as_ref(),
                taints: &taints,
                fence,
                silence: Duration::from_secs(silence),
                has_machines: true,
            };
            assert_eq!(shown(&decide(&observed, Patience::default())), expected, "{name}");
        }
    }
}
