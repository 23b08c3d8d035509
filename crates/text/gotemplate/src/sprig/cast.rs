//! Values as text and numbers, as sprig and the library `cast` convert them.

use crate::fmt::print;
use crate::parse::number::{parse_float, parse_int};
use crate::text::lossy;
use crate::value::Value;

/// sprig's `strval`: text as it is, anything else as it prints.
pub fn to_text(value: &Value) -> Result<Vec<u8>, String> {
    match value {
        Value::Str(text) | Value::Bytes(text) => Ok(text.to_vec()),
        Value::Invalid | Value::Nil => Ok(b"<nil>".to_vec()),
        other => print(other),
    }
}

/// A number that text begins with: `1.000` counts as `1`.
fn without_zero_decimals(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => text,
    }
}

/// Go's `strconv.ParseInt` with base 0, which reads `010` as eight.
fn text_to_int(text: &str) -> i64 {
    let text = without_zero_decimals(text);
    // Underscores are for literals.
    if text.contains('_') && !text.starts_with("0") {
        return 0;
    }
    parse_int(text).unwrap_or(0)
}

/// A float without its fraction. What does not fit is the smallest number, as Go has it on x86.
fn truncated(float: f64) -> i64 {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    match (-BOUND..BOUND).contains(&float) {
        true => float as i64,
        false => i64::MIN,
    }
}

/// `cast.ToInt64`: what is no number is zero.
pub fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(_, int) => *int,
        Value::Uint(_, uint) => *uint as i64,
        Value::Float(float) => truncated(*float),
        Value::Bool(boolean) => i64::from(*boolean),
        Value::Str(text) => text_to_int(&lossy(text)),
        _ => 0,
    }
}

/// `cast.ToFloat64`: what is no number is zero.
pub fn to_float(value: &Value) -> f64 {
    match value {
        Value::Int(_, int) => *int as f64,
        Value::Uint(_, uint) => *uint as f64,
        Value::Float(float) => *float,
        Value::Bool(boolean) => f64::from(u8::from(*boolean)),
        Value::Str(text) => text_to_float(&lossy(text)),
        _ => 0.0,
    }
}

fn text_to_float(text: &str) -> f64 {
    match text.to_ascii_lowercase().trim_start_matches('+') {
        "inf" | "infinity" => return f64::INFINITY,
        "-inf" | "-infinity" => return f64::NEG_INFINITY,
        "nan" => return f64::NAN,
        _ => {}
    }
    if text.contains('_') {
        return 0.0;
    }
    parse_float(text).unwrap_or(0.0)
}
