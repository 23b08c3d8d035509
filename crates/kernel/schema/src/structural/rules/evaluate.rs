//! Rules on values.

use std::sync::Arc;

use fairway_text_cel::limits::PER_CALL_LIMIT;
use fairway_text_cel::{Activation, DeclType, Error, Program, eval};
use serde_json::Value;

use super::{Compiled, Reason, Rule, RuleSet};
use crate::field::{ErrorKind, FieldError, Path};
use crate::structural::correlate::{Correlated, OldItems};
use crate::structural::node::{Flags, Node, Type};
use crate::structural::trail::{Step, Trail};

/// Longest message that an expression may give.
const MAX_MESSAGE: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What there was before, in two respects.
#[derive(Clone, Copy, Default)]
pub(in crate::structural) struct Past<'a> {
    /// What rules see as `oldSelf`.
    old: Option<&'a Value>,
    /// The value and its old one, where they can be compared.
    current: Option<Correlated<'a>>,
    /// The nearest surrounding value that can be compared.
    nearest: Option<Correlated<'a>>,
}

impl<'a> Past<'a> {
    /// The past of an object on update.
    pub(in crate::structural) fn of(node: &'a Node, new: &'a Value, old: &'a Value) -> Self {
        let old_self = Some(old).filter(|o| !o.is_null());
        Self {
            old: old_self,
            current: Some(Correlated { node, new, old }),
            nearest: None,
        }
    }

    /// A past that rules see but that excuses nothing.
    pub(in crate::structural) fn only_old_self(old: &'a Value) -> Self {
        Self {
            old: Some(old).filter(|o| !o.is_null()),
            current: None,
            nearest: None,
        }
    }

    fn key(self, name: &str) -> Self {
        let old = self.old.and_then(|old| old.get(name)).filter(|o| !o.is_null());
        match self.current {
            None => Self { old, ..self },
            // The version of an object does not show in the object that was stored.
            Some(_) if self.nearest.is_none() && matches!(name, "apiVersion" | "kind") => Self {
                old,
                current: None,
                nearest: None,
            },
            Some(current) => Self {
                old,
                current: current.key(name),
                nearest: Some(current),
            },
        }
    }

    fn item(self, item: &'a Value, items: Option<(&OldItems<'a>, &'a Node)>) -> Self {
        let old = items.and_then(|(index, _)| index.get(item));
        match self.current {
            None => Self { old, ..self },
            Some(current) => {
                let item = old
                    .zip(items)
                    .map(|(old, (_, node))| Correlated { node, new: item, old });
                Self {
                    old,
                    current: item,
                    nearest: Some(current),
                }
            }
        }
    }

    /// Whether the value, or one around it, is what it was.
    fn is_unchanged(self) -> bool {
        self.current
            .or(self.nearest)
            .is_some_and(Correlated::is_unchanged)
    }
}

/// One evaluation of all rules on one object.
pub(in crate::structural) struct Evaluation<'b> {
    /// What may still be spent; 0 after the end.
    pub(in crate::structural) cost: &'b mut u64,
    pub(in crate::structural) prefix: &'b Path,
    pub(in crate::structural) errors: Vec<FieldError>,
    stopped: bool,
}

impl<'b> Evaluation<'b> {
    pub(in crate::structural) fn new(prefix: &'b Path, cost: &'b mut u64) -> Self {
        Self {
            cost,
            prefix,
            errors: Vec::new(),
            stopped: false,
        }
    }

