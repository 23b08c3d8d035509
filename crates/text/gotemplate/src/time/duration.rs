//! Durations: `1h2m3.5s`.

use super::SECOND;

/// Go's `Duration.String`.
pub fn show_duration(nanos: i64) -> String {
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
    let second = SECOND.unsigned_abs();
    let body = match total {
        0 => "0s".to_owned(),
        1..1_000 => format!("{total}ns"),
        1_000..1_000_000 => fraction(total, 1_000, "µs"),
        1_000_000..1_000_000_000 => fraction(total, 1_000_000, "ms"),
        _ => {
            let (seconds, minutes) = (total % (60 * second), total / (60 * second));
            let tail = fraction(seconds, second, "s");
            match (minutes / 60, minutes % 60) {
                (0, 0) => tail,
                (0, minutes) => format!("{minutes}m{tail}"),
                (hours, minutes) => format!("{hours}h{minutes}m{tail}"),
            }
        }
    };
    format!("{sign}{body}")
}

/// Go's `time.ParseDuration`.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", crate::text::quote(text.as_bytes()));
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
        let quoted = crate::text::quote(text.as_bytes());
        let unit: u64 = match unit_name {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" => return Err(format!("time: missing unit in duration {quoted}")),
            other => {
                let other = crate::text::quote(other.as_bytes());
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

/// Go's `Duration.Round`: to the nearest multiple, halves away from zero.
pub fn round_duration(nanos: i64, unit: i64) -> i64 {
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
