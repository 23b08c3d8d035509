//! Quantities (`100m`, `1.5Gi`, `2e3`): reading them, reckoning with them, and their canonical form.
//!
//! A quantity is a decimal number, `mantissa * 10^exponent`, so sums and comparisons are exact. The finest step is a
//! billionth; what is finer is rounded away from zero, so that somebody who asks for a little gets a little. It remembers
//! how it was written (`Ki`, `k`, `e3`), because that decides how it is shown.

use std::cmp::Ordering;
use std::str::FromStr;

use serde_json::Value;
use thiserror::Error;

#[cfg(test)]
mod tests;

/// How a quantity was written, which decides how it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `1e3`
    DecimalExponent,
    /// `1Ki`
    BinarySi,
    /// `1k`
    DecimalSi,
}

/// What a text that is no quantity answers.
pub const FORMAT_ERROR: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum QuantityError {
    /// It is not a number with a suffix.
    #[error("{FORMAT_ERROR}")]
    Format,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The number is too large to be held.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
}

/// An amount. Amounts are equal if they are the same number, however written.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    mantissa: i128,
    /// Never below [`NANO`].
    exponent: i32,
    format: Format,
    /// Whether upstream keeps this amount as a 64-bit integer with a scale; only those can be integers to it.
    small: bool,
}

/// The exponent of the finest step.
const NANO: i32 = -9;
const MILLI: i32 = -3;
/// Mantissas have at most this many digits, so that two of equal magnitude can be aligned without overflow.
const MAX_DIGITS: u32 = 37;
/// The largest binary quantity; upstream caps them.
const MAX_BINARY: i128 = i64::MAX as i128;
const DECIMAL_SUFFIXES: [(i32, &str); 10] = [
    (-9, "n"),
    (-6, "u"),
    (-3, "m"),
    (0, ""),
    (3, "k"),
    (6, "M"),
    (9, "G"),
    (12, "T"),
    (15, "P"),
    (18, "E"),
];
/// The largest decimal exponent that has a suffix.
const EXA: i32 = 18;
const BINARY_SUFFIXES: [(u32, &str); 6] = [
    (10, "Ki"),
    (20, "Mi"),
    (30, "Gi"),
    (40, "Ti"),
    (50, "Pi"),
    (60, "Ei"),
];

enum Suffix {
    Decimal(i32, Format),
    Binary(u32),
}

