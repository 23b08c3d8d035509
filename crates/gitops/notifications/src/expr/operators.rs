//! What operators make of values, as Go's types have it.

use std::cmp::Ordering;
use std::rc::Rc;

use fairway_text_gotemplate::value::{IntType, UintType};
use fairway_text_gotemplate::{Map, Value};

use super::eval::Budget;
use super::numbers::{Number, number};
use super::parse::Operator;
use super::{ExprError, error};

/// How deep lists and maps are compared.
const MAX_COMPARED: u32 = 100;

/// The name of a value's type, as `%T` prints it.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil | Value::Invalid => "<nil>",
        other => other.type_name(),
    }
}

pub(super) fn boolean(value: &Value) -> Result<bool, ExprError> {
    match value {
        Value::Bool(truth) => Ok(*truth),
        other => error(format!(
            "a value of type {} is neither true nor false",
            type_name(other)
        )),
    }
}

/// The bytes of a text.
pub(super) fn text<'v>(value: &'v Value, what: &str) -> Result<&'v [u8], ExprError> {
    match value {
        Value::Str(text) => Ok(text),
        other => error(format!(
            "{what} wants a text and got a value of type {}",
            type_name(other)
        )),
    }
}

/// Whether two values are equal; what cannot be compared is not.
pub(super) fn is_equal(one: &Value, other: &Value, budget: &mut Budget) -> Result<bool, ExprError> {
    is_equal_at(one, other, budget, Way::default())
}

/// How two values are compared that are within others.
#[derive(Clone, Copy, Default)]
struct Way {
    depth: u32,
    /// Within a map numbers of different types differ, as Go's `DeepEqual` has it.
    is_strict: bool,
}

