//! Functions that expressions have without being given them. Those with closures are in [`loops`], those on texts in
//! [`texts`], those on lists and maps in [`lists`]; here are the rest, and the table of all names.

mod lists;
mod loops;
mod texts;

use std::cmp::Ordering;
use std::rc::Rc;

use fairway_text_gotemplate::Value;
use fairway_text_gotemplate::json_text::{self, Style};
use fairway_text_gotemplate::time::{Time, Zone, parse_layout};
use fairway_text_gotext::duration;

use super::eval::{Evaluator, size, weigh};
use super::numbers::{Number, number};
use super::operators::{compare, text, type_name};
use super::parse::Node;
use super::{ExprError, error};

pub(super) use texts::find;

/// A function by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Builtin(&'static str);

/// With a closure as second argument; how many arguments at least and at most.
const LOOPS: [(&str, usize, usize); 15] = [
    ("all", 2, 2),
    ("none", 2, 2),
    ("any", 2, 2),
    ("one", 2, 2),
    ("filter", 2, 2),
    ("map", 2, 2),
    ("count", 1, 2),
    ("sum", 1, 2),
    ("find", 2, 2),
    ("findIndex", 2, 2),
    ("findLast", 2, 2),
    ("findLastIndex", 2, 2),
    ("groupBy", 2, 2),
    ("sortBy", 2, 3),
    ("reduce", 2, 3),
];

/// Without one.
const PLAIN: [(&str, usize, usize); 53] = [
    ("len", 1, 1),
    ("type", 1, 1),
    ("abs", 1, 1),
    ("ceil", 1, 1),
    ("floor", 1, 1),
    ("round", 1, 1),
    ("int", 1, 1),
    ("float", 1, 1),
    ("string", 1, 1),
    ("trim", 1, 2),
    ("trimPrefix", 1, 2),
    ("trimSuffix", 1, 2),
    ("upper", 1, 1),
    ("lower", 1, 1),
    ("split", 2, 3),
    ("splitAfter", 2, 3),
    ("replace", 3, 4),
    ("repeat", 2, 2),
    ("join", 1, 2),
    ("indexOf", 2, 2),
    ("lastIndexOf", 2, 2),
    ("hasPrefix", 2, 2),
    ("hasSuffix", 2, 2),
    ("max", 1, usize::MAX),
    ("min", 1, usize::MAX),
    ("mean", 1, usize::MAX),
    ("median", 1, usize::MAX),
    ("toJSON", 1, 1),
    ("fromJSON", 1, 1),
    ("toBase64", 1, 1),
    ("fromBase64", 1, 1),
    ("now", 0, 0),
    ("duration", 1, 1),
    ("date", 1, 3),
    ("first", 1, 1),
    ("last", 1, 1),
    ("get", 2, 2),
    ("take", 2, 2),
    ("keys", 1, 1),
    ("values", 1, 1),
    ("toPairs", 1, 1),
    ("reverse", 1, 1),
    ("uniq", 1, 1),
    ("concat", 1, usize::MAX),
    ("flatten", 1, 1),
    ("sort", 1, 2),
    ("bitand", 2, 2),
    ("bitor", 2, 2),
    ("bitxor", 2, 2),
    ("bitnand", 2, 2),
    ("bitshl", 2, 2),
    ("bitshr", 2, 2),
    ("bitnot", 1, 1),
];

impl Builtin {
    pub(super) fn named(name: &str) -> Option<Self> {
        let mut all = LOOPS.iter().chain(&PLAIN);
        all.find(|(known, ..)| *known == name)
            .map(|(known, ..)| Self(known))
    }

    /// How many arguments it takes, if the second one is a closure.
    pub(super) fn closure(self) -> Option<(usize, usize)> {
        let found = LOOPS.iter().find(|(name, ..)| *name == self.0);
        found.map(|(_, least, most)| (*least, *most))
    }
}

