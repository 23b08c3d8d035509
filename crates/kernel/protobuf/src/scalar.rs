//! Values without fields in JSON, some of which are messages on the wire.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fairway_kernel_scalar::quantity;
use jiff::Timestamp;
use serde_json::Value;

use crate::table::Scalar;
use crate::wire::{Reader, Wire};

/// Seconds of Go's zero time, the first of January of year 1, which is null in JSON.
const ZERO_TIME: i64 = -62_135_596_800;

/// What can be wrong with a value; the caller knows where.
pub(crate) enum Wrong {
    /// Something about the wire.
    Wire(crate::Error),
    /// Written in another way than its type is.
    WireType,
    /// Not UTF-8.
    Utf8,
    /// Not a value of its type.
    Value(String),
}

impl From<crate::Error> for Wrong {
    fn from(error: crate::Error) -> Self {
        Self::Wire(error)
    }
}

type Found<T = Value> = Result<T, Wrong>;

/// The value of a field that was never written.
pub(crate) fn zero(scalar: Scalar) -> Value {
    match scalar {
        Scalar::String | Scalar::Bytes => Value::String(String::new()),
        Scalar::Int32 | Scalar::Int64 | Scalar::Double | Scalar::IntOrString => 0.into(),
        Scalar::Bool => Value::Bool(false),
        Scalar::Time | Scalar::MicroTime | Scalar::Raw => Value::Null,
        Scalar::Quantity => "0".into(),
    }
}

/// How values of a type are written.
pub(crate) fn wire_of(scalar: Scalar) -> Wire {
    match scalar {
        Scalar::Int32 | Scalar::Int64 | Scalar::Bool => Wire::Varint,
        Scalar::Double => Wire::Fixed64,
        _ => Wire::Bytes,
    }
}

/// Reads a value; `Raw` is the decoder's.
pub(crate) fn read(scalar: Scalar, reader: &mut Reader<'_>) -> Found {
    Ok(match scalar {
        Scalar::Int32 => int32(reader.varint()?).into(),
        Scalar::Int64 => reader.varint()?.cast_signed().into(),
        Scalar::Bool => (reader.varint()? != 0).into(),
        Scalar::Double => double(f64::from_bits(reader.fixed64()?))?,
        Scalar::String => text(reader.bytes()?)?.into(),
        Scalar::Bytes | Scalar::Raw => STANDARD.encode(reader.bytes()?).into(),
        Scalar::Time => time(reader.bytes()?, false)?,
        Scalar::MicroTime => time(reader.bytes()?, true)?,
        Scalar::Quantity => quantity(reader.bytes()?)?,
        Scalar::IntOrString => int_or_string(reader.bytes()?)?,
    })
}

/// Readers keep the lower half of what was written, whatever the rest.
#[expect(clippy::cast_possible_truncation, reason = "the wire's rule")]
fn int32(value: u64) -> i32 {
    value as i32
}

fn text(bytes: &[u8]) -> Found<&str> {
    std::str::from_utf8(bytes).map_err(|_| Wrong::Utf8)
}

/// Go writes whole numbers without a fraction.
fn double(value: f64) -> Found {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT && (value != 0.0 || value.is_sign_positive()) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is a whole number within range"
        )]
        return Ok((value as i64).into());
    }
    let number = serde_json::Number::from_f64(value);
    number
        .map(Value::Number)
        .ok_or_else(|| Wrong::Value(format!("{value} is not a number of JSON")))
}

/// Numbered varints and texts of a small message, the last of each.
fn small<'a>(bytes: &'a [u8], varints: &mut [u64], strings: &mut [&'a [u8]]) -> Found<()> {
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        let index = (number as usize).wrapping_sub(1);
        let varint_count = varints.len();
        if let Some(varint) = varints.get_mut(index) {
            if wire != Wire::Varint {
                return Err(Wrong::WireType);
            }
            *varint = reader.varint()?;
        } else if let Some(string) = strings.get_mut(index.wrapping_sub(varint_count)) {
            if wire != Wire::Bytes {
                return Err(Wrong::WireType);
            }
            *string = reader.bytes()?;
        } else {
            reader.skip(wire)?;
        }
    }
    Ok(())
}

