//! Dates. `now` is the host's time, and `Local` is UTC.

use std::rc::Rc;

use fairway_text_gotext::duration;

use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::machine::Machine;
use crate::text::lossy;
use crate::time::{SECOND, Time, Zone, parse_layout};
use crate::value::Value;

use Param::{Any, Str, Time as TimeParam};

type Answer = Result<Value, Fault>;

pub(super) const TABLE: &[Func] = &[
    Func::new("now", &[], |machine, _| Ok(time_value(Time::utc(machine.now())))),
    Func::new("ago", &[Any], |machine, args| {
        let then = match arg::any(args, 0) {
            value @ (Value::Time(_) | Value::Int(..)) => moment(machine, value),
            _ => Time::utc(machine.now()),
        };
        Ok(duration::show(duration::round(difference(machine, &then), SECOND)).into())
    }),
    Func::new("date", &[Str, Any], |machine, args| {
        Ok(in_zone(machine, &arg::text(args, 0), arg::any(args, 1), "Local"))
    }),
    Func::new("date_in_zone", &[Str, Any, Str], date_in_zone),
    Func::new("dateInZone", &[Str, Any, Str], date_in_zone),
    Func::new("htmlDate", &[Any], |machine, args| {
        Ok(in_zone(machine, "2006-01-02", arg::any(args, 0), "Local"))
    }),
    Func::new("htmlDateInZone", &[Any, Str], |machine, args| {
        Ok(in_zone(
            machine,
            "2006-01-02",
            arg::any(args, 0),
            &arg::text(args, 1),
        ))
    }),
    Func::new("date_modify", &[Str, TimeParam], modify),
    Func::new("dateModify", &[Str, TimeParam], modify),
    Func::new("must_date_modify", &[Str, TimeParam], must_modify),
    Func::new("mustDateModify", &[Str, TimeParam], must_modify),
    Func::new("toDate", &[Str, Str], |_, args| {
        let parsed = parse_layout(&arg::text(args, 0), &arg::text(args, 1), &Zone::Utc);
        Ok(time_value(parsed.unwrap_or_else(|_| Time::zero())))
    }),
    Func::new("mustToDate", &[Str, Str], |_, args| {
        Ok(time_value(parse_layout(
            &arg::text(args, 0),
            &arg::text(args, 1),
            &Zone::Utc,
        )?))
    }),
    Func::new("unixEpoch", &[TimeParam], |_, args| match arg::any(args, 0) {
        Value::Time(time) => Ok(time.unix().to_string().into()),
        _ => Ok("0".into()),
    }),
    Func::new("duration", &[Any], |_, args| {
        let seconds = match arg::any(args, 0) {
            Value::Str(text) => lossy(text).parse().unwrap_or(0),
            Value::Int(crate::value::IntType::Int64, seconds) => *seconds,
            _ => 0,
        };
        Ok(duration::show(i64::wrapping_mul(seconds, SECOND)).into())
    }),
    Func::new("durationRound", &[Any], duration_round),
];

fn time_value(time: Time) -> Value {
    Value::Time(Rc::new(time))
}

fn difference(machine: &Machine<'_>, then: &Time) -> i64 {
    let nanos = machine.now() - then.nanos;
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// A time, seconds since 1970, or now.
fn moment(machine: &Machine<'_>, value: &Value) -> Time {
    match value {
        Value::Time(time) => (**time).clone(),
        Value::Int(_, seconds) => Time::utc(i128::from(*seconds) * i128::from(SECOND)),
        _ => Time::utc(machine.now()),
    }
}

fn in_zone(machine: &Machine<'_>, layout: &str, value: &Value, zone: &str) -> Value {
    let zone = Zone::load(zone).unwrap_or(Zone::Utc);
    moment(machine, value).in_zone(zone).format(layout).into()
}

fn date_in_zone(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    Ok(in_zone(
        machine,
        &arg::text(args, 0),
        arg::any(args, 1),
        &arg::text(args, 2),
    ))
}

fn must_modify(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let nanos = duration::parse(&arg::text(args, 0))?;
    match arg::any(args, 1) {
        Value::Time(time) => Ok(time_value(time.add(nanos))),
        other => Ok(other.clone()),
    }
}

fn modify(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    Ok(must_modify(machine, args).unwrap_or_else(|_| arg::any(args, 1).clone()))
}

fn duration_round(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let nanos = match arg::any(args, 0) {
        Value::Str(text) => duration::parse(&lossy(text)).unwrap_or(0),
        Value::Int(crate::value::IntType::Int64, nanos) => *nanos,
        Value::Time(time) => difference(machine, time),
        _ => 0,
    };
    let seconds = SECOND.unsigned_abs();
    let units = [
        (seconds * 86_400 * 365, "y"),
        (seconds * 86_400 * 30, "mo"),
        (seconds * 86_400, "d"),
        (seconds * 3600, "h"),
        (seconds * 60, "m"),
        (seconds, "s"),
    ];
    let size = nanos.unsigned_abs();
    let unit = units.iter().find(|(unit, _)| size > *unit);
    Ok(unit
        .map_or("0s".to_owned(), |(unit, name)| format!("{}{name}", size / unit))
        .into())
}
