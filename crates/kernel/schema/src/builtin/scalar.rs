//! Scalars of the built-in types: whether a JSON value can be decoded as one, and how upstream would write it again.

use jiff::Timestamp;
use serde_json::{Number, Value};

use super::table::Format;
use crate::json_type;
use fairway_kernel_scalar::quantity::stored_form;

/// Why a value cannot be decoded.
pub(super) enum Refusal {
    /// Its JSON type is wrong: what it is, in Go's words, and what Go wants.
    Type(String, &'static str),
    /// Its text is wrong.
    Text(String),
}

/// Checks a value that is not null, and brings it into the form in which upstream stores it.
pub(super) fn normalise(format: Format, value: &mut Value) -> Result<(), Refusal> {
    match format {
        Format::String => expect(value.is_string(), value, "string"),
        Format::Boolean => expect(value.is_boolean(), value, "bool"),
        Format::Int32 => integer(value, "int32", i64::from(i32::MIN), i64::from(i32::MAX)),
        Format::Int64 => integer(value, "int64", i64::MIN, i64::MAX),
        Format::Double => double(value),
        Format::Bytes => bytes(value),
        Format::Time => time(value, false),
        Format::MicroTime => time(value, true),
        Format::Quantity => quantity(value),
        Format::IntOrString if value.is_string() => Ok(()),
        Format::IntOrString => integer(value, "int32", i64::from(i32::MIN), i64::from(i32::MAX)),
        Format::Object => expect(value.is_object(), value, "map[string]interface {}"),
        Format::Raw | Format::Any | Format::SchemaOr => Ok(()),
    }
}

/// The value that null stands for inside a list or map, where Go cannot leave it out.
pub(super) fn zero(format: Format) -> Option<Value> {
    match format {
        Format::String => Some("".into()),
        Format::Boolean => Some(false.into()),
        Format::Int32 | Format::Int64 | Format::Double | Format::IntOrString => Some(0.into()),
        Format::Quantity => Some("0".into()),
        Format::Bytes
        | Format::Time
        | Format::MicroTime
        | Format::Object
        | Format::Raw
        | Format::Any
        | Format::SchemaOr => None,
    }
}

fn expect(fits: bool, value: &Value, wanted: &'static str) -> Result<(), Refusal> {
    if fits {
        Ok(())
    } else {
        Err(Refusal::Type(json_type(value).to_owned(), wanted))
    }
}

/// Whole numbers that are written with a fraction of zero are taken: from YAML, upstream takes them too.
fn integer(value: &mut Value, wanted: &'static str, min: i64, max: i64) -> Result<(), Refusal> {
    let Value::Number(number) = value else {
        return expect(false, value, wanted);
    };
    let whole = match number.as_i64() {
        Some(whole) => Some(whole),
        None => number.as_f64().and_then(whole_number),
    };
    match whole.filter(|n| (min..=max).contains(n)) {
        Some(whole) => {
            if number.is_f64() {
                *value = whole.into();
            }
            Ok(())
        }
        None => Err(Refusal::Type(format!("number {number}"), wanted)),
    }
}

fn whole_number(float: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[allow(
        clippy::cast_possible_truncation,
        reason = "whole and within the range that f64 holds exactly"
    )]
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
}

/// Go writes whole floating-point numbers without a fraction.
fn double(value: &mut Value) -> Result<(), Refusal> {
    let Value::Number(number) = value else {
        return expect(false, value, "float64");
    };
    if number.is_f64()
        && let Some(whole) = number.as_f64().and_then(whole_number)
    {
        *number = Number::from(whole);
    }
    Ok(())
}

/// Numbers are taken too, and become text.
fn quantity(value: &mut Value) -> Result<(), Refusal> {
    let stored = match &*value {
        Value::String(text) => {
            let trimmed = text.trim();
            stored_form(trimmed).map(|form| form.or_else(|| (trimmed != text).then(|| trimmed.to_owned())))
        }
        Value::Number(number) => {
            let text = number.to_string();
            stored_form(&text).map(|form| Some(form.unwrap_or(text)))
        }
        // Go hands the text of whatever stands there to the parser of quantities.
        other => stored_form(&other.to_string()),
    };
    match stored {
        Ok(None) => {}
        Ok(Some(form)) => *value = form.into(),
        Err(error) => return Err(Refusal::Text(error.to_string())),
    }
    Ok(())
}

/// What Go says of a text that is no time: the rest that does not fit, and the part of the layout that it should be.
fn time_fault(text: &str) -> String {
    let mut rest = text;
    for part in ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"] {
        let fits = rest.get(..part.len()).is_some_and(|head| {
            if part.bytes().all(|b| b.is_ascii_digit()) {
                head.bytes().all(|b| b.is_ascii_digit())
            } else {
                head == part
            }
        });
        if !fits {
            return format!("cannot parse {rest:?} as {part:?}");
        }
        rest = &rest[part.len()..];
    }
    format!("cannot parse {rest:?} as \"Z07:00\"")
}

