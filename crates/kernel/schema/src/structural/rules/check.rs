//! Whether the rules of a schema compile, can be correlated, and are cheap enough in the worst case.

use serde_json::Value;

use super::RuleSet;
use crate::field::{FieldError, Path};
use crate::structural::node::{Flags, Node};
use crate::structural::raw::{Additional, Props};

/// The worst case of one rule.
const EXPRESSION_COST_LIMIT: u64 = 10_000_000;
/// The worst case of all rules of a schema.
const SCHEMA_COST_LIMIT: u64 = 100_000_000;

/// Where a schema stands.
#[derive(Clone, Copy)]
struct Context<'a> {
    /// How many values it can apply to in one object; `None`: nobody said.
    cardinality: Option<u64>,
    /// The nearest list above whose elements have no past.
    uncorrelatable: Option<&'a Path>,
}

#[derive(Default)]
struct Totals {
    cost: u64,
    /// The rules that cost most.
    expensive: Vec<(u64, Path)>,
    errors: Vec<FieldError>,
}

/// Checks all rules of a schema whose compiled form is `node`.
pub(in crate::structural) fn check(schema: Props<'_>, node: &Node, path: &Path) -> Vec<FieldError> {
    let mut totals = Totals::default();
    totals.visit(
        schema,
        node,
        path,
        Context {
            cardinality: Some(1),
            uncorrelatable: None,
        },
    );
    if totals.cost > SCHEMA_COST_LIMIT {
        for (_, rule) in &totals.expensive {
            let detail =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            totals.errors.push(FieldError::forbidden(rule, detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        totals.errors.push(FieldError::forbidden(
            path,
            too_expensive(what, totals.cost, SCHEMA_COST_LIMIT),
        ));
    }
    totals.errors
}

fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, \
         and maxLength where arrays, maps, and strings are declared)"
    )
}

/// By how much a schema multiplies the values inside of its values; `None`: without bound.
fn multiplier(schema: Props<'_>) -> Option<u64> {
    let bound = |field: &str| {
        let bound = schema.get(field).and_then(Value::as_i64)?;
        Some(u64::try_from(bound).unwrap_or(0))
    };
    match schema.schema_type() {
        "object" if schema.additional().is_some() => bound("maxProperties"),
        "array" => bound("maxItems"),
        _ => Some(1),
    }
}

impl Totals {
    fn visit(&mut self, schema: Props<'_>, node: &Node, path: &Path, context: Context<'_>) {
        if !node.has(Flags::RULES_BELOW) {
            return;
        }
        let cardinality = context
            .cardinality
            .zip(multiplier(schema))
            .map(|(a, b)| a.saturating_mul(b));
        let below = Context {
            cardinality,
            ..context
        };
        if let (Some(Additional::Schema(child)), Some(node)) = (schema.additional(), node.additional()) {
            self.visit(child, node, &path.child("additionalProperties"), below);
        }
        let properties = path.child("properties");
        for (name, child) in schema.properties() {
            if let Some(node) = node.property(name) {
                self.visit(child, node, &properties.key(name), below);
            }
        }
        if let Some((child, node)) = schema.items().zip(node.items()) {
            let correlatable = schema.list_type() == Some("map");
            let uncorrelatable = if correlatable {
                context.uncorrelatable
            } else {
                context.uncorrelatable.or(Some(path))
            };
            self.visit(
                child,
                node,
                &path.child("items"),
                Context {
                    uncorrelatable,
                    ..below
                },
            );
        }
        if let Some(rules) = node.rules() {
            self.rules(rules, schema, &path.child("x-kubernetes-validations"), context);
        }
    }

    fn rules(&mut self, set: &RuleSet, schema: Props<'_>, path: &Path, context: Context<'_>) {
        let Some(decl) = set.decl() else {
            self.errors.push(FieldError::internal(
                path,
                "internal error: failed to construct type information for x-kubernetes-validations rules: unable to \
                 convert structural schema to CEL declarations",
            ));
            return;
        };
        let cardinality = context.cardinality.unwrap_or_else(|| decl.max_cardinality());
        let raw = schema.list("x-kubernetes-validations");
        for (i, (rule, compiled)) in set.rules.iter().zip(set.compiled(decl)).enumerate() {
            let at = path.index(i);
            let shown = || raw.get(i).cloned().unwrap_or(Value::Null);
            match &compiled.rule {
                Err(reason) => {
                    self.errors
                        .push(FieldError::invalid(&at.child("rule"), shown(), reason.as_str()));
                }
                Ok(program) => {
                    let cost = program.estimate_cost().max.saturating_mul(cardinality);
                    self.observe("estimated rule cost", cost, &at.child("rule"));
                }
            }
            match &compiled.message {
                None => {}
                Some(Err(reason)) => {
                    let at = at.child("messageExpression");
                    self.errors
                        .push(FieldError::invalid(&at, shown(), reason.as_str()));
                }
                Some(Ok(program)) => {
                    let cost = program.estimate_cost().max;
                    self.observe(
                        "estimated messageExpression cost",
                        cost,
                        &at.child("messageExpression"),
                    );
                }
            }
            if compiled.uses_old_self {
                if let Some(list) = context.uncorrelatable {
                    let detail = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                    );
                    self.errors
                        .push(FieldError::invalid(&at.child("rule"), &*rule.rule, detail));
                }
            } else if let Some(given) = raw
                .get(i)
                .and_then(|r| r.get("optionalOldSelf"))
                .filter(|v| !v.is_null())
            {
                let detail = "may not be set if oldSelf is not used in rule";
                self.errors.push(FieldError::invalid(
                    &at.child("optionalOldSelf"),
                    given.clone(),
                    detail,
                ));
            }
        }
    }

    fn observe(&mut self, what: &str, cost: u64, path: &Path) {
        if cost > EXPRESSION_COST_LIMIT {
            let detail = too_expensive(what, cost, EXPRESSION_COST_LIMIT);
            self.errors.push(FieldError::forbidden(path, detail));
        }
        self.cost = self.cost.saturating_add(cost);
        if cost >= SCHEMA_COST_LIMIT / 100 {
            self.expensive.push((cost, path.clone()));
            self.expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.expensive.truncate(4);
        }
    }
}
