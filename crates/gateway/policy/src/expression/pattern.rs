//! Conditions: patterns (selector, operator, value), CEL predicates, references to named patterns, and all or any of them.

use std::collections::{BTreeMap, BTreeSet};

use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::Value as Json;

use super::selector::{Selector, as_text};
use super::shown::with;
use super::{Cel, CompileError, EvalError, Facts};

/// How deep `all` and `any` may nest.
const MAX_DEPTH: usize = 16;
/// The most memory that a compiled pattern takes.
const REGEX_SIZE: usize = 1 << 20;

/// Something that is true of a request, or not.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    Cel(Cel),
    Pattern(Pattern),
    /// None at all is true.
    All(Vec<Predicate>),
    /// None at all is false.
    Any(Vec<Predicate>),
}

/// A selected value compared with a fixed one.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    selector: Selector,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Equal(String),
    NotEqual(String),
    Includes(String),
    Excludes(String),
    Matches(Regex),
}

impl PartialEq for Test {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Test::Equal(a), Test::Equal(b))
            | (Test::NotEqual(a), Test::NotEqual(b))
            | (Test::Includes(a), Test::Includes(b))
            | (Test::Excludes(a), Test::Excludes(b)) => a == b,
            (Test::Matches(a), Test::Matches(b)) => a.as_str() == b.as_str(),
            _ => false,
        }
    }
}

/// A condition as manifests write it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConditionSpec {
    selector: Option<String>,
    operator: Option<String>,
    value: Option<String>,
    pattern_ref: Option<String>,
    predicate: Option<String>,
    all: Vec<ConditionSpec>,
    any: Vec<ConditionSpec>,
}

/// Named patterns (`spec.patterns`).
pub type Named = BTreeMap<String, Vec<ConditionSpec>>;

impl Predicate {
    /// All of a list of conditions; an empty list is always true.
    pub fn compile(conditions: &[ConditionSpec], named: &Named) -> Result<Predicate, CompileError> {
        Self::all(conditions, named, MAX_DEPTH)
    }

    fn all(conditions: &[ConditionSpec], named: &Named, depth: usize) -> Result<Predicate, CompileError> {
        let mut each = Vec::with_capacity(conditions.len());
        for condition in conditions {
            each.push(Self::one(condition, named, depth)?);
        }
        Ok(match (each.len(), each.pop()) {
            (1, Some(only)) => only,
            (_, last) => Predicate::All(each.into_iter().chain(last).collect()),
        })
    }

