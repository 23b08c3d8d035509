//! What a scalar is: the tables and tests by which Go's two YAML libraries tell null, booleans and numbers from text.

use crate::go_number::{GoNumber, parse_integer, parse_point_float, parse_yaml_float};

/// Whose rules decide what plain scalars and merge keys mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resolution {
    /// YAML 1.1 as `go.yaml.in/yaml/v2` reads it: `yes`, `on`, `y` and their like are booleans, and a merge key takes
    /// effect where it stands. The API server, kubectl and Helm.
    #[default]
    Yaml11,
    /// YAML 1.2 as `go.yaml.in/yaml/v3` reads it: only `true` and `false` are booleans, and a mapping's own keys win
    /// over merged ones. kustomize.
    Yaml12,
}

/// A resolved scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Number(GoNumber),
    /// Text in the form of a time. Read as text, but quoted when written.
    Timestamp,
    Text,
}

impl Scalar {
    pub(crate) fn tag(self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool(_) => "!!bool",
            Self::Number(GoNumber::Int(_) | GoNumber::Uint(_)) => "!!int",
            Self::Number(GoNumber::Float(_)) => "!!float",
            Self::Timestamp => "!!timestamp",
            Self::Text => "!!str",
        }
    }
}

/// Resolves a plain scalar. `timestamps` is off where another tag rules them out.
pub(crate) fn resolve_plain(text: &str, resolution: Resolution, timestamps: bool) -> Scalar {
    // The first byte rules out nearly all text without any comparison.
    let Some(first) = text.bytes().next() else {
        return Scalar::Null;
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => {
            resolve_word(text, resolution).unwrap_or(Scalar::Text)
        }
        b'.' => match text {
            ".nan" | ".NaN" | ".NAN" => Scalar::Number(GoNumber::Float(f64::NAN)),
            ".inf" | ".Inf" | ".INF" => Scalar::Number(GoNumber::Float(f64::INFINITY)),
            _ => parse_point_float(text).map_or(Scalar::Text, |value| Scalar::Number(GoNumber::Float(value))),
        },
        b'+' | b'-' | b'0'..=b'9' => resolve_number(text, timestamps),
        _ => Scalar::Text,
    }
}

fn resolve_word(text: &str, resolution: Resolution) -> Option<Scalar> {
    match text {
        "~" | "null" | "Null" | "NULL" => return Some(Scalar::Null),
        "true" | "True" | "TRUE" => return Some(Scalar::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Scalar::Bool(false)),
        _ => {}
    }
    if resolution == Resolution::Yaml12 {
        return None;
    }
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(Scalar::Bool(true)),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(Scalar::Bool(false)),
        _ => None,
    }
}

fn resolve_number(text: &str, timestamps: bool) -> Scalar {
    match text {
        "+.inf" | "+.Inf" | "+.INF" => return Scalar::Number(GoNumber::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Number(GoNumber::Float(f64::NEG_INFINITY)),
        _ => {}
    }
    if timestamps && is_timestamp(text) {
        return Scalar::Timestamp;
    }
    let owned;
    let plain = if text.contains('_') {
        owned = text.replace('_', "");
        owned.as_str()
    } else {
        text
    };
    let number = parse_integer(plain).or_else(|| parse_yaml_float(plain).map(GoNumber::Float));
    number.map_or(Scalar::Text, Scalar::Number)
}

/// Whether Go takes the text for a time: a date with short fields, alone or with a time of day; with `T` the zone is
/// obligatory, with a space there is none.
pub(crate) fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 8 || bytes[4] != b'-' || !bytes[..4].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let mut rest = &text[5..];
    let Some((month, after)) = take_number(rest, 1..=2).filter(|(month, _)| (1..=12).contains(month)) else {
        return false;
    };
    let Some(after) = after.strip_prefix('-') else {
        return false;
    };
    let Some((day, after)) = take_number(after, 1..=2) else {
        return false;
    };
    let year: u32 = text[..4].parse().unwrap_or_default();
    if day < 1 || day > days_in(year, month) {
        return false;
    }
    rest = after;
    if rest.is_empty() {
        return true;
    }
    if let Some(time) = rest.strip_prefix(['T', 't']) {
        return take_time(time).is_some_and(is_zone);
    }
    rest.strip_prefix(' ')
        .and_then(take_time)
        .is_some_and(str::is_empty)
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

/// A number of as many digits as the range allows, and what follows it.
fn take_number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<(u32, &str)> {
    let count = text
        .bytes()
        .take(*digits.end())
        .take_while(u8::is_ascii_digit)
        .count();
    if count < *digits.start() {
        return None;
    }
    let (number, rest) = text.split_at(count);
    Some((number.parse().ok()?, rest))
}

/// `hour:minute:second` with an optional fraction; gives what follows.
fn take_time(text: &str) -> Option<&str> {
    // Go's parser wants one or two digits of each, as the layout has the hour in its two-digit form only.
    let (hour, rest) = take_number(text, 1..=2)?;
    let (minute, rest) = take_number(rest.strip_prefix(':')?, 1..=2)?;
    let (second, mut rest) = take_number(rest.strip_prefix(':')?, 1..=2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let count = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if count > 0 {
            rest = &fraction[count..];
        }
    }
    Some(rest)
}

/// `Z` or `+hh:mm`.
fn is_zone(text: &str) -> bool {
    if text == "Z" {
        return true;
    }
    let Some(rest) = text.strip_prefix(['+', '-']) else {
        return false;
    };
    let Some((hour, rest)) = take_number(rest, 2..=2) else {
        return false;
    };
    let Some((minute, rest)) = rest.strip_prefix(':').and_then(|rest| take_number(rest, 2..=2)) else {
        return false;
    };
    rest.is_empty() && hour <= 24 && minute < 60
}

/// Numbers in base 60, which nobody reads any more but which are still quoted when written.
pub(crate) fn is_base60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let Some(first) = parts.next() else { return false };
    let mut bytes = first.bytes();
    if !bytes.next().is_some_and(|byte| byte.is_ascii_digit())
        || !bytes.all(|b| b.is_ascii_digit() || b == b'_')
    {
        return false;
    }
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else {
        return false;
    };
    let sixty = |part: &str| match part.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [ten @ b'0'..=b'5', digit] => ten.is_ascii_digit() && digit.is_ascii_digit(),
        _ => false,
    };
    let (whole, fraction) = last.split_once('.').unwrap_or((last, ""));
    middle.iter().all(|part| sixty(part))
        && sixty(whole)
        && fraction.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}
