//! Defaults of a schema must be values that the schema itself accepts, with nothing to prune.

use fairway_text_cel::limits::RUNTIME_CEL_COST_BUDGET;
use serde_json::{Map, Value};

use super::node::{Flags, Node};
use super::objectmeta;
use super::pruning;
use super::rules::{Evaluation, Past};
use super::trail::Trail;
use super::validate::Validation;
use crate::field::{FieldError, Path};

/// How many pairs of value and schema may be looked at for all defaults together.
const STEPS: u64 = 5_000_000;

/// A step from the nearest resource to a default inside of its metadata.
#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item,
}

/// One check of one schema.
pub(super) struct DefaultCheck<'a> {
    steps: u64,
    errors: Vec<FieldError>,
    way: Vec<Step<'a>>,
}

/// All defaults of a schema whose root is a resource.
pub(super) fn check(root: &Node, path: &Path) -> Vec<FieldError> {
    let mut check = DefaultCheck {
        steps: STEPS,
        errors: Vec::new(),
        way: Vec::new(),
    };
    check.visit(root, root, true, false, path);
    check.errors
}

/// All defaults against the rules of a schema whose types are right.
pub(super) fn check_rules(root: &Node, path: &Path) -> Vec<FieldError> {
    let mut cost = RUNTIME_CEL_COST_BUDGET;
    let mut errors = Vec::new();
    visit_rules(root, path, &mut cost, &mut errors);
    errors
}

fn visit_rules(node: &Node, path: &Path, cost: &mut u64, errors: &mut Vec<FieldError>) {
    if !node.has(Flags::DEFAULTS_BELOW) || !node.has(Flags::RULES_BELOW) {
        return;
    }
    if let Some(default) = &node.default {
        let at = path.child("default");
        // A default may come with a new object, or stand where it stood before.
        for past in [Past::only_old_self(default), Past::default()] {
            let mut evaluation = Evaluation::new(&at, cost);
            evaluation.visit(node, default, &Trail::ROOT, past);
            if !evaluation.errors.is_empty() {
                errors.append(&mut evaluation.errors);
                break;
            }
        }
    }
    if let Some(items) = node.items() {
        visit_rules(items, &path.child("items"), cost, errors);
    }
    let properties = path.child("properties");
    for (name, property) in node.properties() {
        visit_rules(property, &properties.key(name), cost, errors);
    }
}

impl<'a> DefaultCheck<'a> {
    fn visit(&mut self, node: &'a Node, root: &'a Node, resource: bool, inside_meta: bool, path: &Path) {
        if !node.has(Flags::DEFAULTS_BELOW) {
            return;
        }
        let resource = resource || node.has(Flags::EMBEDDED);
        let outer_way = resource.then(|| std::mem::take(&mut self.way));
        let (root, inside_meta) = if resource {
            (node, false)
        } else {
            (root, inside_meta)
        };
        if let Some(default) = &node.default {
            let at = path.child("default");
            if inside_meta {
                self.check_in_metadata(node, root, default, &at);
            } else {
                self.check_plain(node, resource, default, &at);
            }
        }
        // Defaults in additionalProperties never apply, since there is no key to apply them to.
        if let Some(items) = node.items() {
            self.way.push(Step::Item);
            self.visit(items, root, false, inside_meta, &path.child("items"));
            self.way.pop();
        }
        let properties = path.child("properties");
        for (name, property) in node.properties() {
            let meta = resource && matches!(&**name, "metadata" | "apiVersion" | "kind");
            self.way.push(Step::Field(name));
            self.visit(property, root, false, inside_meta || meta, &properties.key(name));
            self.way.pop();
        }
        if let Some(outer) = outer_way {
            self.way = outer;
        }
    }

    fn check_schema(&mut self, node: &Node, default: &Value, at: &Path) {
        let found = Validation::new(at, &mut self.steps).run(node, default, None);
        self.errors.extend(found);
    }

    fn check_plain(&mut self, node: &Node, resource: bool, default: &Value, at: &Path) {
        let mut pruned = default.clone();
        let mut unknown = Vec::new();
        pruning::prune(Some(node), resource, &mut pruned, &Trail::ROOT, &mut unknown);
        if !unknown.is_empty() {
            self.errors.push(FieldError::invalid(
                at,
                default.clone(),
                "must not have unknown fields",
            ));
        }
        let mut coerced = default.clone();
        if let Err(error) =
            objectmeta::coerce_embedded(node, resource, &mut coerced, &Trail::ROOT, &mut Vec::new())
        {
            self.errors.push(below(at, *error));
            return;
        }
        let mut errors = Vec::new();
        objectmeta::validate_embedded(node, resource, &coerced, &Trail::ROOT, &mut errors);
        if errors.is_empty() {
            self.check_schema(node, default, at);
        } else {
            self.errors.extend(errors.into_iter().map(|e| below(at, e)));
        }
    }

    /// A default inside of metadata is checked as part of a resource that has only this.
    fn check_in_metadata(&mut self, node: &Node, root: &Node, default: &Value, at: &Path) {
        let mut object = self.surrounding_object(default.clone());
        let mut errors = Vec::new();
        let coerced = objectmeta::coerce_embedded(root, true, &mut object, &Trail::ROOT, &mut Vec::new());
        match coerced {
            Err(error) => errors.push(*error),
            Ok(()) => objectmeta::validate_embedded(root, true, &object, &Trail::ROOT, &mut errors),
        }
        if errors.is_empty() {
            self.check_schema(node, default, at);
            return;
        }
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let text = if let [one] = &*texts {
            one.clone()
        } else {
            format!("[{}]", texts.join(", "))
        };
        let detail = format!("must result in valid metadata: {text}");
        self.errors.push(FieldError::invalid(at, default.clone(), detail));
    }

    fn surrounding_object(&self, default: Value) -> Value {
        let mut value = default;
        for step in self.way.iter().rev() {
            value = match step {
                Step::Item => Value::Array(vec![value]),
                Step::Field(name) => Value::Object(Map::from_iter([((*name).to_owned(), value)])),
            };
        }
        if let Value::Object(object) = &mut value {
            object.entry("kind").or_insert_with(|| "Validation".into());
            object
                .entry("apiVersion")
                .or_insert_with(|| "validation/v1".into());
        }
        value
    }
}

/// The same error with a longer path.
fn below(prefix: &Path, error: FieldError) -> FieldError {
    let path = match error.path.as_str() {
        "" => prefix.clone(),
        rest if rest.starts_with('[') => Path::new(&format!("{}{rest}", prefix.as_str())),
        rest => prefix.child(rest),
    };
    FieldError { path, ..error }
}
