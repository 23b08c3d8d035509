//! Getters of timestamps, in UTC or a given zone, and of durations.

use super::arg;
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::{Function, Registry};
use crate::value::Value;
use crate::value::time::Civil;

pub(super) fn register(r: &mut Registry) {
    let getters: [(&'static str, Function); 10] = [
        ("getFullYear", |_, args| get(args, |c| c.year)),
        ("getMonth", |_, args| get(args, |c| c.month - 1)),
        ("getDayOfYear", |_, args| get(args, |c| c.day_of_year)),
        ("getDayOfMonth", |_, args| get(args, |c| c.day - 1)),
        ("getDate", |_, args| get(args, |c| c.day)),
        ("getDayOfWeek", |_, args| get(args, |c| c.day_of_week)),
        ("getHours", |_, args| get(args, |c| c.hours)),
        ("getMinutes", |_, args| get(args, |c| c.minutes)),
        ("getSeconds", |_, args| get(args, |c| c.seconds)),
        ("getMilliseconds", |_, args| {
            get(args, |c| i64::from(c.nanos / 1_000_000))
        }),
    ];
    for (name, getter) in getters {
        r.add(name, "timestamp.() -> int", Cost::Fixed(1), getter);
        r.add(name, "timestamp.(string) -> int", Cost::Fixed(1), getter);
    }
    let getters: [(&'static str, Function); 4] = [
        ("getHours", |_, args| total(args, 3_600_000_000_000)),
        ("getMinutes", |_, args| total(args, 60_000_000_000)),
        ("getSeconds", |_, args| total(args, 1_000_000_000)),
        ("getMilliseconds", |_, args| total(args, 1_000_000)),
    ];
    for (name, getter) in getters {
        r.add(name, "duration.() -> int", Cost::Fixed(1), getter);
    }
}

fn get<'a>(args: &[Value<'a>], field: fn(&Civil) -> i64) -> Result<Value<'a>, Error> {
    let timestamp = arg!(args, 0, Timestamp);
    let zone = args.get(1).and_then(Value::as_str);
    Ok(Value::Int(field(&timestamp.civil(zone)?)))
}

/// Durations count in whole units from their start, so a minute and a half has 90 seconds.
fn total<'a>(args: &[Value<'a>], unit: i64) -> Result<Value<'a>, Error> {
    Ok(Value::Int(arg!(args, 0, Duration).0 / unit))
}
