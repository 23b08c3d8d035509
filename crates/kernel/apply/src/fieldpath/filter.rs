//! Filters of sets: what a request may own.
//!
//! A write to a subresource resets the fields that it may not change, and must not own them either. Most resources
//! name what to leave out; some name, with wildcards, what to keep.

use super::{PathElement, Set};
use crate::fieldpath::set::Node;

/// Takes paths out of a set.
#[derive(Clone, Debug)]
pub enum Filter {
    /// Leaves these paths out, and all below them.
    Exclude(Set),
    /// Keeps what matches.
    Include(Matcher),
}

impl Filter {
    /// The filtered set.
    pub fn filter(&self, set: &Set) -> Set {
        match self {
            Self::Exclude(exclude) => set.recursive_difference(exclude),
            Self::Include(matcher) => matcher.keep(set),
        }
    }
}

/// A tree of patterns for paths.
#[derive(Clone, Debug, PartialEq)]
pub enum Matcher {
    /// Everything from here on.
    Any,
    /// What one of these matches; the first that does decides.
    Steps(Vec<(Step, Matcher)>),
}

/// A pattern for one path element.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Every element.
    Any,
    /// This element.
    Exactly(PathElement),
}

impl Matcher {
    /// Matches all paths that begin with these steps, and the paths that lead there.
    pub fn prefix(steps: impl IntoIterator<Item = Step, IntoIter: DoubleEndedIterator>) -> Self {
        steps
            .into_iter()
            .rev()
            .fold(Self::Any, |rest, step| Self::Steps(vec![(step, rest)]))
    }

    /// Matches what either does.
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => Self::Any,
            (Self::Steps(mut steps), Self::Steps(others)) => {
                for (step, rest) in others {
                    match steps.iter_mut().find(|(known, _)| *known == step) {
                        Some((_, known)) => *known = std::mem::replace(known, Self::Any).or(rest),
                        None => steps.push((step, rest)),
                    }
                }
                // Wildcards decide before anything else does.
                steps.sort_by_key(|(step, _)| *step != Step::Any);
                Self::Steps(steps)
            }
        }
    }

    fn keep(&self, set: &Set) -> Set {
        let Self::Steps(steps) = self else {
            return set.clone();
        };
        let nodes = set
            .nodes
            .iter()
            .filter_map(|node| {
                let (_, rest) = steps.iter().find(|(step, _)| match step {
                    Step::Any => true,
                    Step::Exactly(element) => *element == node.element,
                })?;
                let children = rest.keep(&node.children);
                (node.member || !children.is_empty()).then(|| Node {
                    element: node.element.clone(),
                    member: node.member,
                    children,
                })
            })
            .collect();
        Set { nodes }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(filter: &Filter, given: &serde_json::Value, kept: &serde_json::Value) {
        let set = Set::from_fields_v1(given).unwrap();
        assert_eq!(filter.filter(&set).to_fields_v1(), *kept);
    }

    #[test]
    fn exclusion_takes_whole_trees() {
        check(
            &Filter::Exclude(Set::from_paths(&[&["status"], &["metadata", "labels"]])),
            &json!({"f:status": {"f:a": {}}, "f:metadata": {"f:labels": {"f:x": {}}, "f:annotations": {}}, "f:spec": {}}),
            &json!({"f:metadata": {"f:annotations": {}}, "f:spec": {}}),
        );
    }

    #[test]
    fn inclusion_keeps_matches_and_what_leads_to_them() {
        let field = |name| Step::Exactly(PathElement::field(name));
        let matcher = Matcher::prefix([field("spec"), field("containers"), Step::Any, field("resources")])
            .or(Matcher::prefix([
                field("spec"),
                field("initContainers"),
                Step::Any,
                field("resources"),
            ]));
        check(
            &Filter::Include(matcher),
            &json!({"f:spec": {
                "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:resources": {"f:limits": {}}}},
                "f:initContainers": {"k:{\"name\":\"b\"}": {"f:image": {}}},
                "f:nodeName": {}
            }}),
            &json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:resources": {"f:limits": {}}}}}}),
        );
    }
}
