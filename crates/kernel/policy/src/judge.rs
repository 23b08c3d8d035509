//! What a policy says of one request.
//!
//! Variables are evaluated when something that refers to them is, and once: an expression that fails spoils only what
//! uses it. Everything is paid from one budget, as upstream has it.

use std::sync::Arc;

use fairway_kernel_kinds::admission_expressions::namespace_type;
use fairway_text_cel::{Activation, Authorizer, Error, Program, ResourceAttributes, Value as Cel, eval};
use serde_json::Value;

use crate::policy::{Check, Expression, Policy};

/// The cost of one expression, and of all expressions of a policy (upstream's figures).
const COST_OF_ONE: u64 = 1_000_000;
const COST_OF_ALL: u64 = 10_000_000;
const COST_OF_CONDITIONS: u64 = 2_500_000;
/// The longest message that an expression may make.
const MESSAGE_MAX: usize = 5 * 1024;
/// The longest value of an audit annotation.
const ANNOTATION_MAX: usize = 10 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The request, as expressions see it. What is absent is `null`.
pub struct Input<'a> {
    /// `request`.
    pub request: &'a Value,
    /// `object`.
    pub object: &'a Value,
    /// `oldObject`.
    pub old_object: &'a Value,
    /// `namespaceObject`.
    pub namespace: &'a Value,
    /// `params`.
    pub params: &'a Value,
    /// `authorizer`.
    pub authorizer: Arc<dyn Authorizer>,
    /// `authorizer.requestResource`.
    pub resource: ResourceAttributes,
}

/// One thing that a policy has against a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Position of the validation.
    pub index: usize,
    /// Why.
    pub message: String,
    /// The reason of the answer; empty: the default one.
    pub reason: String,
}

/// What a policy says of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What it has against it. The binding says what becomes of these.
    pub failures: Vec<Failure>,
    /// Annotations that could not be made. They deny the request whatever the binding says.
    pub annotation_errors: Vec<String>,
    /// Annotations for the audit log.
    pub annotations: Vec<(String, String)>,
}

impl Policy {
    /// Judges a request that the policy and a binding match.
    pub fn judge(&self, input: &Input<'_>) -> Verdict {
        let activation = activation(input);
        match self.applies(&activation) {
            Ok(true) => {}
            Ok(false) => return Verdict::default(),
            Err(message) => return self.error(0, message).into_iter().collect(),
        }
        let mut run = Run {
            policy: self,
            activation,
            bound: vec![false; self.variables.len()],
            budget: COST_OF_ALL,
        };
        let mut verdict: Verdict = self
            .checks
            .iter()
            .enumerate()
            .filter_map(|(index, check)| run.check(index, check))
            .collect();
        for (key, expression) in &self.annotations {
            match run.annotation(expression) {
                Ok(Some(value)) => verdict.annotations.push((key.clone(), value)),
                Ok(None) => {}
                Err(message) if self.fails_closed => verdict.annotation_errors.push(message),
                Err(_) => {}
            }
        }
        verdict
    }