pub(super) fn call<'a>(
    evaluator: &mut Evaluator<'a>,
    builtin: Builtin,
    arguments: &'a [Node],
) -> Result<Value, ExprError> {
    let name = builtin.0;
    if builtin.closure().is_some() {
        return loops::call(evaluator, name, arguments);
    }
    let bounds = PLAIN.iter().find(|(known, ..)| *known == name);
    let (least, most) = bounds.map_or((0, usize::MAX), |(_, least, most)| (*least, *most));
    if !(least..=most).contains(&arguments.len()) {
        let wanted = if least == most {
            least.to_string()
        } else {
            format!("{least} or more")
        };
        let given = arguments.len();
        return error(format!(
            "invalid number of arguments for {name} (expected {wanted}, got {given})"
        ));
    }
    let values = evaluator.arguments(arguments)?;
    evaluator.budget.spend(values.iter().map(size).sum())?;
    let made = plain(evaluator, name, &values)?;
    evaluator.budget.spend(size(&made))?;
    Ok(made)
}

fn plain(evaluator: &mut Evaluator<'_>, name: &'static str, values: &[Value]) -> Result<Value, ExprError> {
    if let Some(found) = texts::call(evaluator, name, values) {
        return found;
    }
    if let Some(found) = lists::call(evaluator, name, values) {
        return found;
    }
    let one = values.first().unwrap_or(&Value::Nil);
    match name {
        "type" => Ok(Value::str(kind(one))),
        "abs" => match number(one) {
            Some(Number::Int(int)) => Ok(Value::int(int.wrapping_abs())),
            Some(Number::Float(float)) => Ok(Value::Float(float.abs())),
            None => unfit(name, one),
        },
        "ceil" => rounded(name, one, f64::ceil),
        "floor" => rounded(name, one, f64::floor),
        "round" => rounded(name, one, f64::round),
        "int" => match (number(one), one) {
            (Some(number), _) => Ok(Value::int(number.int())),
            (None, Value::Duration(nanos)) => Ok(Value::int(*nanos)),
            (None, Value::Str(text)) => match String::from_utf8_lossy(text).parse() {
                Ok(int) => Ok(Value::int(int)),
                Err(_) => error(format!("invalid operation: int({})", super::shown(one))),
            },
            _ => unfit(name, one),
        },
        "float" => match (number(one), one) {
            (Some(number), _) => Ok(Value::Float(number.float())),
            (None, Value::Str(text)) => match String::from_utf8_lossy(text).parse() {
                Ok(float) => Ok(Value::Float(float)),
                Err(_) => error(format!("invalid operation: float({})", super::shown(one))),
            },
            _ => unfit(name, one),
        },
        "string" => {
            weigh(one, &mut evaluator.budget, 0)?;
            Ok(super::shown(one).into())
        }
        "max" | "min" | "mean" | "median" => aggregate(evaluator, name, values),
        "toJSON" => {
            weigh(one, &mut evaluator.budget, 0)?;
            let style = Style {
                pretty: true,
                ..Style::default()
            };
            json_text::write(one, style).map(Value::from).map_err(ExprError)
        }
        "fromJSON" => json_text::read(text(one, name)?).map_err(ExprError),
        "now" => Ok(Value::Time(Rc::new(Time::utc(evaluator.facts().now)))),
        "duration" => {
            let written = String::from_utf8_lossy(text(one, name)?);
            duration::parse(&written).map(Value::Duration).map_err(ExprError)
        }
        "date" => date(values),
        _ => bits(name, values),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Nil | Value::Invalid => "nil",
        Value::Bool(_) => "bool",
        Value::Int(..) => "int",
        Value::Uint(..) => "uint",
        Value::Float(_) => "float",
        Value::Str(_) => "string",
        Value::List(_) | Value::Bytes(_) => "array",
        Value::Map(_) => "map",
        Value::Time(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::Struct(_) => "struct",
    }
}

fn unfit<T>(name: &str, value: &Value) -> Result<T, ExprError> {
    error(format!("invalid argument for {name} (type {})", type_name(value)))
}

fn rounded(name: &str, value: &Value, round: fn(f64) -> f64) -> Result<Value, ExprError> {
    match number(value) {
        Some(number) => Ok(Value::Float(round(number.float()))),
        None => unfit(name, value),
    }
}

/// All numbers, those within lists among them.
fn numbers(
    evaluator: &mut Evaluator<'_>,
    name: &str,
    values: &[Value],
    depth: u32,
    found: &mut Vec<Value>,
) -> Result<(), ExprError> {
    const MAX_DEPTH: u32 = 20;
    for value in values {
        evaluator.budget.spend(1)?;
        match value {
            Value::List(list) if depth < MAX_DEPTH => {
                numbers(evaluator, name, &list.items, depth + 1, found)?;
            }
            other if number(other).is_some() => found.push(other.clone()),
            other => return unfit(name, other),
        }
    }
    Ok(())
}

fn aggregate(evaluator: &mut Evaluator<'_>, name: &str, values: &[Value]) -> Result<Value, ExprError> {
    let mut all = Vec::new();
    numbers(evaluator, name, values, 0, &mut all)?;
    let floats = || -> Vec<f64> { all.iter().filter_map(number).map(Number::float).collect() };
    let count = all.len() as f64;
    Ok(match name {
        "mean" if all.is_empty() => Value::Float(0.0),
        "mean" => Value::Float(floats().iter().sum::<f64>() / count),
        "median" => {
            let mut floats = floats();
            floats.sort_by(f64::total_cmp);
            let middle = floats.len() / 2;
            match floats.len() {
                0 => Value::Float(0.0),
                length if length % 2 == 1 => Value::Float(floats[middle]),
                _ => Value::Float(f64::midpoint(floats[middle - 1], floats[middle])),
            }
        }
        _ => {
            let wanted = if name == "max" {
                Ordering::Less
            } else {
                Ordering::Greater
            };
            let mut best = Value::Nil;
            for value in all {
                if best.is_nil() || compare(&best, &value, "<")? == Some(wanted) {
                    best = value;
                }
            }
            best
        }
    })
}

/// A moment that is written in one of the usual ways, or in the way that is given; where, if it is said.
fn date(values: &[Value]) -> Result<Value, ExprError> {
    const LAYOUTS: [&str; 7] = [
        "2006-01-02",
        "15:04:05",
        "2006-01-02 15:04:05",
        "2006-01-02T15:04:05Z07:00",
        "02 Jan 06 15:04 MST",
        "Monday, 02-Jan-06 15:04:05 MST",
        "Mon, 02 Jan 2006 15:04:05 MST",
    ];
    let words: Vec<String> = values
        .iter()
        .map(|value| text(value, "date").map(|text| String::from_utf8_lossy(text).into_owned()))
        .collect::<Result<_, _>>()?;
    let made = |time: Time| Ok(Value::Time(Rc::new(time)));
    match &words[..] {
        [date, layout] => made(parse_layout(layout, date, &Zone::Utc).map_err(ExprError)?),
        [date, layout, zone] => {
            let zone = Zone::load(zone).ok_or_else(|| ExprError(format!("unknown time zone {zone}")))?;
            made(parse_layout(layout, date, &zone).map_err(ExprError)?)
        }
        [date, ..] => {
            let mut tried = LAYOUTS
                .iter()
                .filter_map(|layout| parse_layout(layout, date, &Zone::Utc).ok());
            match tried.next() {
                Some(time) => made(time),
                None => error(format!("invalid date {date}")),
            }
        }
        [] => error("date wants a text"),
    }
}

fn bits(name: &str, values: &[Value]) -> Result<Value, ExprError> {
    let int = |at: usize| match values.get(at) {
        Some(Value::Int(_, int)) => Ok(*int),
        other => unfit(name, other.unwrap_or(&Value::Nil)),
    };
    let one = int(0)?;
    if name == "bitnot" {
        return Ok(Value::int(!one));
    }
    let other = int(1)?;
    let shift = || match u32::try_from(other) {
        Ok(shift) => Ok(shift),
        Err(_) => error(format!(
            "invalid operation: negative shift count {other} (type int)"
        )),
    };
    Ok(Value::int(match name {
        "bitand" => one & other,
        "bitor" => one | other,
        "bitxor" => one ^ other,
        "bitnand" => one & !other,
        "bitshl" => one.checked_shl(shift()?).unwrap_or(0),
        "bitshr" => one.checked_shr(shift()?).unwrap_or(if one < 0 { -1 } else { 0 }),
        _ => return error(format!("the function {name} is not served")),
    }))
}