/// The parts of a quantity's text.
struct Parts<'a> {
    negative: bool,
    /// Without leading zeros.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Self {
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, rest) = unsigned.split_at(digits(unsigned));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(digits(rest)),
            None => ("", rest),
        };
        Self {
            negative,
            whole: whole.trim_start_matches('0'),
            fraction,
            suffix,
        }
    }

    /// How many digits upstream counts.
    fn length(&self) -> usize {
        self.whole.len().max(1) + self.fraction.len()
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        // A number without digits is zero, as for upstream.
        let parts = Parts::of(text);
        let mut quantity = match suffix(parts.suffix)? {
            Suffix::Decimal(exponent, format) => decimal(&parts, exponent, format)?,
            Suffix::Binary(power) => binary(&parts, power),
        };
        if parts.negative {
            quantity.mantissa = -quantity.mantissa;
        }
        Ok(quantity)
    }
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self {
        mantissa: 0,
        exponent: 0,
        format: Format::DecimalSi,
        small: true,
    };

    /// A whole amount.
    pub fn from_int(value: i64) -> Self {
        Self {
            mantissa: i128::from(value),
            ..Self::ZERO
        }
    }

    /// Reads a quantity. Where the reason of a refusal matters, use [`str::parse`].
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// Reads a quantity in JSON; numbers count as if they were quoted, and space around the text does not count.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text.trim()),
            Value::Number(number) => Self::parse(&number.to_string()),
            _ => None,
        }
    }

    /// How it was written.
    pub fn format(self) -> Format {
        self.format
    }

    /// Less than, equal to, or more than nothing.
    pub fn sign(self) -> i32 {
        match self.mantissa.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// Whether this is nothing.
    pub fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// Whether this is a whole number.
    pub fn is_whole(self) -> bool {
        self.at(0).is_none_or(|(_, exact)| exact)
    }

    /// Whether this is a multiple of another quantity.
    pub fn is_multiple_of(self, other: Self) -> bool {
        aligned(self, other).is_some_and(|(left, right, _)| right != 0 && left % right == 0)
    }

    /// The amount as a whole number, rounded away from zero and capped.
    pub fn value(self) -> i64 {
        self.scaled_value(0)
    }

    /// The amount in thousandths, rounded away from zero and capped.
    pub fn milli_value(self) -> i64 {
        self.scaled_value(MILLI)
    }

    fn scaled_value(self, scale: i32) -> i64 {
        let value = self.at(scale).and_then(|(value, _)| i64::try_from(value).ok());
        value.unwrap_or(if self.mantissa < 0 { i64::MIN } else { i64::MAX })
    }

    /// The amount rounded away from zero to thousandths, as the API does with resource lists.
    #[must_use]
    pub fn round_up_milli(self) -> Self {
        self.rounded_up(MILLI)
    }

    /// The amount rounded away from zero to a whole number.
    #[must_use]
    pub fn round_up(self) -> Self {
        self.rounded_up(0)
    }

    fn rounded_up(self, scale: i32) -> Self {
        match self.at(scale) {
            Some((mantissa, _)) if self.exponent < scale => Self {
                mantissa,
                exponent: scale,
                ..self
            },
            _ => self,
        }
    }

    /// The sum of two amounts, written as the first unless that is nothing. If the two lie so far apart that no exact sum
    /// can be held, the larger one.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let larger = || {
            if self.magnitude() < other.magnitude() {
                other
            } else {
                self
            }
        };
        self.checked_add(other).unwrap_or_else(larger)
    }

    /// The difference of two amounts, by the rules of [`Quantity::plus`].
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(other.negated())
    }

    /// The exact sum, or `None` if it cannot be held.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        if self.is_zero() {
            return Some(other);
        }
        if other.is_zero() {
            return Some(self);
        }
        let (left, right, exponent) = aligned(self, other)?;
        let mantissa = left.checked_add(right).filter(|sum| digits(*sum) <= MAX_DIGITS)?;
        let fits = |value: i128| i64::try_from(value).is_ok();
        Some(Self {
            mantissa,
            exponent,
            format: self.format,
            small: self.small && other.small && fits(left) && fits(right) && fits(mantissa),
        })
    }

    /// The same amount below zero.
    #[must_use]
    pub fn negated(self) -> Self {
        Self {
            mantissa: -self.mantissa,
            ..self
        }
    }

    /// The amount as an integer where upstream can tell it without arbitrary precision.
    pub fn as_integer(self) -> Option<i64> {
        if !self.small {
            return None;
        }
        i64::try_from(scaled(self.mantissa, i64::from(self.exponent))?).ok()
    }

    /// The amount as a floating point number, with its error.
    pub fn approximate(self) -> f64 {
        let base = self.mantissa as f64;
        if self.exponent == 0 {
            base
        } else {
            base * 10f64.powi(self.exponent)
        }
    }

    /// The canonical text.
    pub fn canonical(self) -> String {
        if self.mantissa == 0 {
            return "0".to_owned();
        }
        match (self.format, self.at(0)) {
            (Format::BinarySi, Some((whole, true))) if whole.unsigned_abs() >= 1024 => {
                let steps = (whole.trailing_zeros() / 10).min(6);
                let suffix = steps.checked_sub(1).map_or("", |i| BINARY_SUFFIXES[i as usize].1);
                format!("{}{suffix}", whole >> (10 * steps))
            }
            (Format::DecimalExponent, _) => match self.in_thousands(i32::MAX) {
                (number, 0) => number,
                (number, exponent) => format!("{number}e{exponent}"),
            },
            _ => {
                let (number, exponent) = self.in_thousands(EXA);
                format!("{number}{}", suffix_of(exponent))
            }
        }
    }

    /// The shortest mantissa whose exponent is a multiple of three, and at most `most`.
    fn in_thousands(self, most: i32) -> (String, i32) {
        let (mut number, mut exponent) = (self.mantissa, self.exponent);
        while number % 10 == 0 && exponent < most {
            number /= 10;
            exponent += 1;
        }
        let mut text = number.to_string();
        while exponent % 3 != 0 {
            text.push('0');
            exponent -= 1;
        }
        (text, exponent)
    }

    /// The amount in units of ten to the power of `scale`, rounded away from zero, and whether that is exact; `None` if
    /// it cannot be held.
    fn at(self, scale: i32) -> Option<(i128, bool)> {
        let places = i64::from(self.exponent) - i64::from(scale);
        if places >= 0 {
            return Some((scaled(self.mantissa, places)?, true));
        }
        let step = scaled(1, -places)?;
        let exact = self.mantissa % step == 0;
        Some((
            self.mantissa / step + if exact { 0 } else { self.mantissa.signum() },
            exact,
        ))
    }

    /// The decimal place of the first digit.
    fn magnitude(self) -> i64 {
        i64::from(digits(self.mantissa)) + i64::from(self.exponent)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = self.sign().cmp(&other.sign());
        if sign.is_ne() || self.mantissa == 0 {
            return sign;
        }
        let by_size = self.magnitude().cmp(&other.magnitude());
        if by_size.is_ne() {
            return if self.mantissa > 0 {
                by_size
            } else {
                by_size.reverse()
            };
        }
        // Equal magnitude: an aligned mantissa has at most as many digits as mantissas may have.
        aligned(*self, *other).map_or(Ordering::Equal, |(left, right, _)| left.cmp(&right))
    }
}

