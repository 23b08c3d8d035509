//! Differences that do not count, because somebody said so: in the Application or for a whole kind.

use fairway_gitops_health::{Customizations, IgnoreDiff};
use fairway_text_glob::matches;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::jq::{Expression, JqError, Step, remove};
use super::managed;
use crate::key;

/// An entry of `spec.ignoreDifferences`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceIgnoreDifferences {
    /// The group; patterns are allowed.
    pub group: String,
    /// The kind; patterns are allowed.
    pub kind: String,
    /// The name; any if empty.
    pub name: String,
    /// The namespace; any if empty.
    pub namespace: String,
    /// RFC 6901 pointers.
    pub json_pointers: Vec<String>,
    /// jq paths.
    pub jq_path_expressions: Vec<String>,
    /// Whoever owns a field.
    pub managed_fields_managers: Vec<String>,
}

/// Which objects' `status` does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IgnoreStatus {
    /// That of all.
    #[default]
    All,
    /// That of definitions of kinds.
    Definitions,
    /// Nobody's.
    None,
}

/// Everything that is ignored, ready for use.
#[derive(Debug, Clone, Default)]
pub struct Ignored(Vec<Rule>);

#[derive(Debug, Clone)]
struct Rule {
    group: String,
    kind: String,
    name: String,
    namespace: String,
    pointers: Vec<Vec<String>>,
    expressions: Vec<Expression>,
    managers: Vec<String>,
}

/// An entry that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreError {
    /// A pointer is none.
    #[error("ignoreDifferences: {0:?} is no JSON pointer; it begins with a slash")]
    Pointer(String),
    /// An expression is none.
    #[error("ignoreDifferences: {0}")]
    Expression(#[from] JqError),
}

impl Ignored {
    /// What an Application ignores and what is ignored for kinds, without the kinds' `status` unless asked for.
    pub fn new(
        entries: &[ResourceIgnoreDifferences],
        customizations: &Customizations,
        status: IgnoreStatus,
    ) -> Result<Self, IgnoreError> {
        let mut rules = Vec::new();
        for entry in entries {
            let parts = (
                &entry.json_pointers,
                &entry.jq_path_expressions,
                &entry.managed_fields_managers,
            );
            let place = [&entry.group, &entry.kind, &entry.name, &entry.namespace].map(String::as_str);
            rules.push(Rule::new(place, parts)?);
        }
        for (pattern, customization) in customizations.iter() {
            let IgnoreDiff {
                json_pointers,
                jq_path_expressions,
                managed_fields_managers,
            } = &customization.ignore_differences;
            // `Kind` is one of the core group, `*/*` are all.
            let (group, kind) = pattern.split_once('/').unwrap_or(("", pattern));
            let parts = (json_pointers, jq_path_expressions, managed_fields_managers);
            rules.push(Rule::new([group, kind, "", ""], parts)?);
        }
        let status_of = match status {
            IgnoreStatus::All => Some(["*", "*", "", ""]),
            IgnoreStatus::Definitions => Some(["apiextensions.k8s.io", "CustomResourceDefinition", "", ""]),
            IgnoreStatus::None => None,
        };
        if let Some(place) = status_of {
            rules.push(Rule::new(
                place,
                (&vec!["/status".to_owned()], &Vec::new(), &Vec::new()),
            )?);
        }
        Ok(Self(rules))
    }

    /// Takes out of an object, and out of its counterpart, what is ignored.
    pub fn apply(&self, mut target: Option<&mut Value>, mut live: Option<&mut Value>) {
        for rule in &self.0 {
            let about = target.as_deref().or(live.as_deref());
            if !about.is_some_and(|object| rule.is_about(object)) {
                continue;
            }
            if let (Some(target), Some(live)) = (target.as_deref_mut(), live.as_deref_mut()) {
                managed::ignore_owned(target, live, &rule.managers);
            }
            for object in [target.as_deref_mut(), live.as_deref_mut()].into_iter().flatten() {
                rule.strip(object);
            }
        }
    }

    /// A target for a sync that respects what is ignored (`RespectIgnoreDifferences`): in those fields it is as the live
    /// object is.
    pub fn respect(&self, target: &Value, live: &Value) -> Value {
        let (mut stripped_target, mut stripped_live) = (target.clone(), live.clone());
        self.apply(Some(&mut stripped_target), Some(&mut stripped_live));
        let mut respected = restore(&stripped_target, &stripped_live, live);
        // What the cluster says of an object is nothing to apply.
        if let Some(fields) = respected
            .as_object_mut()
            .filter(|_| target.get("status").is_none())
        {
            fields.shift_remove("status");
        }
        respected
    }
}

/// The stripped target, with what was stripped from the live object put back in.
fn restore(target: &Value, stripped: &Value, live: &Value) -> Value {
    match (target, stripped, live) {
        (Value::Object(target), Value::Object(stripped), Value::Object(live)) => {
            let mut out = target.clone();
            for (name, value) in live {
                match (target.get(name), stripped.get(name)) {
                    (None, None) => {
                        out.insert(name.clone(), value.clone());
                    }
                    (Some(target), Some(stripped)) => {
                        out.insert(name.clone(), restore(target, stripped, value));
                    }
                    _ => {}
                }
            }
            Value::Object(out)
        }
        // Elements that were stripped cannot be placed in a list of another length.
        (Value::Array(target), Value::Array(stripped), Value::Array(live))
            if stripped.len() == live.len() && target.len() == live.len() =>
        {
            let items = target.iter().zip(stripped).zip(live);
            Value::Array(
                items
                    .map(|((target, stripped), live)| restore(target, stripped, live))
                    .collect(),
            )
        }
        (target, ..) => target.clone(),
    }
}

type Parts<'a> = (&'a Vec<String>, &'a Vec<String>, &'a Vec<String>);

impl Rule {
    fn new(
        [group, kind, name, namespace]: [&str; 4],
        (pointers, expressions, managers): Parts<'_>,
    ) -> Result<Self, IgnoreError> {
        Ok(Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            pointers: pointers
                .iter()
                .map(|text| pointer(text))
                .collect::<Result<_, _>>()?,
            expressions: expressions
                .iter()
                .map(|text| Expression::parse(text))
                .collect::<Result<_, _>>()?,
            managers: managers.clone(),
        })
    }

    fn is_about(&self, object: &Value) -> bool {
        let any_or = |wanted: &str, own: &str| wanted.is_empty() || wanted == own;
        matches(&self.group, key::group(object))
            && matches(&self.kind, key::kind(object))
            && any_or(&self.name, key::name(object))
            && any_or(&self.namespace, key::namespace(object))
    }

    fn strip(&self, object: &mut Value) {
        for pointer in &self.pointers {
            let mut steps = Vec::with_capacity(pointer.len());
            let mut place = &*object;
            for token in pointer {
                let (step, next) = match place {
                    Value::Array(items) => match token.parse::<usize>() {
                        Ok(index) => (Step::Index(index), items.get(index)),
                        Err(_) => break,
                    },
                    other => (Step::Field(token.clone()), other.get(token)),
                };
                steps.push(step);
                match next {
                    Some(next) => place = next,
                    None => break,
                }
            }
            if steps.len() == pointer.len() {
                remove(object, &steps);
            }
        }
        for expression in &self.expressions {
            // An expression that does not fit this object has nothing to say about it.
            let _ = expression.remove(object);
        }
    }
}

fn pointer(text: &str) -> Result<Vec<String>, IgnoreError> {
    let Some(rest) = text.strip_prefix('/') else {
        return Err(IgnoreError::Pointer(text.to_owned()));
    };
    Ok(rest
        .split('/')
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect())
}
