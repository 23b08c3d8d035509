//! Numbers in a template, which keep every type that they could have until an argument wants one.

use crate::ast::Number;
use crate::lex::Kind;
use crate::text::{Piece, quote, unquote_char};

pub(super) fn read(text: &str, kind: Kind) -> Result<Number, String> {
    let mut number = Number {
        int: None,
        uint: None,
        float: None,
    };
    match kind {
        Kind::CharConstant => {
            let malformed = || format!("malformed character constant: {text}");
            let (piece, tail) = unquote_char(&text[1..], '\'').ok_or("invalid syntax")?;
            if tail != "'" {
                return Err(malformed());
            }
            let code = match piece {
                Piece::Byte(byte) => u32::from(byte),
                Piece::Char(c) => u32::from(c),
            };
            number.int = Some(i64::from(code));
            number.uint = Some(u64::from(code));
            number.float = Some(f64::from(code));
            return Ok(number);
        }
        Kind::Complex => return Err(format!("complex numbers are not supported: {text}")),
        _ if text.ends_with('i') => return Err(format!("complex numbers are not supported: {text}")),
        _ => {}
    }
    number.uint = parse_uint(text);
    number.int = parse_int(text);
    if number.int == Some(0) {
        number.uint = Some(0);
    }
    if let Some(int) = number.int {
        number.float = Some(int as f64);
    } else if let Some(uint) = number.uint {
        number.float = Some(uint as f64);
    } else if let Some(float) = parse_float(text) {
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {}", quote(text.as_bytes())));
        }
        number.float = Some(float);
        if float.fract() == 0.0 && float.abs() < 9.2e18 {
            number.int = Some(float as i64);
        }
        if float.fract() == 0.0 && (0.0..1.8e19).contains(&float) {
            number.uint = Some(float as u64);
        }
    } else {
        return Err(format!("illegal number syntax: {}", quote(text.as_bytes())));
    }
    Ok(number)
}

/// Go's `strconv.ParseUint` with base 0.
pub(crate) fn parse_uint(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', b'o', ..] => (&lower[2..], 8),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (lower.as_str(), 10),
    };
    let prefixed = digits.len() != lower.len();
    let misplaced = digits.ends_with('_') || digits.contains("__") || (!prefixed && digits.starts_with('_'));
    let digits = digits.replace('_', "");
    if misplaced || digits.is_empty() || digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(&digits, radix).ok()
}

/// Go's `strconv.ParseInt` with base 0.
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(digits) => {
            let value = parse_uint(digits)?;
            (value <= 1 << 63).then(|| (value as i64).wrapping_neg())
        }
        None => i64::try_from(parse_uint(text.strip_prefix('+').unwrap_or(text))?).ok(),
    }
}

/// Go's `strconv.ParseFloat`, whose underscores are allowed in literals only.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let plain = text.replace('_', "");
    let unsigned = plain.trim_start_matches(['+', '-']);
    if unsigned.starts_with("0x") || unsigned.starts_with("0X") {
        let value = hex_float(&unsigned[2..])?;
        return Some(if plain.starts_with('-') { -value } else { value });
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let value: f64 = plain.parse().ok()?;
    value.is_finite().then_some(value)
}

fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let exponent: i32 = exponent.parse().ok()?;
    let shift = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    Some(value * 2_f64.powi(exponent.saturating_sub(shift)))
}
