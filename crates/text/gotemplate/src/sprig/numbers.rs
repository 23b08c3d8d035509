//! Arithmetic, and lists of numbers.

use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::machine::Machine;
use crate::sprig::cast::{to_float, to_int};
use crate::sprig::decimal::{Operation, fold};
use crate::text::lossy;
use crate::value::{INT_LIST, Value};

use Param::{Any, Float, Int, Str};

type Answer = Result<Value, Fault>;

pub(super) const TABLE: &[Func] = &[
    Func::new("atoi", &[Str], |_, args| {
        Ok(Value::int(arg::text(args, 0).parse().unwrap_or(0)))
    }),
    Func::new("int64", &[Any], |_, args| {
        Ok(Value::int64(to_int(arg::any(args, 0))))
    }),
    Func::new("int", &[Any], |_, args| Ok(Value::int(to_int(arg::any(args, 0))))),
    Func::new("float64", &[Any], |_, args| {
        Ok(Value::Float(to_float(arg::any(args, 0))))
    }),
    Func::new("toDecimal", &[Any], to_decimal),
    Func::variadic("seq", &[Int], seq),
    Func::new("until", &[Int], |machine, args| {
        let count = arg::int(args, 0);
        steps(machine, 0, count, if count < 0 { -1 } else { 1 }).map(int_list)
    }),
    Func::new("untilStep", &[Int, Int, Int], |machine, args| {
        steps(machine, arg::int(args, 0), arg::int(args, 1), arg::int(args, 2)).map(int_list)
    }),
    Func::new("add1", &[Any], |_, args| {
        Ok(Value::int64(to_int(arg::any(args, 0)).wrapping_add(1)))
    }),
    Func::variadic("add", &[Any], |_, args| {
        Ok(Value::int64(args.iter().map(to_int).fold(0, i64::wrapping_add)))
    }),
    Func::new("sub", &[Any, Any], |_, args| {
        Ok(Value::int64(
            to_int(arg::any(args, 0)).wrapping_sub(to_int(arg::any(args, 1))),
        ))
    }),
    Func::new("div", &[Any, Any], |_, args| divide(args, i64::wrapping_div)),
    Func::new("mod", &[Any, Any], |_, args| divide(args, i64::wrapping_rem)),
    Func::variadic("mul", &[Any, Any], |_, args| {
        Ok(Value::int64(args.iter().map(to_int).fold(1, i64::wrapping_mul)))
    }),
    Func::new("add1f", &[Any], |_, args| {
        decimal(to_float(arg::any(args, 0)), &[Value::Float(1.0)], Operation::Add)
    }),
    Func::variadic("addf", &[Any], |_, args| decimal(0.0, args, Operation::Add)),
    Func::variadic("subf", &[Any, Any], |_, args| {
        rest_decimal(args, Operation::Subtract)
    }),
    Func::variadic("divf", &[Any, Any], |_, args| {
        rest_decimal(args, Operation::Divide)
    }),
    Func::variadic("mulf", &[Any, Any], |_, args| {
        rest_decimal(args, Operation::Multiply)
    }),
    Func::variadic("biggest", &[Any, Any], |_, args| {
        Ok(Value::int64(args.iter().map(to_int).max().unwrap_or(0)))
    }),
    Func::variadic("max", &[Any, Any], |_, args| {
        Ok(Value::int64(args.iter().map(to_int).max().unwrap_or(0)))
    }),
    Func::variadic("min", &[Any, Any], |_, args| {
        Ok(Value::int64(args.iter().map(to_int).min().unwrap_or(0)))
    }),
    Func::variadic("maxf", &[Any, Any], |_, args| floats(args, f64::max)),
    Func::variadic("minf", &[Any, Any], |_, args| floats(args, f64::min)),
    Func::new("ceil", &[Any], |_, args| {
        Ok(Value::Float(to_float(arg::any(args, 0)).ceil()))
    }),
    Func::new("floor", &[Any], |_, args| {
        Ok(Value::Float(to_float(arg::any(args, 0)).floor()))
    }),
    Func::variadic("round", &[Any, Int, Float], round),
];

fn to_decimal(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let text = crate::fmt::print(arg::any(args, 0))?;
    Ok(Value::int64(i64::from_str_radix(&lossy(&text), 8).unwrap_or(0)))
}

fn divide(args: &[Value], operation: fn(i64, i64) -> i64) -> Answer {
    match to_int(arg::any(args, 1)) {
        0 => Err("runtime error: integer divide by zero".into()),
        divisor => Ok(Value::int64(operation(to_int(arg::any(args, 0)), divisor))),
    }
}

fn decimal(first: f64, others: &[Value], operation: Operation) -> Answer {
    let others: Vec<f64> = others.iter().map(to_float).collect();
    Ok(Value::Float(fold(first, &others, operation)?))
}

fn rest_decimal(args: &[Value], operation: Operation) -> Answer {
    decimal(
        to_float(arg::any(args, 0)),
        args.get(1..).unwrap_or(&[]),
        operation,
    )
}

fn floats(args: &[Value], choose: fn(f64, f64) -> f64) -> Answer {
    Ok(Value::Float(
        args.iter().map(to_float).reduce(choose).unwrap_or(0.0),
    ))
}

fn round(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let threshold = if args.len() > 2 { arg::float(args, 2) } else { 0.5 };
    let power = 10_f64.powf(arg::int(args, 1) as f64);
    let digits = power * to_float(arg::any(args, 0));
    let rounded = if digits.fract() >= threshold {
        digits.ceil()
    } else {
        digits.floor()
    };
    Ok(Value::Float(rounded / power))
}

fn steps(machine: &mut Machine<'_>, start: i64, stop: i64, step: i64) -> Result<Vec<i64>, Fault> {
    let mut values = Vec::new();
    if (stop < start && step >= 0) || (stop >= start && step <= 0) {
        return Ok(values);
    }
    let mut at = start;
    while if stop < start { at > stop } else { at < stop } {
        machine.spend(1)?;
        values.push(at);
        match at.checked_add(step) {
            Some(next) => at = next,
            None => break,
        }
    }
    Ok(values)
}

fn int_list(values: Vec<i64>) -> Value {
    Value::typed_list(&INT_LIST, values.into_iter().map(Value::int).collect())
}

fn seq(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let toward = |start: i64, end: i64| if end < start { -1 } else { 1 };
    let values = match args.len() {
        1 => {
            let end = arg::int(args, 0);
            let step = toward(1, end);
            steps(machine, 1, end.saturating_add(step), step)?
        }
        2 => {
            let (start, end) = (arg::int(args, 0), arg::int(args, 1));
            let step = toward(start, end);
            steps(machine, start, end.saturating_add(step), step)?
        }
        3 => {
            let (start, step, end) = (arg::int(args, 0), arg::int(args, 1), arg::int(args, 2));
            if end < start && step > 0 {
                return Ok("".into());
            }
            steps(machine, start, end.saturating_add(toward(start, end)), step)?
        }
        _ => return Ok("".into()),
    };
    let texts: Vec<String> = values.iter().map(i64::to_string).collect();
    Ok(texts.join(" ").into())
}
