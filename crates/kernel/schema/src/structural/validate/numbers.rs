//! Numbers, with the arithmetic of upstream: whole numbers are compared as 64-bit integers (bounds are cut to whole
//! numbers first), all others as floating point.

use serde_json::Value;

use super::{Outcome, Validation};
use crate::structural::canonical;
use crate::structural::formats::Format;
use crate::structural::node::{Check, Flags, Node, Type};
use crate::structural::trail::Trail;

/// A JSON number as Kubernetes decodes it.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Int(i64),
    Float(f64),
}

impl From<&serde_json::Number> for Number {
    fn from(number: &serde_json::Number) -> Self {
        match number.as_i64() {
            Some(int) => Self::Int(int),
            None => Self::Float(number.as_f64().unwrap_or(f64::INFINITY)),
        }
    }
}

impl Number {
    fn as_f64(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }

    fn shown(self) -> Value {
        match self {
            Self::Int(int) => int.into(),
            Self::Float(float) => canonical::shown(&float.into()),
        }
    }
}

/// Equality as JSON has it: 1 and 1.0 are the same.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (Number::from(a), Number::from(b)) {
            (Number::Int(a), Number::Int(b)) => a == b,
            (a, b) => a.as_f64() == b.as_f64(),
        },
        _ => a == b,
    }
}

/// Whether a floating-point number is whole, and small enough for every client to read it exactly.
pub(super) fn is_json_integer(number: &serde_json::Number) -> bool {
    is_whole(Number::from(number).as_f64())
}

fn is_whole(float: f64) -> bool {
    const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
    if !(-MAX_SAFE..=MAX_SAFE).contains(&float) {
        return false;
    }
    let cut = float.trunc();
    if float == cut {
        return true;
    }
    cut != 0.0 && (float - cut).abs() / (float.abs() + cut.abs()) < 1e-9
}

/// A float as Go prints it with `%v`.
fn go_float(float: f64) -> String {
    let size = float.abs();
    if size == 0.0 || (1e-4..1e21).contains(&size) {
        return format!("{float}");
    }
    let text = format!("{float:e}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Whether a number can be held by the type and format of the node.
fn fits(node: &Node, number: Number) -> bool {
    if node.has(Flags::INT_OR_STRING) {
        return true;
    }
    let whole = match number {
        Number::Int(int) => Some(int),
        Number::Float(float) if float.fract() == 0.0 && (-9.3e18..9.3e18).contains(&float) => {
            Some(float as i64)
        }
        Number::Float(_) => None,
    };
    match (node.schema_type, node.format) {
        (Type::Integer, Format::Int32) => whole.is_some_and(|int| i32::try_from(int).is_ok()),
        (Type::Integer, _) => whole.is_some(),
        (Type::Number, Format::Float) => (number.as_f64() as f32).is_finite(),
        _ => true,
    }
}

fn range_error(node: &Node, what: &str, trail: &Trail<'_>) -> String {
    let type_name = node.schema_type.name();
    let path = trail.dotted();
    if node.format.is_numeric() {
        format!(
            "{what} value must be of type {type_name} with format {} in {path}",
            node.format.name()
        )
    } else {
        format!("{what} value must be of type {type_name} (default format) in {path}")
    }
}

pub(super) fn check(
    validation: &Validation<'_>,
    node: &Node,
    number: Number,
    trail: &Trail<'_>,
    outcome: &mut Outcome,
) {
    if !fits(node, number) {
        outcome
            .errors
            .push(validation.composite(range_error(node, "Checked", trail)));
    }
    for check in &node.checks {
        let (name, limit) = match check {
            Check::MultipleOf(factor) => ("MultipleOf", *factor),
            Check::Minimum { limit, .. } => ("Minimum boundary", *limit),
            Check::Maximum { limit, .. } => ("Maximum boundary", *limit),
            _ => continue,
        };
        // A bound that the type cannot hold is reported, and compared as a plain number.
        let native = fits(node, Number::Float(limit));
        if !native {
            outcome
                .errors
                .push(validation.composite(range_error(node, name, trail)));
        }
        let number = if native {
            number
        } else {
            Number::Float(number.as_f64())
        };
        let (limit_text, failed) = match number {
            Number::Int(int) => ((limit as i64).to_string(), fails(check, int, limit as i64)),
            Number::Float(float) => (go_float(limit), fails(check, float, limit)),
        };
        if let Check::MultipleOf(_) = check {
            multiple_of(validation, number, limit, trail, outcome);
        } else if failed {
            let relation = match check {
                Check::Maximum { exclusive: false, .. } => "less than or equal to",
                Check::Maximum { exclusive: true, .. } => "less than",
                Check::Minimum { exclusive: false, .. } => "greater than or equal to",
                _ => "greater than",
            };
            let what = format!("should be {relation} {limit_text}");
            outcome
                .errors
                .push(validation.invalid(trail, number.shown(), &what));
        }
    }
    outcome.matched();
}

fn fails<T: PartialOrd + Copy>(check: &Check, value: T, limit: T) -> bool {
    match check {
        Check::Maximum { exclusive: false, .. } => value > limit,
        Check::Maximum { exclusive: true, .. } => value >= limit,
        Check::Minimum { exclusive: false, .. } => value < limit,
        Check::Minimum { exclusive: true, .. } => value <= limit,
        _ => false,
    }
}

fn multiple_of(
    validation: &Validation<'_>,
    number: Number,
    factor: f64,
    trail: &Trail<'_>,
    outcome: &mut Outcome,
) {
    let (factor_text, factor_value, positive, divides) = match number {
        Number::Int(int) => {
            let factor = factor as i64;
            (
                factor.to_string(),
                Value::from(factor),
                factor > 0,
                factor > 0 && int % factor == 0,
            )
        }
        Number::Float(float) => {
            let quotient = if factor < 1.0 {
                1.0 / factor * float
            } else {
                float / factor
            };
            (
                go_float(factor),
                Value::from(factor),
                factor > 0.0,
                is_whole(quotient),
            )
        }
    };
    if !positive {
        let path = trail.dotted();
        outcome.errors.push(crate::field::FieldError::invalid(
            &validation.path(trail),
            canonical::shown(&factor_value),
            format!("factor MultipleOf declared for {path} must be positive: {factor_text}"),
        ));
    } else if !divides {
        let what = format!("should be a multiple of {factor_text}");
        outcome
            .errors
            .push(validation.invalid(trail, number.shown(), &what));
    }
}