fn is_equal_at(one: &Value, other: &Value, budget: &mut Budget, way: Way) -> Result<bool, ExprError> {
    budget.spend(1)?;
    let deeper = Way {
        depth: way.depth + 1,
        ..way
    };
    if way.depth > MAX_COMPARED {
        return error(format!(
            "what is compared is nested deeper than {MAX_COMPARED} levels"
        ));
    }
    let types_differ = type_name(one) != type_name(other);
    if let (Some(one), Some(other)) = (number(one), number(other)) {
        return Ok(one.compare(other) == Some(Ordering::Equal) && !(way.is_strict && types_differ));
    }
    match (one, other) {
        (Value::Nil | Value::Invalid, Value::Nil | Value::Invalid) => Ok(true),
        (Value::Bool(one), Value::Bool(other)) => Ok(one == other),
        (Value::Str(one), Value::Str(other)) | (Value::Bytes(one), Value::Bytes(other)) => {
            budget.spend_bytes(one.len().min(other.len()))?;
            Ok(one == other)
        }
        (Value::Time(one), Value::Time(other)) => Ok(one == other),
        (Value::Duration(one), Value::Duration(other)) => Ok(one == other),
        (Value::List(one), Value::List(other)) => {
            if one.items.len() != other.items.len() {
                return Ok(false);
            }
            for (one, other) in one.items.iter().zip(&other.items) {
                if !is_equal_at(one, other, budget, deeper)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Map(one), Value::Map(other)) if one.is(other) => Ok(true),
        (Value::Map(one), Value::Map(other)) => one.with(|one| {
            let deeper = Way {
                is_strict: true,
                ..deeper
            };
            other.with(|other| {
                if one.len() != other.len() {
                    return Ok(false);
                }
                for ((key, one), (other_key, other)) in one.iter().zip(other) {
                    if key != other_key || !is_equal_at(one, other, budget, deeper)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            })
        }),
        _ => Ok(false),
    }
}

/// The order of two values of which an order is asked by an operator of that sign.
pub(super) fn compare(one: &Value, other: &Value, sign: &str) -> Result<Option<Ordering>, ExprError> {
    if let (Some(one), Some(other)) = (number(one), number(other)) {
        return Ok(one.compare(other));
    }
    match (one, other) {
        (Value::Str(one), Value::Str(other)) => Ok(Some(one.cmp(other))),
        (Value::Time(one), Value::Time(other)) => Ok(Some(one.nanos.cmp(&other.nanos))),
        (Value::Duration(one), Value::Duration(other)) => Ok(Some(one.cmp(other))),
        _ => invalid(one, other, sign),
    }
}

fn invalid<T>(one: &Value, other: &Value, sign: &str) -> Result<T, ExprError> {
    let (one, other) = (type_name(one), type_name(other));
    error(format!("invalid operation: {one} {sign} {other}"))
}

/// Whether an operator that asks for an order is content with one.
pub(super) fn is_ordered(operator: Operator, one: &Value, other: &Value) -> Result<bool, ExprError> {
    let (sign, is_content): (&str, fn(Ordering) -> bool) = match operator {
        Operator::Less => ("<", Ordering::is_lt),
        Operator::More => (">", Ordering::is_gt),
        Operator::LessOrEqual => ("<=", Ordering::is_le),
        _ => (">=", Ordering::is_ge),
    };
    Ok(compare(one, other, sign)?.is_some_and(is_content))
}

/// `a in b`.
pub(super) fn is_in(one: &Value, other: &Value, budget: &mut Budget) -> Result<bool, ExprError> {
    match other {
        Value::Nil | Value::Invalid => Ok(false),
        Value::List(list) => {
            for item in &list.items {
                if is_equal(item, one, budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map) => match one {
            Value::Str(key) => Ok(map.contains(key)),
            Value::Nil | Value::Invalid => Ok(map.contains(b"")),
            _ => error(format!(
                "a value of type {} is no key of {}",
                type_name(one),
                type_name(other)
            )),
        },
        other => error(format!("operator \"in\" not defined on {}", type_name(other))),
    }
}

pub(super) fn arithmetic(operator: Operator, one: &Value, other: &Value) -> Result<Value, ExprError> {
    if let (Some(left), Some(right)) = (number(one), number(other)) {
        return numeric(operator, left, right, (one, other));
    }
    match (operator, one, other) {
        (Operator::Add, Value::Str(one), Value::Str(other)) => {
            Ok(Value::from([&one[..], &other[..]].concat()))
        }
        (Operator::Add, Value::Time(time), Value::Duration(span))
        | (Operator::Add, Value::Duration(span), Value::Time(time)) => {
            Ok(Value::Time(Rc::new(time.add(*span))))
        }
        (Operator::Add, Value::Duration(one), Value::Duration(other)) => {
            Ok(Value::Duration(one.wrapping_add(*other)))
        }
        (Operator::Subtract, Value::Time(one), Value::Time(other)) => {
            let span = one.nanos.saturating_sub(other.nanos);
            let bound = if span < 0 { i64::MIN } else { i64::MAX };
            Ok(Value::Duration(i64::try_from(span).unwrap_or(bound)))
        }
        (Operator::Subtract, Value::Time(time), Value::Duration(span)) => {
            Ok(Value::Time(Rc::new(time.add(span.saturating_neg()))))
        }
        (Operator::Subtract, Value::Duration(one), Value::Duration(other)) => {
            Ok(Value::Duration(one.wrapping_sub(*other)))
        }
        (Operator::Multiply, Value::Duration(one), Value::Duration(other)) => {
            Ok(Value::Duration(one.wrapping_mul(*other)))
        }
        (Operator::Multiply, Value::Duration(span), factor)
        | (Operator::Multiply, factor, Value::Duration(span)) => {
            match number(factor) {
                Some(Number::Int(factor)) => Ok(Value::Duration(span.wrapping_mul(factor))),
                // As in the original, a span becomes a number by it.
                Some(Number::Float(factor)) => Ok(Value::Float(*span as f64 * factor)),
                None => invalid(one, other, sign(operator)),
            }
        }
        _ => invalid(one, other, sign(operator)),
    }
}

fn sign(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::Modulo => "%",
        _ => "**",
    }
}

fn numeric(
    operator: Operator,
    one: Number,
    other: Number,
    values: (&Value, &Value),
) -> Result<Value, ExprError> {
    let int = |value: i64| Ok(Value::Int(IntType::Int, value));
    let float = |value: f64| Ok(Value::Float(value));
    match (operator, one, other) {
        (Operator::Divide, ..) => float(one.float() / other.float()),
        (Operator::Power, ..) => float(one.float().powf(other.float())),
        (Operator::Add, Number::Int(one), Number::Int(other)) => int(one.wrapping_add(other)),
        (Operator::Subtract, Number::Int(one), Number::Int(other)) => int(one.wrapping_sub(other)),
        (Operator::Multiply, Number::Int(one), Number::Int(other)) => int(one.wrapping_mul(other)),
        (Operator::Modulo, Number::Int(_), Number::Int(0)) => error("integer divide by zero"),
        (Operator::Modulo, Number::Int(one), Number::Int(other)) => int(one.wrapping_rem(other)),
        (Operator::Add, ..) => float(one.float() + other.float()),
        (Operator::Subtract, ..) => float(one.float() - other.float()),
        (Operator::Multiply, ..) => float(one.float() * other.float()),
        _ => invalid(values.0, values.1, sign(operator)),
    }
}

/// What is at a place of a list, text or map. What a map does not have is nothing; a place outside of a list is an error.
pub(super) fn fetch(of: &Value, at: &Value) -> Result<Value, ExprError> {
    let place = |length: usize| -> Result<usize, ExprError> {
        let index = match number(at) {
            Some(number) => number.int(),
            None => return error(format!("invalid operation: int({})", type_name(at))),
        };
        let count = i64::try_from(length).unwrap_or(i64::MAX);
        let index = if index < 0 {
            count.saturating_add(index)
        } else {
            index
        };
        match usize::try_from(index) {
            Ok(place) if place < length => Ok(place),
            _ => error(format!("index out of range: {index} (array length is {length})")),
        }
    };
    match of {
        Value::List(list) => {
            let place = place(list.items.len())?;
            Ok(list.items[place].clone())
        }
        Value::Str(text) | Value::Bytes(text) => {
            let place = place(text.len())?;
            Ok(Value::Uint(UintType::Uint8, u64::from(text[place])))
        }
        Value::Map(map) => match at {
            Value::Str(key) => Ok(entry(map, key)),
            Value::Nil | Value::Invalid => Ok(entry(map, b"")),
            other => error(format!(
                "a value of type {} is no key of {}",
                type_name(other),
                type_name(of)
            )),
        },
        Value::Struct(fields) => match at {
            Value::Str(name) if fields.field(name).is_some() => {
                Ok(fields.field(name).cloned().unwrap_or_default())
            }
            _ => unfetched(of, at),
        },
        _ => unfetched(of, at),
    }
}

fn unfetched(of: &Value, at: &Value) -> Result<Value, ExprError> {
    error(format!(
        "cannot fetch {} from {}",
        super::shown(at),
        type_name(of)
    ))
}

fn entry(map: &Map, key: &[u8]) -> Value {
    map.get(key).unwrap_or_else(|| map.ty().elem.zero())
}

/// `a[b:c]`.
pub(super) fn slice(of: &Value, from: Option<&Value>, to: Option<&Value>) -> Result<Value, ExprError> {
    let bound = |value: Option<&Value>, length: usize, none: usize| -> Result<usize, ExprError> {
        let Some(value) = value else {
            return Ok(none);
        };
        let index = match number(value) {
            Some(number) => number.int(),
            None => return error(format!("invalid operation: int({})", type_name(value))),
        };
        let count = i64::try_from(length).unwrap_or(i64::MAX);
        let index = if index < 0 {
            count.saturating_add(index)
        } else {
            index
        };
        Ok(usize::try_from(index.max(0)).unwrap_or(usize::MAX).min(length))
    };
    let bounds = |length: usize| -> Result<(usize, usize), ExprError> {
        let end = bound(to, length, length)?;
        Ok((bound(from, length, 0)?.min(end), end))
    };
    match of {
        Value::List(list) => {
            let (from, to) = bounds(list.items.len())?;
            Ok(Value::typed_list(list.ty, list.items[from..to].to_vec()))
        }
        Value::Str(text) => {
            let (from, to) = bounds(text.len())?;
            Ok(Value::str(&text[from..to]))
        }
        other => error(format!("cannot slice {}", type_name(other))),
    }
}
