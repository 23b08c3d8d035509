//! `"%s and %d".format([a, b])`, as version 2 of the strings extension prints, which groups digits as en_US does.

use super::{arg, conversion};
use crate::error::Error;
use crate::meter::Meter;
use crate::value::{List, Map, Value};

/// More digits than any double has make no sense and only cost memory.
const MAX_PRECISION: usize = 1000;
const DEFAULT_PRECISION: usize = 6;

pub(super) fn format<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (template, values) = (arg!(args, 0, String), arg!(args, 1, List));
    let mut out = String::with_capacity(template.len());
    let mut rest = template.as_str();
    let mut next = 0;
    while let Some((precision, verb)) = next_clause(&mut rest, &mut out)? {
        if next >= values.len() {
            return Err(Error::invalid(format!("index {next} out of range")));
        }
        let text = one(meter, verb, precision, &values.get(next)?)?;
        next += 1;
        meter.work(text.len() / 4)?;
        out.push_str(&text);
    }
    Ok(Value::string(out))
}

/// Copies text up to the next clause and reads that: `%.3f` gives a precision and a verb.
pub(crate) fn next_clause(rest: &mut &str, out: &mut String) -> Result<Option<(Option<usize>, char)>, Error> {
    while let Some(percent) = rest.find('%') {
        out.push_str(&rest[..percent]);
        *rest = &rest[percent + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            *rest = after;
            continue;
        }
        return clause(rest).map(Some);
    }
    out.push_str(rest);
    *rest = "";
    Ok(None)
}

fn clause(rest: &mut &str) -> Result<(Option<usize>, char), Error> {
    let mut precision = None;
    if let Some(after) = rest.strip_prefix('.') {
        let count = after.bytes().take_while(u8::is_ascii_digit).count();
        let digits = after[..count].parse::<usize>();
        let value = digits
            .map_err(|_| Error::invalid("error while parsing precision: unable to convert to integer"))?;
        if value > MAX_PRECISION {
            return Err(Error::invalid(format!(
                "error while parsing precision: {value} is too large"
            )));
        }
        precision = Some(value);
        *rest = &after[count..];
    }
    let Some(verb) = rest.chars().next() else {
        return Err(Error::invalid("unexpected end of string"));
    };
    *rest = &rest[verb.len_utf8()..];
    Ok((precision, verb))
}

/// Why a clause does not take a value of a type; `None` if there is no such clause.
pub(crate) fn refusal(verb: char, given: &str) -> Option<String> {
    let why = match verb {
        's' => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
             timestamps"
        }
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'o' => "octal clause can only be used on integers",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        _ => return None,
    };
    Some(format!("error during formatting: {why}, was given {given}"))
}

pub(crate) fn unknown_clause(verb: char) -> String {
    format!("could not parse formatting clause: unrecognized formatting clause \"{verb}\"")
}

fn one(meter: &Meter, verb: char, precision: Option<usize>, value: &Value<'_>) -> Result<String, Error> {
    let double = match value {
        Value::Double(value) => Some(*value),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    };
    Ok(match (verb, value, double) {
        ('s', _, _) => string(meter, value)?,
        ('d', Value::Int(_) | Value::Uint(_), _) => conversion::display(value),
        ('f', _, Some(value)) => fixed(value, precision.unwrap_or(DEFAULT_PRECISION)),
        ('e', _, Some(value)) => scientific(value),
        ('b', Value::Int(value), _) => signed(*value, |v| format!("{v:b}")),
        ('b', Value::Uint(value), _) => format!("{value:b}"),
        ('b', Value::Bool(value), _) => if *value { "1" } else { "0" }.to_owned(),
        ('o', Value::Int(value), _) => signed(*value, |v| format!("{v:o}")),
        ('o', Value::Uint(value), _) => format!("{value:o}"),
        ('x', Value::Int(value), _) => signed(*value, |v| format!("{v:x}")),
        ('X', Value::Int(value), _) => signed(*value, |v| format!("{v:X}")),
        ('x', Value::Uint(value), _) => format!("{value:x}"),
        ('X', Value::Uint(value), _) => format!("{value:X}"),
        ('x', Value::String(text), _) => hex(text.as_bytes(), false),
        ('X', Value::String(text), _) => hex(text.as_bytes(), true),
        ('x', Value::Bytes(bytes), _) => hex(bytes, false),
        ('X', Value::Bytes(bytes), _) => hex(bytes, true),
        (other, _, _) => {
            let why = refusal(other, value.type_name());
            return Err(Error::invalid(why.unwrap_or_else(|| unknown_clause(other))));
        }
    })
}

