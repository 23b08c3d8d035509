//! Values against schemas: types, bounds, patterns, enumerations, junctors.
//!
//! The texts, the order of checks and the choice of the "best" failing alternative of `anyOf` and `oneOf` follow
//! upstream, because its messages are what people search for. On updates, errors in unchanged parts are dropped.

mod numbers;

use std::collections::HashSet;

use serde_json::{Map, Value};

use self::numbers::Number;
use super::canonical;
use super::correlate::Correlated;
use super::formats::Format;
use super::node::{Additional, Check, Flags, Node, Type};
use super::trail::{Step, Trail};
use crate::field::{FieldError, Path, quoted};

/// What came of validating one value against one node.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    /// How much matched; decides which failing alternative explains a failed `anyOf` best.
    matches: u32,
}

impl Outcome {
    fn merge(&mut self, mut other: Outcome) {
        self.matches = self.matches.saturating_add(other.matches);
        if self.errors.is_empty() {
            self.errors = other.errors;
        } else {
            self.errors.append(&mut other.errors);
        }
    }

    fn matched(&mut self) {
        self.matches = self.matches.saturating_add(1);
    }
}

/// One validation of one value.
pub(super) struct Validation<'p> {
    /// Where the value stands in the object, if it is not the object itself.
    prefix: &'p Path,
    /// How many more pairs of value and node may be looked at.
    steps: &'p mut u64,
}

impl<'p> Validation<'p> {
    pub(super) fn new(prefix: &'p Path, steps: &'p mut u64) -> Self {
        Self { prefix, steps }
    }

    /// All that is wrong with the value; `old` makes it an update.
    pub(super) fn run(&mut self, node: &Node, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let correlated = old.map(|old| Correlated {
            node,
            new: value,
            old,
        });
        let outcome = self.check(node, value, &Trail::ROOT, correlated);
        let mut errors = outcome.errors;
        if !errors.is_empty() && correlated.is_some_and(Correlated::is_unchanged) {
            errors.clear();
        }
        if errors.len() > 1 {
            // Alternatives repeat what others said.
            let mut seen = HashSet::new();
            errors.retain(|e| seen.insert((e.kind, e.path.clone(), e.detail.clone())));
        }
        if *self.steps == 0 {
            errors.push(FieldError::internal(
                self.prefix,
                "validation was stopped because the object and its schema are too large together",
            ));
        }
        errors
    }

