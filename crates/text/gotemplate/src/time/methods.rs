//! What templates call on times and durations.

use std::rc::Rc;

use fairway_text_gotext::duration;

use super::{SECOND, Time, Zone};
use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Functions, Param};
use crate::machine::{Limits, Machine, NoHost, Templates};
use crate::value::Value;

use Param::{Duration, Int, Str, Time as TimeParam};

fn time(args: &[Value], at: usize) -> Rc<Time> {
    match args.get(at) {
        Some(Value::Time(time)) => time.clone(),
        _ => Rc::new(Time::zero()),
    }
}

fn nanos(args: &[Value]) -> i64 {
    arg::int(args, 0)
}

fn value(time: Time) -> Result<Value, Fault> {
    Ok(Value::Time(Rc::new(time)))
}

/// Calls a method of a time or a duration outside of a template. Nothing if it has no such method.
pub fn call_method(receiver: &Value, name: &str, args: &[Value]) -> Option<Result<Value, Fault>> {
    let methods = match receiver {
        Value::Time(_) => TIME_METHODS,
        Value::Duration(_) => DURATION_METHODS,
        _ => return None,
    };
    let method = methods.iter().find(|method| method.name == name)?;
    let fits = method.params.len() == args.len();
    if !fits
        || !method
            .params
            .iter()
            .zip(args)
            .all(|(param, arg)| param.accepts(arg))
    {
        let wanted: Vec<&str> = method.params.iter().map(|param| param.name()).collect();
        let wanted = wanted.join(", ");
        return Some(Err(Fault::new(format!("{name} is called as {name}({wanted})"))));
    }
    let (functions, templates) = (Functions::default(), Templates::default());
    let mut machine = Machine::new(&functions, &templates, &NoHost, Limits::default());
    let args: Vec<Value> = std::iter::once(receiver).chain(args).cloned().collect();
    Some((method.call)(&mut machine, &args))
}

pub(crate) const TIME_METHODS: &[Func] = &[
    Func::new("Format", &[Str], |_, args| {
        Ok(time(args, 0).format(&arg::text(args, 1)).into())
    }),
    Func::new("String", &[], |_, args| Ok(time(args, 0).display().into())),
    Func::new("Unix", &[], |_, args| Ok(Value::int64(time(args, 0).unix()))),
    Func::new("UnixMilli", &[], |_, args| {
        Ok(Value::int64((time(args, 0).nanos / 1_000_000) as i64))
    }),
    Func::new("UnixMicro", &[], |_, args| {
        Ok(Value::int64((time(args, 0).nanos / 1_000) as i64))
    }),
    Func::new("UnixNano", &[], |_, args| {
        Ok(Value::int64(time(args, 0).nanos as i64))
    }),
    Func::new("Year", &[], |_, args| Ok(Value::int(time(args, 0).civil().year))),
    Func::new("Month", &[], |_, args| Ok(time(args, 0).format("January").into())),
    Func::new("Day", &[], |_, args| Ok(Value::int(time(args, 0).civil().day))),
    Func::new("Hour", &[], |_, args| Ok(Value::int(time(args, 0).civil().hour))),
    Func::new("Minute", &[], |_, args| {
        Ok(Value::int(time(args, 0).civil().minute))
    }),
    Func::new("Second", &[], |_, args| {
        Ok(Value::int(time(args, 0).civil().second))
    }),
    Func::new("Nanosecond", &[], |_, args| {
        Ok(Value::int(time(args, 0).civil().nanos))
    }),
    Func::new("Weekday", &[], |_, args| {
        Ok(time(args, 0).format("Monday").into())
    }),
    Func::new("YearDay", &[], |_, args| {
        Ok(Value::int(time(args, 0).civil().year_day))
    }),
    Func::new("UTC", &[], |_, args| value(time(args, 0).in_zone(Zone::Utc))),
    Func::new("Local", &[], |_, args| value(time(args, 0).in_zone(Zone::Utc))),
    Func::new("IsZero", &[], |_, args| {
        Ok(Value::Bool(*time(args, 0) == Time::zero()))
    }),
    Func::new("Add", &[Duration], |_, args| {
        value(time(args, 0).add(arg::int(args, 1)))
    }),
    Func::new("AddDate", &[Int, Int, Int], |_, args| {
        let time = time(args, 0);
        let mut civil = time.civil();
        civil.year = civil
            .year
            .saturating_add(arg::int(args, 1))
            .clamp(-99_999, 99_999);
        civil.month += arg::int(args, 2).clamp(-999_999, 999_999);
        civil.day += arg::int(args, 3).clamp(-99_999_999, 99_999_999);
        value(Time::from_civil(&civil, time.zone.clone()))
    }),
    Func::new("Sub", &[TimeParam], |_, args| {
        let difference = time(args, 0).nanos - time(args, 1).nanos;
        Ok(Value::Duration(
            i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX }),
        ))
    }),
    Func::new("Before", &[TimeParam], |_, args| {
        Ok(Value::Bool(time(args, 0).nanos < time(args, 1).nanos))
    }),
    Func::new("After", &[TimeParam], |_, args| {
        Ok(Value::Bool(time(args, 0).nanos > time(args, 1).nanos))
    }),
    Func::new("Equal", &[TimeParam], |_, args| {
        Ok(Value::Bool(time(args, 0) == time(args, 1)))
    }),
];

pub(crate) const DURATION_METHODS: &[Func] = &[
    Func::new("String", &[], |_, args| Ok(duration::show(nanos(args)).into())),
    Func::new("Seconds", &[], |_, args| {
        Ok(Value::Float(nanos(args) as f64 / SECOND as f64))
    }),
    Func::new("Minutes", &[], |_, args| {
        Ok(Value::Float(nanos(args) as f64 / (60 * SECOND) as f64))
    }),
    Func::new("Hours", &[], |_, args| {
        Ok(Value::Float(nanos(args) as f64 / (3600 * SECOND) as f64))
    }),
    Func::new("Milliseconds", &[], |_, args| {
        Ok(Value::int64(nanos(args) / 1_000_000))
    }),
    Func::new("Nanoseconds", &[], |_, args| Ok(Value::int64(nanos(args)))),
];