/// Times are stored in UTC, in seconds or microseconds.
fn time(value: &mut Value, micro: bool) -> Result<(), Refusal> {
    let Value::String(text) = value else {
        return expect(false, value, "string");
    };
    let parsed = is_rfc3339(text).then(|| text.parse::<Timestamp>().ok()).flatten();
    let Some(time) = parsed else {
        let layout = if micro {
            "2006-01-02T15:04:05.000000Z07:00"
        } else {
            "2006-01-02T15:04:05Z07:00"
        };
        return Err(Refusal::Text(format!(
            "parsing time {text:?} as {layout:?}: {}",
            time_fault(text)
        )));
    };
    let length = if micro {
        "2006-01-02T15:04:05.000000Z".len()
    } else {
        "2006-01-02T15:04:05Z".len()
    };
    if !(text.len() == length && text.ends_with('Z')) {
        *text = time
            .strftime(if micro {
                "%Y-%m-%dT%H:%M:%S.%6fZ"
            } else {
                "%Y-%m-%dT%H:%M:%SZ"
            })
            .to_string();
    }
    Ok(())
}

/// Whether a text looks like RFC 3339 in Go's reading, which is stricter than the parser's: a `T`, seconds, an offset
/// with a colon.
fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    let pattern = b"0000-00-00T00:00:00";
    let matches = |text: &[u8], pattern: &[u8]| {
        text.len() == pattern.len()
            && text
                .iter()
                .zip(pattern)
                .all(|(b, p)| if *p == b'0' { b.is_ascii_digit() } else { b == p })
    };
    let Some((head, mut tail)) = bytes.split_at_checked(pattern.len()) else {
        return false;
    };
    if let Some((b'.' | b',', digits)) = tail.split_first() {
        let count = digits.iter().take_while(|b| b.is_ascii_digit()).count();
        if count == 0 {
            return false;
        }
        tail = &digits[count..];
    }
    let offset = tail == b"Z" || matches(tail, b"+00:00") || matches(tail, b"-00:00");
    matches(head, pattern) && offset
}

/// Base64 with padding; like Go's decoder it skips line breaks, which are then gone.
fn bytes(value: &mut Value) -> Result<(), Refusal> {
    let Value::String(text) = value else {
        return expect(false, value, "[]uint8");
    };
    if text.bytes().any(|b| b == b'\n' || b == b'\r') {
        text.retain(|c| c != '\n' && c != '\r');
    }
    if let Some(at) = illegal_base64(text.as_bytes()) {
        return Err(Refusal::Text(format!("illegal base64 data at input byte {at}")));
    }
    clear_spare_bits(text);
    Ok(())
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn illegal_base64(text: &[u8]) -> Option<usize> {
    let padding = text.iter().rev().take(2).take_while(|b| **b == b'=').count();
    let data = &text[..text.len() - padding];
    let legal = |b: &u8| b.is_ascii_alphanumeric() || *b == b'+' || *b == b'/';
    data.iter().position(|b| !legal(b)).or_else(|| {
        (!text.len().is_multiple_of(4) || (padding == 2 && data.len() % 4 == 1)).then_some(text.len())
    })
}

/// The last digit may have bits that no byte uses; Go ignores them and writes zeros.
fn clear_spare_bits(text: &mut String) {
    let (padding, used) = match text.as_bytes() {
        [.., b'=', b'='] => ("==", 0b11_0000),
        [.., b'='] => ("=", 0b11_1100),
        _ => return,
    };
    let last = text.len() - padding.len() - 1;
    let digit = ALPHABET
        .iter()
        .position(|b| *b == text.as_bytes()[last])
        .unwrap_or(0);
    if digit & !used != 0 {
        text.truncate(last);
        text.push(char::from(ALPHABET[digit & used]));
        text.push_str(padding);
    }
}
