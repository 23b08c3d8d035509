//! Durations as Go writes and reads them: `1h2m3.5s`. They are in everybody's settings, so one reader must do for all.

use std::time::Duration;

use crate::strings::quote;

const SECOND: u64 = 1_000_000_000;

/// Go's `Duration.String`.
pub fn show(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let total = nanos.unsigned_abs();
    let fraction = |value: u64, unit: u64, name: &str| {
        let (whole, rest) = (value / unit, value % unit);
        let digits = unit.to_string().len() - 1;
        let mut text = whole.to_string();
        if rest > 0 {
            let rest = format!("{rest:0digits$}");
            text.push('.');
            text.push_str(rest.trim_end_matches('0'));
        }
        text + name
    };
    let body = match total {
        0 => "0s".to_owned(),
        1..1_000 => format!("{total}ns"),
        1_000..1_000_000 => fraction(total, 1_000, "µs"),
        1_000_000..1_000_000_000 => fraction(total, 1_000_000, "ms"),
        _ => {
            let (seconds, minutes) = (total % (60 * SECOND), total / (60 * SECOND));
            let tail = fraction(seconds, SECOND, "s");
            match (minutes / 60, minutes % 60) {
                (0, 0) => tail,
                (0, minutes) => format!("{minutes}m{tail}"),
                (hours, minutes) => format!("{hours}h{minutes}m{tail}"),
            }
        }
    };
    format!("{sign}{body}")
}

/// Go's `time.ParseDuration`, in nanoseconds.
pub fn parse(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quote(text.as_bytes()));
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(invalid());
        }
        let end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit_name, after) = after.split_at(end);
        let quoted = quote(text.as_bytes());
        let unit: u64 = match unit_name {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" => return Err(format!("time: missing unit in duration {quoted}")),
            other => {
                let other = quote(other.as_bytes());
                return Err(format!("time: unknown unit {other} in duration {quoted}"));
            }
        };
        let whole: u64 = if whole.is_empty() {
            0
        } else {
            whole.parse().map_err(|_| invalid())?
        };
        let mut value = whole.checked_mul(unit).ok_or_else(invalid)?;
        if !fraction.is_empty() {
            let part: f64 = format!("0.{fraction}").parse().map_err(|_| invalid())?;
            value = value
                .checked_add((part * unit as f64) as u64)
                .ok_or_else(invalid)?;
        }
        total = total.checked_add(value).ok_or_else(invalid)?;
        rest = after;
    }
    match (negative, i64::try_from(total)) {
        (true, _) if total <= 1 << 63 => Ok((total as i64).wrapping_neg()),
        (false, Ok(total)) => Ok(total),
        _ => Err(invalid()),
    }
}

/// The same, of what cannot be negative.
pub fn span(text: &str) -> Option<Duration> {
    let nanos = u64::try_from(parse(text).ok()?).ok()?;
    Some(Duration::from_nanos(nanos))
}

/// Go's `Duration.Round`: to the nearest multiple, halves away from zero.
pub fn round(nanos: i64, unit: i64) -> i64 {
    if unit <= 0 {
        return nanos;
    }
    let rest = nanos % unit;
    let down = nanos - rest;
    match rest.unsigned_abs() * 2 < unit.unsigned_abs() {
        true => down,
        false => down.saturating_add(unit * rest.signum()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_read_and_shown() {
        for text in ["1h2m3.5s", "1.5µs", "-2m0s", "0s", "300ms", "2540400h10m10s"] {
            assert_eq!(show(parse(text).unwrap()), text);
        }
        assert!(parse("1").unwrap_err().contains("missing unit"));
        assert!(parse("1x").unwrap_err().contains("unknown unit"));
    }

    #[test]
    fn spans_are_not_negative() {
        for (text, expected) in [
            ("0", Some(0)),
            ("+90s", Some(90_000)),
            ("1h30m", Some(5_400_000)),
            (".5s", Some(500)),
            ("-1s", None),
            ("", None),
            ("5", None),
            ("1.2.3s", None),
            ("9999999999999999999h", None),
        ] {
            assert_eq!(span(text), expected.map(Duration::from_millis), "{text:?}");
        }
    }
}