/// Seconds and nanoseconds; a message without anything is the zero time.
fn time(bytes: &[u8], micro: bool) -> Found {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let mut parts = [0; 2];
    small(bytes, &mut parts, &mut [])?;
    let seconds = parts[0].cast_signed();
    // Times of whole seconds ignore the rest, as JSON does.
    let micros = if micro {
        i64::from(int32(parts[1]) / 1000)
    } else {
        0
    };
    let wrong = || {
        Wrong::Value(format!(
            "{seconds} seconds from 1970 are not a time between the years 1 and 9999"
        ))
    };
    let total = seconds
        .checked_mul(1_000_000)
        .and_then(|s| s.checked_add(micros))
        .ok_or_else(wrong)?;
    if total == ZERO_TIME * 1_000_000 {
        return Ok(Value::Null);
    }
    match Timestamp::from_microsecond(total) {
        Ok(at) if total > ZERO_TIME * 1_000_000 => Ok(Value::String(if micro {
            format!("{at:.6}")
        } else {
            format!("{at:.0}")
        })),
        _ => Err(wrong()),
    }
}

fn quantity(bytes: &[u8]) -> Found {
    let mut strings = [&[][..]];
    small(bytes, &mut [], &mut strings)?;
    if bytes.is_empty() {
        return Ok(zero(Scalar::Quantity));
    }
    let written = text(strings[0])?;
    let stored = quantity::stored_form(written).map_err(|e| Wrong::Value(e.to_string()))?;
    Ok(Value::String(stored.unwrap_or_else(|| written.to_owned())))
}

fn int_or_string(bytes: &[u8]) -> Found {
    let (mut numbers, mut strings) = ([0; 2], [&[][..]]);
    small(bytes, &mut numbers, &mut strings)?;
    match numbers[0] {
        0 => Ok(int32(numbers[1]).into()),
        1 => Ok(text(strings[0])?.into()),
        other => Err(Wrong::Value(format!(
            "{other} is neither the type of an integer nor of a string"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(scalar: Scalar, bytes: &[u8]) -> Option<Value> {
        read(scalar, &mut Reader::new(bytes)).ok()
    }

    #[test]
    fn values_look_as_go_writes_them() {
        let cases: &[(Scalar, &[u8], Option<Value>)] = &[
            (
                Scalar::Int32,
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
                Some(json!(-1)),
            ),
            (Scalar::Int64, &[0xac, 2], Some(json!(300))),
            (Scalar::Bool, &[2], Some(json!(true))),
            (Scalar::Double, &[0, 0, 0, 0, 0, 0, 0x14, 0x40], Some(json!(5))),
            (Scalar::Double, &[0, 0, 0, 0, 0, 0, 0xf8, 0x3f], Some(json!(1.5))),
            (Scalar::Double, &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f], None),
            (Scalar::String, &[1, 0xff], None),
            (Scalar::Bytes, &[2, 1, 2], Some(json!("AQI="))),
            (Scalar::Time, &[0], Some(json!(null))),
            (
                Scalar::Time,
                &[4, 8, 1, 16, 7],
                Some(json!("1970-01-01T00:00:01Z")),
            ),
            (
                Scalar::MicroTime,
                &[6, 8, 1, 16, 0xd0, 0x8c, 1],
                Some(json!("1970-01-01T00:00:01.000018Z")),
            ),
            (
                Scalar::MicroTime,
                &[2, 8, 0],
                Some(json!("1970-01-01T00:00:00.000000Z")),
            ),
            (
                Scalar::Time,
                &[11, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
                None,
            ),
            (Scalar::Time, &[2, 10, 0], None),
            (Scalar::Quantity, &[0], Some(json!("0"))),
            (
                Scalar::Quantity,
                &[7, 10, 5, b'1', b'0', b'0', b'0', b'm'],
                Some(json!("1")),
            ),
            (Scalar::Quantity, &[3, 10, 1, b'x'], None),
            (Scalar::IntOrString, &[0], Some(json!(0))),
            (Scalar::IntOrString, &[6, 8, 0, 16, 80, 26, 0], Some(json!(80))),
            (
                Scalar::IntOrString,
                &[7, 8, 1, 16, 0, 26, 1, b'a'],
                Some(json!("a")),
            ),
            (Scalar::IntOrString, &[2, 8, 2], None),
        ];
        for (scalar, bytes, expected) in cases {
            assert_eq!(found(*scalar, bytes), *expected, "{scalar:?} {bytes:?}");
        }
    }
}