    fn one(condition: &ConditionSpec, named: &Named, depth: usize) -> Result<Predicate, CompileError> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(CompileError::Other(format!(
                "conditions are nested deeper than {MAX_DEPTH}, or refer to themselves"
            )));
        };
        if let Some(name) = &condition.pattern_ref {
            let patterns = named
                .get(name)
                .ok_or_else(|| CompileError::Other(format!("there are no patterns named {name:?}")))?;
            return Self::all(patterns, named, depth);
        }
        if let Some(predicate) = condition.predicate.as_deref().filter(|text| !text.is_empty()) {
            return Ok(Predicate::Cel(Cel::predicate(predicate)?));
        }
        if !condition.all.is_empty() {
            return Self::all(&condition.all, named, depth);
        }
        if !condition.any.is_empty() {
            let each: Result<Vec<_>, _> = condition
                .any
                .iter()
                .map(|one| Self::one(one, named, depth))
                .collect();
            return Ok(Predicate::Any(each?));
        }
        Ok(Predicate::Pattern(Pattern::compile(condition)?))
    }

    /// Whether nothing is asked for.
    pub fn is_always(&self) -> bool {
        matches!(self, Predicate::All(none) if none.is_empty())
    }

    /// Notes what it asks of authentication: `auth.identity` and the like.
    pub fn asks_of_auth(&self, found: &mut BTreeSet<&'static str>) {
        match self {
            Predicate::Cel(cel) => found.extend(cel.asks_of_auth()),
            Predicate::Pattern(pattern) => found.extend(pattern.selector.of_auth()),
            Predicate::All(each) | Predicate::Any(each) => {
                each.iter().for_each(|one| one.asks_of_auth(found));
            }
        }
    }

    /// Whether it is true of a request.
    pub fn test(&self, facts: &Facts<'_>) -> Result<bool, EvalError> {
        match self {
            Predicate::Cel(cel) => cel.test(facts),
            Predicate::Pattern(pattern) => Ok(pattern.test(facts)),
            Predicate::All(each) => {
                for one in each {
                    if !one.test(facts)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Predicate::Any(each) => {
                for one in each {
                    if one.test(facts)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// What it looked at, for `explain`.
    pub fn describe(&self, facts: &Facts<'_>) -> String {
        let list = |each: &[Predicate], word: &str| {
            let texts: Vec<String> = each.iter().map(|one| one.describe(facts)).collect();
            format!("({})", texts.join(word))
        };
        match self {
            Predicate::Cel(cel) => {
                let outcome = match cel.test(facts) {
                    Ok(value) => format!("{} is {value}", cel.source()),
                    Err(error) => format!("{} fails: {}", cel.source(), error.why),
                };
                with(outcome, &cel.read(facts).0)
            }
            Predicate::Pattern(pattern) => pattern.describe(facts),
            Predicate::All(each) => list(each, " and "),
            Predicate::Any(each) => list(each, " or "),
        }
    }
}

impl Pattern {
    fn compile(condition: &ConditionSpec) -> Result<Pattern, CompileError> {
        let missing = || CompileError::Other("a condition has neither predicate nor selector".to_owned());
        let selector = condition.selector.as_deref().ok_or_else(missing)?;
        let value = condition.value.clone().unwrap_or_default();
        let test = match condition.operator.as_deref() {
            Some("eq") => Test::Equal(value),
            Some("neq") => Test::NotEqual(value),
            Some("incl") => Test::Includes(value),
            Some("excl") => Test::Excludes(value),
            Some("matches") => {
                let compiled = RegexBuilder::new(&value).size_limit(REGEX_SIZE).build();
                Test::Matches(compiled.map_err(|error| {
                    CompileError::Other(format!("{value:?} is not a regular expression: {error}"))
                })?)
            }
            other => {
                return Err(CompileError::Other(format!(
                    "operator {:?} is none of eq, neq, incl, excl, matches",
                    other.unwrap_or("")
                )));
            }
        };
        Ok(Pattern {
            selector: Selector::compile(selector)?,
            test,
        })
    }

    fn test(&self, facts: &Facts<'_>) -> bool {
        let found = facts.select(&self.selector);
        let text = || found.as_ref().map_or(std::borrow::Cow::Borrowed(""), as_text);
        let includes = |value: &str| match &found {
            Some(Json::Array(items)) => items.iter().any(|item| as_text(item) == value),
            None | Some(Json::Null) => false,
            Some(one) => as_text(one) == value,
        };
        match &self.test {
            Test::Equal(value) => text() == value.as_str(),
            Test::NotEqual(value) => text() != value.as_str(),
            Test::Includes(value) => includes(value),
            Test::Excludes(value) => !includes(value),
            Test::Matches(regex) => regex.is_match(&text()),
        }
    }

    fn describe(&self, facts: &Facts<'_>) -> String {
        let found = facts.select(&self.selector).unwrap_or(Json::Null);
        let (word, value) = match &self.test {
            Test::Equal(value) => ("eq", value.as_str()),
            Test::NotEqual(value) => ("neq", value.as_str()),
            Test::Includes(value) => ("incl", value.as_str()),
            Test::Excludes(value) => ("excl", value.as_str()),
            Test::Matches(regex) => ("matches", regex.as_str()),
        };
        let (shown, _) = self.selector.shown(facts, &found);
        format!(
            "{} ({shown}) {word} {value:?} is {}",
            self.selector.source(),
            self.test(facts)
        )
    }
}