    pub(in crate::structural) fn visit(
        &mut self,
        node: &Node,
        value: &Value,
        trail: &Trail<'_>,
        past: Past<'_>,
    ) {
        if self.stopped || value.is_null() || !node.has(Flags::RULES_BELOW) {
            return;
        }
        if let Some(rules) = node.rules()
            && let Some(decl) = rules.decl()
        {
            self.rules(rules, decl, node, value, trail, past);
        }
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    if let Some(child) = node.property(name) {
                        self.visit(child, value, &trail.then(Step::Field(name)), past.key(name));
                    } else if let Some(child) = node.additional() {
                        self.visit(child, value, &trail.then(Step::Key(name)), past.key(name));
                    }
                }
            }
            Value::Array(items) => {
                let Some(child) = node.items().filter(|c| c.has(Flags::RULES_BELOW)) else {
                    return;
                };
                let index = past.old.and_then(|old| OldItems::new(node, old));
                for (i, item) in items.iter().enumerate() {
                    let past = past.item(item, index.as_ref().map(|index| (index, child)));
                    self.visit(child, item, &trail.then(Step::Index(i)), past);
                }
            }
            _ => {}
        }
    }

    /// An error about rules rather than about the value.
    fn fail(&mut self, node: &Node, trail: &Trail<'_>, detail: String) {
        let shown = node.schema_type.name();
        self.errors
            .push(FieldError::invalid(&trail.path(self.prefix), shown, detail));
    }

    /// Takes from the budget what an evaluation cost; false: it was not enough.
    fn pay(&mut self, left: u64) -> bool {
        let spent = PER_CALL_LIMIT.saturating_sub(left);
        match self.cost.checked_sub(spent) {
            Some(rest) => {
                *self.cost = rest;
                true
            }
            None => {
                *self.cost = 0;
                self.stopped = true;
                false
            }
        }
    }

    fn rules(
        &mut self,
        set: &RuleSet,
        decl: &Arc<DeclType>,
        node: &Node,
        value: &Value,
        trail: &Trail<'_>,
        past: Past<'_>,
    ) {
        if *self.cost == 0 {
            self.fail(node, trail, OUT_OF_BUDGET.to_owned());
            self.stopped = true;
            return;
        }
        for (rule, compiled) in set.rules.iter().zip(set.compiled(decl)) {
            let program = match &compiled.rule {
                Ok(program) => program,
                Err(reason) => {
                    self.fail(node, trail, format!("rule compile error: {reason}"));
                    continue;
                }
            };
            // A transition needs something to come from.
            if compiled.uses_old_self && past.old.is_none() && !rule.optional_old_self {
                continue;
            }
            let activation = activation(rule, compiled, decl, value, past);
            let mut left = PER_CALL_LIMIT;
            let result = eval(program, &activation, &mut left);
            if !self.pay(left) {
                self.fail(node, trail, OUT_OF_BUDGET.to_owned());
                return;
            }
            match result {
                Ok(passed) if passed.as_bool() == Some(true) => {}
                Ok(_) => {
                    let Ok(detail) = self.message(rule, compiled, &activation) else {
                        let detail = "messageExpression evaluation failed due to running out of cost budget, no \
                                      further validation rules will be run";
                        self.fail(node, trail, detail.to_owned());
                        return;
                    };
                    // What an update did not touch is not held against it, except by rules about the change.
                    if compiled.uses_old_self || !past.is_unchanged() {
                        self.errors.push(violation(rule, node, value, &trail.path(self.prefix), detail));
                    }
                }
                Err(Error::CostExceeded) => {
                    self.stopped = true;
                    let detail = format!(
                        "'{}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        Error::CostExceeded,
                        rule.name()
                    );
                    self.fail(node, trail, detail);
                    return;
                }
                Err(error @ Error::NoSuchOverload) => self.fail(
                    node,
                    trail,
                    format!(
                        "'{error}': call arguments did not match a supported operator, function or macro signature \
                         for rule: {}",
                        rule.name()
                    ),
                ),
                Err(error) => self.fail(node, trail, format!("{error} evaluating rule: {}", rule.name())),
            }
        }
    }

    /// Why a rule failed. The error: there was not enough to find out.
    fn message(
        &mut self,
        rule: &Rule,
        compiled: &Compiled,
        activation: &Activation<'_>,
    ) -> Result<String, ()> {
        let fallback = || {
            if rule.message.is_empty() {
                format!("failed rule: {}", rule.name())
            } else {
                rule.name().to_owned()
            }
        };
        let Some(Ok(program)) = &compiled.message else {
            return Ok(fallback());
        };
        let Some(text) = self.message_text(program, activation)? else {
            return Ok(fallback());
        };
        Ok(text)
    }

    /// The text of an expression; `None` if it gives none that can be shown.
    fn message_text(&mut self, program: &Program, activation: &Activation<'_>) -> Result<Option<String>, ()> {
        let mut left = PER_CALL_LIMIT;
        let result = eval(program, activation, &mut left);
        if !self.pay(left) {
            return Err(());
        }
        match result {
            Err(Error::CostExceeded) => {
                self.stopped = true;
                Err(())
            }
            Err(_) => Ok(None),
            Ok(value) => {
                let text = value.as_str().map(str::trim).unwrap_or_default();
                let fits = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
                Ok(fits.then(|| text.to_owned()))
            }
        }
    }
}

fn activation<'a>(
    rule: &Rule,
    compiled: &Compiled,
    decl: &'a DeclType,
    value: &'a Value,
    past: Past<'a>,
) -> Activation<'a> {
    let activation = Activation::new().bind_schema_value("self", value, decl);
    match past.old {
        _ if rule.optional_old_self => activation.bind_optional("oldSelf", past.old, decl),
        Some(old) if compiled.uses_old_self || compiled.message.is_some() => {
            activation.bind_schema_value("oldSelf", old, decl)
        }
        _ => activation,
    }
}

fn violation(rule: &Rule, node: &Node, value: &Value, path: &Path, detail: String) -> FieldError {
    let path = if rule.field_path.is_empty() {
        path.clone()
    } else {
        path.child(&rule.field_path)
    };
    let compound = matches!(node.schema_type, Type::Object | Type::Array);
    let shown = (!compound).then(|| crate::structural::canonical::shown(value));
    match rule.reason {
        Reason::Forbidden => FieldError::forbidden(&path, detail),
        Reason::Required => FieldError::required(&path, detail),
        Reason::Duplicate => FieldError {
            kind: ErrorKind::Duplicate,
            path,
            value: shown,
            detail: String::new(),
        },
        Reason::Invalid => FieldError {
            kind: ErrorKind::Invalid,
            path,
            value: shown,
            detail,
        },
    }
}