/// The form in which upstream stores a quantity, or `None` if it stores it as it is written. Upstream keeps the text if
/// number and suffix cannot be made shorter, even when that is not the canonical form (`+1`, `1E3`).
pub fn stored_form(text: &str) -> Result<Option<String>, QuantityError> {
    let quantity: Quantity = text.parse()?;
    Ok(if is_kept(text) {
        None
    } else {
        Some(quantity.canonical()).filter(|form| form != text)
    })
}

fn is_kept(text: &str) -> bool {
    let parts = Parts::of(text);
    let (whole, fraction) = (parts.whole, parts.fraction);
    let length = whole.len() + fraction.len();
    match suffix(parts.suffix) {
        Ok(Suffix::Decimal(exponent, _)) => {
            let scale = i64::from(exponent) - i64::try_from(fraction.len()).unwrap_or(i64::MAX);
            let round = match fraction.len() {
                0 => whole.ends_with("000"),
                1 => fraction == "0" && whole.ends_with("00"),
                2 => fraction == "00" && whole.ends_with('0'),
                _ => fraction.ends_with("000"),
            };
            !whole.is_empty() && length <= 18 && scale >= i64::from(NANO) && scale % 3 == 0 && !round
        }
        Ok(Suffix::Binary(power)) => {
            let number = whole.parse::<u64>().ok().filter(|_| fraction.is_empty());
            number.is_some_and(|n| length <= binary_room(power) && n % 8 != 0)
        }
        Err(_) => false,
    }
}

/// Beyond that many digits upstream takes another way, which always ends in the canonical form.
fn binary_room(power: u32) -> usize {
    14usize.saturating_sub(power as usize * 3 / 10)
}

fn suffix_of(exponent: i32) -> &'static str {
    DECIMAL_SUFFIXES
        .iter()
        .find(|(e, _)| *e == exponent)
        .map_or("", |(_, s)| s)
}

