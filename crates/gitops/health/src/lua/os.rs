//! The part of Lua's `os` that Argo CD leaves to scripts: what time it is, and how to write it. Times are in UTC.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use mlua::{Lua, Table, Value};

/// A library whose clock stands still.
pub(super) fn library(lua: &Lua, now: Timestamp) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    let time = lua.create_function(move |_, fields: Option<Table>| match fields {
        None => Ok(now.as_second()),
        Some(fields) => seconds(&fields),
    })?;
    library.set("time", time)?;
    let date = lua.create_function(move |lua, (format, at): (Option<String>, Option<f64>)| {
        let at = match at {
            None => now,
            Some(seconds) => Timestamp::from_second(seconds as i64)
                .map_err(|_| mlua::Error::runtime("os.date: the time is out of range"))?,
        };
        let at = at.to_zoned(TimeZone::UTC).datetime();
        let format = format.as_deref().unwrap_or("%c");
        let format = format.strip_prefix('!').unwrap_or(format);
        if format.starts_with("*t") {
            return Ok(Value::Table(fields(lua, at)?));
        }
        Ok(Value::String(lua.create_string(write(format, at))?))
    })?;
    library.set("date", date)?;
    Ok(library)
}

/// Seconds since the epoch of a table of fields; those that are too large carry over, as in C.
fn seconds(fields: &Table) -> mlua::Result<i64> {
    let number = |name: &str, default: i64| -> mlua::Result<i64> {
        Ok(match fields.raw_get::<Value>(name)? {
            Value::Integer(number) => number,
            Value::Number(number) => number as i64,
            _ => default,
        })
    };
    let out_of_range = || mlua::Error::runtime("os.time: the time is out of range");
    let bounded = |value: i64| {
        (value.abs() < 1_000_000_000)
            .then_some(value)
            .ok_or_else(out_of_range)
    };
    let year = i16::try_from(number("year", -1)?).map_err(|_| out_of_range())?;
    let start = DateTime::new(year, 1, 1, 0, 0, 0, 0).map_err(|_| out_of_range())?;
    let steps = [
        Span::new().try_months(bounded(number("month", -1)? - 1)?),
        Span::new().try_days(bounded(number("day", -1)? - 1)?),
        Span::new().try_hours(bounded(number("hour", 12)?)?),
        Span::new().try_minutes(bounded(number("min", 0)?)?),
        Span::new().try_seconds(bounded(number("sec", 0)?)?),
    ];
    let mut at = start;
    for step in steps {
        let step = step.map_err(|_| out_of_range())?;
        at = at.checked_add(step).map_err(|_| out_of_range())?;
    }
    let zoned = at.to_zoned(TimeZone::UTC).map_err(|_| out_of_range())?;
    Ok(zoned.timestamp().as_second())
}

fn fields(lua: &Lua, at: DateTime) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("year", at.year())?;
    table.set("month", at.month())?;
    table.set("day", at.day())?;
    table.set("hour", at.hour())?;
    table.set("min", at.minute())?;
    table.set("sec", at.second())?;
    table.set("wday", at.weekday().to_sunday_zero_offset() + 1)?;
    table.set("yday", at.day_of_year())?;
    table.set("isdst", false)?;
    Ok(table)
}

/// The conversions that Argo CD knows; others stay as they are.
fn write(format: &str, at: DateTime) -> String {
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let Some(code) = chars.next() else {
            out.push('%');
            break;
        };
        let pattern = match code {
            '%' => "%%",
            'a' => "%a",
            'A' => "%A",
            'b' => "%b",
            'B' => "%B",
            'c' => "%d %b %y %H:%M UTC",
            'd' => "%d",
            'F' => "%Y-%m-%d",
            'H' => "%H",
            'I' => "%I",
            'm' => "%m",
            'M' => "%M",
            'p' => "%p",
            'P' => "%P",
            'S' => "%S",
            'x' => "%H/%M/%S",
            'X' => "%H:%M:%S",
            'y' => "%y",
            'Y' => "%Y",
            'z' => "+0000",
            'Z' => "UTC",
            'w' => {
                out.push_str(&at.weekday().to_sunday_zero_offset().to_string());
                continue;
            }
            other => {
                out.push('%');
                out.push(other);
                continue;
            }
        };
        out.push_str(&at.strftime(pattern).to_string());
    }
    out
}