    fn check(
        &mut self,
        node: &Node,
        value: &Value,
        trail: &Trail<'_>,
        old: Option<Correlated<'_>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if *self.steps == 0 {
            return outcome;
        }
        *self.steps -= 1;
        let typed = node.schema_type != Type::Any || node.has(Flags::INT_OR_STRING);
        if typed || (node.format != Format::None && !value.is_null()) {
            match self.check_type(node, value, trail) {
                Some(error) => outcome.errors.push(error),
                None => outcome.matched(),
            }
        }
        if value.is_null() {
            self.check_enum(node, value, trail, &mut outcome);
            return outcome;
        }
        if typed || node.format != Format::None {
            outcome.matched();
        }
        self.check_junctors(node, value, trail, &mut outcome);
        match value {
            Value::String(text) => self.check_string(node, text, trail, &mut outcome),
            Value::Number(number) => {
                numbers::check(self, node, Number::from(number), trail, &mut outcome);
                outcome.matched();
            }
            Value::Array(items) => self.check_array(node, items, trail, old, &mut outcome),
            _ => {}
        }
        self.check_enum(node, value, trail, &mut outcome);
        outcome.matched();
        if let Value::Object(object) = value {
            self.check_object(node, object, trail, old, &mut outcome);
            outcome.matched();
        }
        outcome.matched();
        outcome
    }

    fn path(&self, trail: &Trail<'_>) -> Path {
        let name = trail.dotted();
        if name.is_empty() {
            self.prefix.clone()
        } else {
            self.prefix.child(&name)
        }
    }

    /// An error whose text names the field once more.
    fn invalid(&self, trail: &Trail<'_>, value: impl Into<Value>, what: &str) -> FieldError {
        FieldError::invalid(
            &self.path(trail),
            value,
            format!("{} in body {what}", trail.dotted()),
        )
    }

    /// An error about the object as a whole.
    fn composite(&self, text: String) -> FieldError {
        FieldError::invalid(self.prefix, "", text)
    }

    /// A bound may be negative, in which case it is not worth showing.
    fn too_long(&self, trail: &Trail<'_>, max: i64) -> FieldError {
        let path = self.path(trail);
        match usize::try_from(max) {
            Ok(max) => FieldError::too_long(&path, max),
            Err(_) => FieldError {
                detail: "value is too long".to_owned(),
                ..FieldError::too_long(&path, 0)
            },
        }
    }

    fn too_many(&self, trail: &Trail<'_>, actual: usize, max: i64) -> FieldError {
        let path = self.path(trail);
        match usize::try_from(max) {
            Ok(max) => FieldError::too_many(&path, actual, max),
            Err(_) => FieldError {
                detail: "has too many items".to_owned(),
                ..FieldError::too_many(&path, actual, 0)
            },
        }
    }

    fn check_type(&self, node: &Node, value: &Value, trail: &Trail<'_>) -> Option<FieldError> {
        let integer_or_string = node.has(Flags::INT_OR_STRING);
        let allows = |wanted: Type| {
            if integer_or_string {
                matches!(wanted, Type::Integer | Type::String)
            } else {
                node.schema_type == wanted
            }
        };
        let typed = integer_or_string || node.schema_type != Type::Any;
        let (actual, actual_format) = match value {
            Value::Null => {
                let wrong = typed && !node.has(Flags::NULLABLE);
                return wrong.then(|| self.wrong_type(node, None, "null", trail));
            }
            Value::Bool(_) => (Type::Boolean, ""),
            Value::String(_) => (Type::String, ""),
            Value::Array(_) => (Type::Array, ""),
            Value::Object(_) => (Type::Object, ""),
            Value::Number(n) => match Number::from(n) {
                Number::Int(_) => (Type::Integer, "int64"),
                Number::Float(_) => (Type::Number, "float64"),
            },
        };
        let convertible = match (actual, value) {
            (Type::Number, Value::Number(n)) => allows(Type::Integer) && numbers::is_json_integer(n),
            (Type::Integer, _) => allows(Type::Number),
            _ => false,
        };
        let fits = allows(actual) || convertible;
        let textual = matches!(actual, Type::String | Type::Array);
        if node.format != Format::None {
            if !textual && !fits {
                return Some(self.wrong_type(node, Some(node.format.name()), actual_format, trail));
            }
            let numeric = allows(Type::Number) || allows(Type::Integer);
            if textual && !numeric && (actual == Type::String || !typed) {
                return None;
            }
        }
        (!fits).then(|| self.wrong_type(node, None, actual.name(), trail))
    }

    fn wrong_type(&self, node: &Node, expected: Option<&str>, actual: &str, trail: &Trail<'_>) -> FieldError {
        let expected = expected.unwrap_or(if node.has(Flags::INT_OR_STRING) {
            "integer,string"
        } else {
            node.schema_type.name()
        });
        let detail = format!(
            "{} in body must be of type {expected}: \"{actual}\"",
            trail.dotted()
        );
        FieldError::type_invalid(&self.path(trail), actual, detail)
    }

    fn check_string(&self, node: &Node, text: &str, trail: &Trail<'_>, outcome: &mut Outcome) {
        outcome.matched();
        // The count of characters is at most that of bytes and at least a quarter of it.
        let longer_than = |max: i64| text.len() as i64 > max && text.chars().count() as i64 > max;
        let shorter_than = |min: i64| (text.len() as i64) < min || (text.chars().count() as i64) < min;
        let error = node.checks.iter().find_map(|check| match check {
            Check::MaxLength(max) if longer_than(*max) => Some(self.too_long(trail, *max)),
            Check::MinLength(min) if shorter_than(*min) => {
                Some(self.invalid(trail, text, &format!("should be at least {min} chars long")))
            }
            Check::Pattern(pattern) => match pattern.is_match(text) {
                Ok(true) => None,
                Ok(false) => Some(self.invalid(trail, text, &format!("should match '{}'", pattern.source()))),
                Err(reason) => {
                    let what = format!(
                        "should match '{}, but pattern is invalid: {reason}'",
                        pattern.source()
                    );
                    Some(self.invalid(trail, text, &what))
                }
            },
            _ => None,
        });
        outcome.errors.extend(error);
        if node.format != Format::None && !node.format.is_numeric() {
            outcome.matched();
            if !node.format.accepts(text) {
                let detail = format!(
                    "{} in body must be of type {}: {}",
                    trail.dotted(),
                    node.format.name(),
                    quoted(text)
                );
                outcome
                    .errors
                    .push(FieldError::type_invalid(&self.path(trail), text, detail));
            }
        }
    }

    fn check_array(
        &mut self,
        node: &Node,
        items: &[Value],
        trail: &Trail<'_>,
        old: Option<Correlated<'_>>,
        outcome: &mut Outcome,
    ) {
        if let Some(child) = node.items() {
            let past = old.and_then(|old| Some((old.index()?, old.node.items()?)));
            for (i, item) in items.iter().enumerate() {
                let old = past.as_ref().and_then(|(index, node)| {
                    Some(Correlated {
                        node,
                        new: item,
                        old: index.get(item)?,
                    })
                });
                outcome.merge(self.check_child(child, item, &trail.then(Step::Index(i)), old));
            }
        }
        let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
        for check in &node.checks {
            match check {
                Check::MinItems(min) if size < *min => {
                    outcome.errors.push(self.invalid(
                        trail,
                        size,
                        &format!("should have at least {min} items"),
                    ));
                }
                Check::MaxItems(max) if size > *max => {
                    outcome.errors.push(self.too_many(trail, items.len(), *max));
                }
                Check::UniqueItems => {
                    let mut seen = HashSet::new();
                    if !items.iter().all(|item| seen.insert(canonical::text(item))) {
                        outcome
                            .errors
                            .push(self.invalid(trail, "", "shouldn't contain duplicates"));
                    }
                }
                _ => {}
            }
        }
        outcome.matched();
        outcome.matched();
    }

    /// A value inside of the one at hand: its errors do not count if it did not change.
    fn check_child(
        &mut self,
        node: &Node,
        value: &Value,
        trail: &Trail<'_>,
        old: Option<Correlated<'_>>,
    ) -> Outcome {
        let mut outcome = self.check(node, value, trail, old);
        if !outcome.errors.is_empty() && old.is_some_and(Correlated::is_unchanged) {
            outcome.errors.clear();
        }
        outcome
    }

    fn check_object(
        &mut self,
        node: &Node,
        object: &Map<String, Value>,
        trail: &Trail<'_>,
        old: Option<Correlated<'_>>,
        outcome: &mut Outcome,
    ) {
        let size = i64::try_from(object.len()).unwrap_or(i64::MAX);
        for check in &node.checks {
            match check {
                Check::MinProperties(min) if size < *min => {
                    let what = format!("should have at least {min} properties");
                    outcome.errors.push(self.invalid(trail, size, &what));
                }
                Check::MaxProperties(max) if size > *max => {
                    outcome.errors.push(self.too_many(trail, object.len(), *max));
                }
                _ => {}
            }
        }
        if let Some(children) = &node.children {
            for (name, value) in object {
                let child = match node.property(name) {
                    Some(child) => child,
                    None => match &children.additional {
                        Additional::Schema(child) => child,
                        Additional::Forbidden => {
                            let dotted = trail.dotted();
                            let detail = format!("{dotted}.{name} in body is a forbidden property");
                            outcome.errors.push(FieldError::invalid(
                                &self.path(trail),
                                name.as_str(),
                                detail,
                            ));
                            continue;
                        }
                        Additional::Unset | Additional::Allowed => continue,
                    },
                };
                // The version of an object does not show in the object that was stored.
                let type_meta = trail.is_root() && (name == "kind" || name == "apiVersion");
                let old = if type_meta {
                    None
                } else {
                    old.and_then(|old| old.key(name))
                };
                outcome.merge(self.check_child(child, value, &trail.then(Step::Field(name)), old));
            }
        }
        for check in &node.checks {
            if let Check::Required(names) = check {
                for name in names.iter().filter(|name| !object.contains_key(&***name)) {
                    let path = self.path(&trail.then(Step::Field(name)));
                    outcome.errors.push(FieldError::required(&path, ""));
                }
            }
        }
    }

    fn check_enum(&self, node: &Node, value: &Value, trail: &Trail<'_>, outcome: &mut Outcome) {
        for check in &node.checks {
            let Check::Enum(values) = check else { continue };
            if !value.is_null() && values.iter().any(|allowed| numbers::equal(allowed, value)) {
                continue;
            }
            let texts: Vec<String> = values
                .iter()
                .map(|v| {
                    v.as_str()
                        .map_or_else(|| canonical::shown(v).to_string(), str::to_owned)
                })
                .collect();
            outcome.errors.push(FieldError::not_supported_in_order(
                &self.path(trail),
                canonical::shown(value),
                texts.iter().map(String::as_str),
            ));
        }
    }

    /// Junctors judge the value as a whole: there is no excuse for parts of it that did not change.
    fn check_junctors(&mut self, node: &Node, value: &Value, trail: &Trail<'_>, outcome: &mut Outcome) {
        for check in &node.checks {
            match check {
                Check::AnyOf(alternatives) => self.any_of(alternatives, value, trail, outcome),
                Check::OneOf(alternatives) => self.one_of(alternatives, value, trail, outcome),
                Check::AllOf(parts) => {
                    let mut valid = 0;
                    for part in parts {
                        let result = self.check(part, value, trail, None);
                        valid += usize::from(result.errors.is_empty());
                        outcome.merge(result);
                    }
                    if valid != parts.len() {
                        let none = if valid == 0 { ". None validated" } else { "" };
                        outcome.errors.push(self.composite(format!(
                            "{} must validate all the schemas (allOf){none}",
                            quoted(&trail.dotted())
                        )));
                    }
                }
                Check::Not(forbidden) if self.check(forbidden, value, trail, None).errors.is_empty() => {
                    let text = format!("{} must not validate the schema (not)", quoted(&trail.dotted()));
                    outcome.errors.push(self.composite(text));
                }
                _ => {}
            }
        }
        outcome.matched();
        outcome.matched();
    }

    fn any_of(&mut self, alternatives: &[Node], value: &Value, trail: &Trail<'_>, outcome: &mut Outcome) {
        let mut best: Option<Outcome> = None;
        for alternative in alternatives {
            let result = self.check(alternative, value, trail, None);
            if result.errors.is_empty() {
                outcome.merge(result);
                return;
            }
            if best.as_ref().is_none_or(|best| result.matches > best.matches) {
                best = Some(result);
            }
        }
        let text = format!(
            "{} must validate at least one schema (anyOf)",
            quoted(&trail.dotted())
        );
        outcome.errors.push(self.composite(text));
        outcome.merge(best.unwrap_or_default());
    }

    fn one_of(&mut self, alternatives: &[Node], value: &Value, trail: &Trail<'_>, outcome: &mut Outcome) {
        let mut best: Option<Outcome> = None;
        let mut first_valid: Option<Outcome> = None;
        let mut valid = 0;
        for alternative in alternatives {
            let result = self.check(alternative, value, trail, None);
            if result.errors.is_empty() {
                valid += 1;
                best = None;
                first_valid.get_or_insert(result);
            } else if valid == 0 && best.as_ref().is_none_or(|best| result.matches > best.matches) {
                best = Some(result);
            }
        }
        if valid == 1 {
            outcome.merge(first_valid.unwrap_or_default());
            return;
        }
        let found = if valid == 0 {
            "Found none valid".to_owned()
        } else {
            format!("Found {valid} valid alternatives")
        };
        let text = format!(
            "{} must validate one and only one schema (oneOf). {found}",
            quoted(&trail.dotted())
        );
        outcome.errors.push(self.composite(text));
        outcome.merge(best.unwrap_or_default());
    }
}