fn suffix(text: &str) -> Result<Suffix, QuantityError> {
    if let Some((exponent, _)) = DECIMAL_SUFFIXES.iter().find(|(_, s)| *s == text) {
        return Ok(Suffix::Decimal(*exponent, Format::DecimalSi));
    }
    if let Some((power, _)) = BINARY_SUFFIXES.iter().find(|(_, s)| *s == text) {
        return Ok(Suffix::Binary(*power));
    }
    let letters = text.bytes().take_while(|b| b"eEinumkKMGTP".contains(b)).count();
    let number = &text[letters..];
    let number = number.strip_prefix(['+', '-']).unwrap_or(number);
    if !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    let exponent = text.strip_prefix(['e', 'E']).and_then(|e| e.parse::<i32>().ok());
    match exponent {
        Some(exponent) => Ok(Suffix::Decimal(exponent, Format::DecimalExponent)),
        None => Err(QuantityError::Suffix),
    }
}

/// Reads a decimal number; digits below a billionth only round it up.
fn decimal(parts: &Parts<'_>, exponent: i32, format: Format) -> Result<Quantity, QuantityError> {
    let last = i64::from(exponent) - i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX);
    let mut place = last + i64::try_from(parts.whole.len() + parts.fraction.len()).unwrap_or(i64::MAX);
    let (mut mantissa, mut finer) = (0_i128, false);
    for byte in parts.whole.bytes().chain(parts.fraction.bytes()) {
        place -= 1;
        if place < i64::from(NANO) {
            finer |= byte != b'0';
            continue;
        }
        if digits(mantissa) == MAX_DIGITS {
            return Err(QuantityError::Numeric);
        }
        mantissa = mantissa * 10 + i128::from(byte - b'0');
    }
    Ok(Quantity {
        mantissa: mantissa + i128::from(finer),
        exponent: i32::try_from(last.max(i64::from(NANO))).map_err(|_| QuantityError::Numeric)?,
        format,
        small: parts.length() <= 18 && last >= i64::from(NANO),
    })
}

/// Reads a number with a binary suffix, capped at what 64 bits hold.
fn binary(parts: &Parts<'_>, power: u32) -> Quantity {
    /// Digits of the fraction that count: with them, the largest suffix leaves room.
    const KEPT: usize = 18;
    let step = 10_i128.pow(NANO.unsigned_abs());
    let whole = match parts.whole.len() {
        0 => 0,
        1..=19 => parts.whole.parse().unwrap_or(MAX_BINARY),
        _ => MAX_BINARY,
    };
    let whole = (whole << power).min(MAX_BINARY);
    if parts.fraction.is_empty() && parts.length() <= binary_room(power) {
        return Quantity {
            mantissa: whole,
            exponent: 0,
            format: Format::BinarySi,
            small: true,
        };
    }
    let (kept, rest) = parts.fraction.split_at(parts.fraction.len().min(KEPT));
    let missing = u32::try_from(KEPT - kept.len()).unwrap_or(0);
    let fraction = (kept.parse().unwrap_or(0_i128) * 10_i128.pow(missing)) << power;
    let finer = fraction % step != 0 || rest.bytes().any(|b| b != b'0');
    let nanos = (whole * step + fraction / step + i128::from(finer)).min(MAX_BINARY * step);
    Quantity {
        mantissa: nanos,
        exponent: NANO,
        // A fraction of one would be rounded up by a binary suffix.
        format: if 0 < nanos && nanos < step {
            Format::DecimalSi
        } else {
            Format::BinarySi
        },
        small: false,
    }
}

fn digits(mantissa: i128) -> u32 {
    mantissa.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1)
}

fn scaled(mantissa: i128, places: i64) -> Option<i128> {
    if mantissa == 0 {
        return Some(0);
    }
    let factor = 10_i128.checked_pow(u32::try_from(places).ok()?)?;
    mantissa.checked_mul(factor)
}

/// Both mantissas at the smaller exponent.
fn aligned(left: Quantity, right: Quantity) -> Option<(i128, i128, i32)> {
    let exponent = left.exponent.min(right.exponent);
    let at = |q: Quantity| scaled(q.mantissa, i64::from(q.exponent) - i64::from(exponent));
    Some((at(left)?, at(right)?, exponent))
}