    /// Whether all conditions hold. One that does not decides, whatever became of the others.
    fn applies(&self, activation: &Activation<'_>) -> Result<bool, String> {
        let mut errors = Vec::new();
        let mut budget = COST_OF_CONDITIONS;
        for condition in &self.conditions {
            match evaluate(condition, activation, &mut budget) {
                Ok(value) if value.as_bool() == Some(false) => return Ok(false),
                Ok(_) => {}
                Err(message) => errors.push(message),
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            _ if !self.fails_closed => Ok(false),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    fn error(&self, index: usize, message: String) -> Option<Failure> {
        self.fails_closed.then(|| Failure {
            index,
            message,
            reason: String::new(),
        })
    }
}

impl FromIterator<Failure> for Verdict {
    fn from_iter<I: IntoIterator<Item = Failure>>(failures: I) -> Self {
        Self {
            failures: failures.into_iter().collect(),
            ..Self::default()
        }
    }
}

fn activation<'a>(input: &'a Input<'a>) -> Activation<'a> {
    let activation = Activation::new()
        .bind_json("object", input.object)
        .bind_json("oldObject", input.old_object)
        .bind_json("request", input.request)
        .bind_json("params", input.params)
        .bind("authorizer", Cel::authorizer(Arc::clone(&input.authorizer)))
        .bind(
            "authorizer.requestResource",
            Cel::resource_check(Arc::clone(&input.authorizer), input.resource.clone()),
        );
    if input.namespace.is_null() {
        activation.bind_json("namespaceObject", input.namespace)
    } else {
        activation.bind_schema_value("namespaceObject", input.namespace, namespace_type())
    }
}

/// One evaluation of a policy: what its variables are so far, and what it may still cost.
struct Run<'a> {
    policy: &'a Policy,
    activation: Activation<'a>,
    bound: Vec<bool>,
    budget: u64,
}

impl<'a> Run<'a> {
    fn check(&mut self, index: usize, check: &'a Check) -> Option<Failure> {
        let holds = match self.evaluate(&check.expression) {
            Ok(value) => value.as_bool() == Some(true),
            Err(message) => return self.policy.error(index, message),
        };
        if holds {
            return None;
        }
        let said = check
            .message_expression
            .as_ref()
            .and_then(|expression| self.evaluate(expression).ok())
            .and_then(|value| value.as_str().map(|text| text.trim().to_owned()))
            .filter(|text| !text.is_empty() && text.len() <= MESSAGE_MAX && !text.contains('\n'));
        let message = said
            .or_else(|| Some(check.message.trim().to_owned()).filter(|text| !text.is_empty()))
            .unwrap_or_else(|| format!("failed expression: {}", check.expression.source.trim()));
        Some(Failure {
            index,
            message,
            reason: check.reason.clone(),
        })
    }

    fn annotation(&mut self, expression: &'a Expression) -> Result<Option<String>, String> {
        let value = self.evaluate(expression)?;
        let Some(text) = value.as_str() else {
            return Ok(None);
        };
        let mut text = text.trim().to_owned();
        let mut end = text.len().min(ANNOTATION_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    fn evaluate(&mut self, expression: &'a Expression) -> Result<Cel<'a>, String> {
        if let Ok(program) = &expression.program {
            self.bind_for(program, self.policy.variables.len());
        }
        evaluate(expression, &self.activation, &mut self.budget)
    }

    /// Gives the variables that a program refers to their values. They can refer only to earlier ones, so this ends.
    fn bind_for(&mut self, program: &Program, before: usize) {
        let policy = self.policy;
        for (index, (name, expression)) in policy.variables.iter().enumerate().take(before) {
            if self.bound[index] || !program.uses_variable(name) {
                continue;
            }
            self.bound[index] = true;
            if let Ok(needed) = &expression.program {
                self.bind_for(needed, index);
            }
            let value = evaluate(expression, &self.activation, &mut self.budget).map_err(|why| {
                Error::Invalid(format!("composited variable {name:?} fails to evaluate: {why}").into())
            });
            let activation = std::mem::take(&mut self.activation);
            self.activation = activation.bind_result(name, value);
        }
    }
}

fn evaluate<'a>(
    expression: &Expression,
    activation: &Activation<'a>,
    budget: &mut u64,
) -> Result<Cel<'a>, String> {
    let program = expression
        .program
        .as_ref()
        .map_err(|why| format!("compilation error: {why}"))?;
    let allowed = (*budget).min(COST_OF_ONE);
    let mut left = allowed;
    let result = eval(program, activation, &mut left);
    *budget -= allowed - left;
    result.map_err(|error| match error {
        Error::CostExceeded => OUT_OF_BUDGET.to_owned(),
        other => format!("expression '{}' resulted in error: {other}", expression.source),
    })
}

#[cfg(test)]
mod tests;
