//! Numbers as Go reads and prints them.

use serde_json::{Number, Value};

/// A float as JSON carries it from Go to Go: integral values lose their point, so they come back as integers. None
/// for values that JSON does not have.
pub(crate) fn json_number(value: f64) -> Option<Value> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    // In range and without fraction, so the casts are exact.
    if value.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&value) {
        return Some(Value::Number((value as i64).into()));
    }
    if value.fract() == 0.0 && (TWO_TO_63..2.0 * TWO_TO_63).contains(&value) {
        return Some(Value::Number((value as u64).into()));
    }
    Number::from_f64(value).map(Value::Number)
}

/// What a piece of text is as a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum GoNumber {
    Int(i64),
    Uint(u64),
    Float(f64),
}

/// Go's `ParseInt(text, 0, 64)`, then `ParseUint(text, 0, 64)`: base prefixes `0x`, `0b`, `0o` and `0`. Only signed
/// numbers may have a sign, so `+` in front of one above their range makes it no integer.
pub(crate) fn parse_integer(text: &str) -> Option<GoNumber> {
    let (signed, negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, true, text.get(1..)?),
        b'+' => (true, false, text.get(1..)?),
        _ => (false, false, text),
    };
    let bytes = digits.as_bytes();
    let (radix, digits) = match (bytes.first()?, bytes.get(1).map(u8::to_ascii_lowercase)) {
        (b'0', Some(b'x')) => (16, digits.get(2..)?),
        (b'0', Some(b'b')) => (2, digits.get(2..)?),
        (b'0', Some(b'o')) => (8, digits.get(2..)?),
        (b'0', Some(_)) => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    // The standard library would accept a second sign.
    if !digits.as_bytes().first()?.is_ascii_alphanumeric() {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0i64.checked_sub_unsigned(magnitude).map(GoNumber::Int);
    }
    match i64::try_from(magnitude) {
        Ok(value) => Some(GoNumber::Int(value)),
        Err(_) if !signed => Some(GoNumber::Uint(magnitude)),
        Err(_) => None,
    }
}

/// A decimal float in YAML's form, `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, that fits into 64 bits.
pub(crate) fn parse_yaml_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let well_formed = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && all_digits(fraction),
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction),
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    if !well_formed {
        return None;
    }
    if let Some(exponent) = exponent {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if digits.is_empty() || !all_digits(digits) {
            return None;
        }
    }
    // Go calls a number out of range an error, where Rust gives infinity.
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

/// A float that starts with a point. Go reads it with `ParseFloat`, which allows underscores between digits.
pub(crate) fn parse_point_float(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let digit_at = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let misplaced = |at: usize| bytes[at] == b'_' && !(digit_at(at.checked_sub(1)) && digit_at(Some(at + 1)));
    if (0..bytes.len()).any(misplaced) {
        return None;
    }
    parse_yaml_float(&text.replace('_', ""))
}

/// Go's `FormatFloat(value, 'g', -1, bits)` for 32 or 64 bits: the shortest digits that read back, with an exponent
/// below 1e-4 and from 1e+6 on.
pub(crate) fn format_g(value: f64, single: bool) -> String {
    // Rust's exponent form has the shortest digits too: only the notation differs.
    let shortest = if single {
        format!("{:e}", value as f32)
    } else {
        format!("{value:e}")
    };
    if !value.is_finite() {
        return match value {
            f64::INFINITY => "+Inf".to_owned(),
            f64::NEG_INFINITY => "-Inf".to_owned(),
            _ => "NaN".to_owned(),
        };
    }
    let Some((mantissa, exponent)) = shortest.split_once('e') else {
        return shortest;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits.replace('.', "")),
        None => ("", mantissa.replace('.', "")),
    };
    if !(-4..6).contains(&exponent) {
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!(
            "{sign}{}e{exponent_sign}{:02}",
            mantissa.trim_start_matches('-'),
            exponent.unsigned_abs()
        );
    }
    if exponent < 0 {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        return format!("{sign}{digits}{}", "0".repeat(whole - digits.len()));
    }
    let (whole, fraction) = digits.split_at(whole);
    format!("{sign}{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::{GoNumber, format_g, parse_integer, parse_point_float, parse_yaml_float};

    #[test]
    fn integers_as_go_parses_them() {
        for (text, want) in [
            ("0", Some(GoNumber::Int(0))),
            ("-12", Some(GoNumber::Int(-12))),
            ("+12", Some(GoNumber::Int(12))),
            ("0777", Some(GoNumber::Int(511))),
            ("0o17", Some(GoNumber::Int(15))),
            ("-0x1F", Some(GoNumber::Int(-31))),
            ("0b101", Some(GoNumber::Int(5))),
            ("-9223372036854775808", Some(GoNumber::Int(i64::MIN))),
            ("18446744073709551615", Some(GoNumber::Uint(u64::MAX))),
            ("+18446744073709551615", None),
            ("18446744073709551616", None),
            ("08", None),
            ("0x", None),
            ("+-5", None),
            ("1e3", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(parse_integer(text), want, "{text}");
        }
    }

    #[test]
    fn floats_as_go_parses_them() {
        for (text, want) in [
            ("08", Some(8.0)),
            ("1.", Some(1.0)),
            ("+.5e-3", Some(0.0005)),
            ("1e3", Some(1000.0)),
            ("1e400", None),
            (".", None),
            ("1e", None),
            ("1.2.3", None),
            ("inf", None),
            ("0x1p4", None),
        ] {
            assert_eq!(parse_yaml_float(text), want, "{text}");
        }
        for (text, want) in [
            (".1_0", Some(0.1)),
            ("._1", None),
            (".1_", None),
            (".1e5", Some(10000.0)),
        ] {
            assert_eq!(parse_point_float(text), want, "{text}");
        }
    }

    #[test]
    fn floats_as_go_prints_them() {
        for (value, want) in [
            (1_234_567.5, "1.2345675e+06"),
            (123_456.5, "123456.5"),
            (1e20, "1e+20"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-1.5e-7, "-1.5e-07"),
            (0.5, "0.5"),
            (100.0, "100"),
        ] {
            assert_eq!(format_g(value, false), want);
        }
        assert_eq!(format_g(12_345_678_901_234_567_890.0, true), "1.2345679e+19");
        assert_eq!(format_g(f64::INFINITY, true), "+Inf");
    }
}