fn hex(bytes: &[u8], upper: bool) -> String {
    bytes
        .iter()
        .map(|b| {
            if upper {
                format!("{b:02X}")
            } else {
                format!("{b:02x}")
            }
        })
        .collect()
}

fn signed(value: i64, digits: fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", digits(value.unsigned_abs()))
}

/// `%s` of any value; lists and maps print as CEL literals.
fn string(meter: &Meter, value: &Value<'_>) -> Result<String, Error> {
    match value {
        Value::List(list) => format_list(meter, list),
        Value::Map(map) => format_map(meter, map),
        Value::Optional(_) | Value::Opaque(_) => Err(Error::invalid(
            refusal('s', value.type_name()).unwrap_or_default(),
        )),
        _ => Ok(conversion::display(value)),
    }
}

/// A value inside a list or map.
fn nested(meter: &Meter, value: &Value<'_>) -> Result<String, Error> {
    meter.work(4)?;
    Ok(match value {
        Value::String(text) => format!("{:?}", text.as_str()),
        Value::Bytes(_) => format!("b{:?}", conversion::display(value)),
        Value::Timestamp(value) => format!("timestamp(\"{value}\")"),
        Value::Duration(value) => format!("duration(\"{value}\")"),
        Value::Double(value) if value.is_nan() => "\"NaN\"".to_owned(),
        Value::Double(value) if value.is_infinite() => {
            format!("\"{}Inf\"", if *value > 0.0 { "+" } else { "-" })
        }
        Value::Double(value) => format!("{value:.6}"),
        other => string(meter, other)?,
    })
}

fn format_list(meter: &Meter, list: &List<'_>) -> Result<String, Error> {
    let parts = list
        .iter()
        .map(|element| nested(meter, &element?))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(format!("[{}]", parts.join(", ")))
}

fn format_map(meter: &Meter, map: &Map<'_>) -> Result<String, Error> {
    let mut parts = Vec::with_capacity(map.len());
    for key in map.keys() {
        let Some(value) = map.get(&key)? else { continue };
        parts.push((nested(meter, &key)?, nested(meter, &value)?));
    }
    parts.sort();
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(key, value)| format!("{key}:{value}"))
        .collect();
    Ok(format!("{{{}}}", parts.join(", ")))
}

fn unusual(value: f64) -> Option<&'static str> {
    match value {
        v if v.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

fn fixed(value: f64, precision: usize) -> String {
    if let Some(text) = unusual(value) {
        return text.to_owned();
    }
    let plain = format!("{value:.precision$}");
    let (sign, plain) = plain
        .strip_prefix('-')
        .map_or(("", plain.as_str()), |rest| ("-", rest));
    let (whole, fraction) = plain
        .split_once('.')
        .map_or((plain, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut grouped = String::with_capacity(plain.len() + whole.len() / 3);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match fraction {
        Some(fraction) => format!("{sign}{grouped}.{fraction}"),
        None => format!("{sign}{grouped}"),
    }
}

/// `1.234568×10⁰³`: the locale's way, always with six digits.
fn scientific(value: f64) -> String {
    if let Some(text) = unusual(value) {
        return text.to_owned();
    }
    let text = format!("{value:.6e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut raised = String::from(if exponent < 0 { "⁻" } else { "" });
    for digit in format!("{:02}", exponent.abs()).chars() {
        raised.push(['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize - '0' as usize]);
    }
    format!("{mantissa}×10{raised}")
}
