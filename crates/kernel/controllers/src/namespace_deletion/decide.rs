//! What the state of a namespace's content means for the namespace.

use std::collections::BTreeMap;

use fairway_controller::conditions::{Condition, Truth};

/// What was found of one kind after deletion was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remains {
    /// `plural.group`.
    pub(crate) resource: String,
    /// How many objects are left.
    pub(crate) count: usize,
    /// Finalizers, and how many objects each holds.
    pub(crate) finalizers: BTreeMap<String, usize>,
}

/// What was found of the whole content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Why the kinds could not be listed at all.
    pub(crate) blind: Option<String>,
    /// Group-versions whose kinds are unknown.
    pub(crate) undiscovered: Vec<String>,
    /// Why deletions failed.
    pub(crate) failures: Vec<String>,
    /// Kinds with objects left.
    pub(crate) remains: Vec<Remains>,
}

impl Survey {
    pub(crate) fn blind(why: String) -> Self {
        Self {
            blind: Some(why),
            ..Self::default()
        }
    }

    /// Whether, of what was looked at, nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.failures.is_empty() && self.remains.is_empty()
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The content is gone: let the namespace go.
    Finalize,
    /// Others must act first.
    Wait(String),
    /// Something failed.
    Retry(Vec<String>),
}

/// The conditions, in full, and the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) conditions: Vec<Condition>,
    pub(super) step: Step,
}

/// Conditions and reasons are upstream's, since people and scripts look for them.
pub(super) fn decide(survey: &Survey) -> Verdict {
    let discovery = match (&survey.blind, &*survey.undiscovered) {
        (Some(why), _) => Some(why.clone()),
        (None, []) => None,
        (None, groups) => Some(format!(
            "Discovery failed for some groups, {} failing: {}",
            groups.len(),
            groups.join(", ")
        )),
    };
    let failures = sorted(survey.failures.iter().cloned());
    let content = (!failures.is_empty()).then(|| {
        format!(
            "Failed to delete all resource types, {} remaining: {}",
            failures.len(),
            failures.join(", ")
        )
    });
    let counts = sorted(
        survey
            .remains
            .iter()
            .map(|r| format!("{} has {} resource instances", r.resource, r.count)),
    );
    let remaining =
        (!counts.is_empty()).then(|| format!("Some resources are remaining: {}", counts.join(", ")));
    let mut holders: BTreeMap<&str, usize> = BTreeMap::new();
    for (finalizer, count) in survey.remains.iter().flat_map(|r| &r.finalizers) {
        *holders.entry(finalizer).or_default() += count;
    }
    let held = (!holders.is_empty()).then(|| {
        let list: Vec<String> = holders
            .iter()
            .map(|(f, n)| format!("{f} in {n} resource instances"))
            .collect();
        format!(
            "Some content in the namespace has finalizers remaining: {}",
            list.join(", ")
        )
    });
    let step = if let Some(why) = &discovery {
        Step::Retry([vec![why.clone()], failures].concat())
    } else if !failures.is_empty() {
        Step::Retry(failures)
    } else if let Some(why) = held.as_ref().or(remaining.as_ref()) {
        Step::Wait(why.clone())
    } else {
        Step::Finalize
    };
    let conditions = vec![
        condition(
            "NamespaceDeletionDiscoveryFailure",
            discovery,
            "DiscoveryFailed",
            ("ResourcesDiscovered", "All resources successfully discovered"),
        ),
        condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            None,
            "GroupVersionParsingFailed",
            ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
        ),
        condition(
            "NamespaceDeletionContentFailure",
            content,
            "ContentDeletionFailed",
            (
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
        ),
        condition(
            "NamespaceContentRemaining",
            remaining,
            "SomeResourcesRemain",
            ("ContentRemoved", "All content successfully removed"),
        ),
        condition(
            "NamespaceFinalizersRemaining",
            held,
            "SomeFinalizersRemain",
            (
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
        ),
    ];
    Verdict { conditions, step }
}

fn condition(kind: &str, problem: Option<String>, bad: &str, good: (&str, &str)) -> Condition {
    match problem {
        Some(message) => Condition::new(kind, Truth::True, bad, message),
        None => Condition::new(kind, Truth::False, good.0, good.1),
    }
}

fn sorted(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts
}

#[cfg(test)]
mod tests {
    use fairway_controller::conditions::Truth;

    use super::{Remains, Step, Survey, decide};

    fn remains(resource: &str, count: usize, finalizers: &[(&str, usize)]) -> Remains {
        Remains {
            resource: resource.to_owned(),
            count,
            finalizers: finalizers.iter().map(|(f, n)| ((*f).to_owned(), *n)).collect(),
        }
    }

    #[test]
    fn verdicts() {
        let waiting = "Some content in the namespace has finalizers remaining: a/x in 3 resource instances, b/y in 1 resource instances";
        for (name, survey, step, bad) in [
            ("empty", Survey::default(), Step::Finalize, vec![]),
            (
                "discovery fails",
                Survey::blind("down".to_owned()),
                Step::Retry(vec!["down".to_owned()]),
                vec![("NamespaceDeletionDiscoveryFailure", "down")],
            ),
            (
                "some groups are not known",
                Survey {
                    undiscovered: vec!["m/v1".to_owned()],
                    ..Survey::default()
                },
                Step::Retry(vec![
                    "Discovery failed for some groups, 1 failing: m/v1".to_owned(),
                ]),
                vec![(
                    "NamespaceDeletionDiscoveryFailure",
                    "Discovery failed for some groups, 1 failing: m/v1",
                )],
            ),
            (
                "deletions fail",
                Survey {
                    failures: vec!["b".to_owned(), "a".to_owned()],
                    ..Survey::default()
                },
                Step::Retry(vec!["a".to_owned(), "b".to_owned()]),
                vec![(
                    "NamespaceDeletionContentFailure",
                    "Failed to delete all resource types, 2 remaining: a, b",
                )],
            ),
            (
                "finalizers hold content",
                Survey {
                    remains: vec![
                        remains("pods.", 2, &[("a/x", 2)]),
                        remains("jobs.batch", 2, &[("b/y", 1), ("a/x", 1)]),
                    ],
                    ..Survey::default()
                },
                Step::Wait(waiting.to_owned()),
                vec![
                    (
                        "NamespaceContentRemaining",
                        "Some resources are remaining: jobs.batch has 2 resource instances, pods. has 2 resource instances",
                    ),
                    ("NamespaceFinalizersRemaining", waiting),
                ],
            ),
            (
                "content goes slowly",
                Survey {
                    remains: vec![remains("pods.", 1, &[])],
                    ..Survey::default()
                },
                Step::Wait("Some resources are remaining: pods. has 1 resource instances".to_owned()),
                vec![(
                    "NamespaceContentRemaining",
                    "Some resources are remaining: pods. has 1 resource instances",
                )],
            ),
        ] {
            let verdict = decide(&survey);
            assert_eq!(verdict.step, step, "{name}");
            assert_eq!(verdict.conditions.len(), 5, "{name}");
            let got: Vec<_> = verdict
                .conditions
                .iter()
                .filter(|c| c.status == Truth::True)
                .map(|c| (c.kind.as_str(), c.message.as_str()))
                .collect();
            assert_eq!(got, bad, "{name}");
        }
    }
}
