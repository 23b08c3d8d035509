//! Quantities (`100m`, `1.5Gi`, `2e3`): reading them and writing them in their canonical form.
//!
//! Upstream decodes a quantity into a number and encodes it again in the shortest exact form, so that `1000m` is stored
//! and shown as `1`. Values are held in billionths, which is the finest that upstream keeps; what is finer is rounded
//! away from zero, so that somebody who asks for a little gets a little.

use std::cmp::Ordering;

use thiserror::Error;

/// How a quantity was written, which decides how it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    DecimalSi,
    BinarySi,
    Exponent,
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum QuantityError {
    /// It is not a number with a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The number is too large to be held.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
}

/// A quantity.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    negative: bool,
    /// Billionths.
    nanos: u128,
    notation: Notation,
}

const NANO: u128 = 1_000_000_000;
/// The largest binary quantity; upstream caps them.
const MAX_BINARY: u128 = i64::MAX as u128;
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
const BINARY_SUFFIXES: [(u32, &str); 6] = [
    (10, "Ki"),
    (20, "Mi"),
    (30, "Gi"),
    (40, "Ti"),
    (50, "Pi"),
    (60, "Ei"),
];

enum Suffix {
    Decimal(i32, Notation),
    Binary(u32),
}

impl Quantity {
    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            Some(_) => (false, text),
            None => return Err(QuantityError::Format),
        };
        let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, rest) = rest.split_at(digits(rest));
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(digits(rest)),
            None => ("", rest),
        };
        // A number without digits is zero, as for upstream.
        let suffix = suffix(rest)?;
        let (nanos, notation) = match suffix {
            Suffix::Decimal(exponent, notation) => (decimal(whole, fraction, exponent)?, notation),
            Suffix::Binary(exponent) => binary(whole, fraction, exponent),
        };
        Ok(Self {
            negative: negative && nanos != 0,
            nanos,
            notation,
        })
    }

    /// The canonical form.
    pub fn canonical(&self) -> String {
        if self.nanos == 0 {
            return "0".to_owned();
        }
        let whole = self.nanos.is_multiple_of(NANO).then_some(self.nanos / NANO);
        let (number, suffix) = match (self.notation, whole) {
            (Notation::BinarySi, Some(whole)) if whole >= 1024 => {
                let power = (whole.trailing_zeros() / 10).min(6);
                let suffix = power.checked_sub(1).map_or("", |i| BINARY_SUFFIXES[i as usize].1);
                (whole >> (10 * power), suffix.to_owned())
            }
            (notation, _) => {
                let (mut number, mut exponent) = (self.nanos, -9);
                while number.is_multiple_of(1000) && (notation == Notation::Exponent || exponent < 18) {
                    number /= 1000;
                    exponent += 3;
                }
                let suffix = match notation {
                    Notation::Exponent if exponent != 0 => format!("e{exponent}"),
                    Notation::Exponent => String::new(),
                    _ => suffix_of(exponent).to_owned(),
                };
                (number, suffix)
            }
        };
        format!("{}{number}{suffix}", if self.negative { "-" } else { "" })
    }

    /// The value in billionths, or `None` if it does not fit.
    pub fn nanos(&self) -> Option<i128> {
        let nanos = i128::try_from(self.nanos).ok()?;
        Some(if self.negative { -nanos } else { nanos })
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
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
        match (self.negative, other.negative) {
            (false, false) => self.nanos.cmp(&other.nanos),
            (true, true) => other.nanos.cmp(&self.nanos),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

/// The form in which upstream stores a quantity, or `None` if it stores it as it is written. Upstream keeps the text if
/// number and suffix cannot be made shorter, even when that is not the canonical form (`+1`, `1E3`).
pub fn stored_form(text: &str) -> Result<Option<String>, QuantityError> {
    let quantity = Quantity::parse(text)?;
    Ok(if is_kept(text) {
        None
    } else {
        Some(quantity.canonical()).filter(|form| form != text)
    })
}

fn is_kept(text: &str) -> bool {
    let text = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let length = whole.len() + fraction.len();
    match suffix(rest) {
        Ok(Suffix::Decimal(exponent, _)) => {
            let scale = i64::from(exponent) - i64::try_from(fraction.len()).unwrap_or(i64::MAX);
            let round = match fraction.len() {
                0 => whole.ends_with("000"),
                1 => fraction == "0" && whole.ends_with("00"),
                2 => fraction == "00" && whole.ends_with('0'),
                _ => fraction.ends_with("000"),
            };
            !whole.is_empty() && length <= 18 && scale >= -9 && scale % 3 == 0 && !round
        }
        Ok(Suffix::Binary(exponent)) => {
            // Beyond that many digits upstream takes another way, which always ends in the canonical form.
            let room = 14 - i64::from(exponent) * 3 / 10;
            let number = whole
                .parse::<u64>()
                .ok()
                .filter(|_| fraction.is_empty() && !text.contains('.'));
            number.is_some_and(|n| i64::try_from(length).is_ok_and(|l| l <= room) && n % 8 != 0)
        }
        Err(_) => false,
    }
}

fn suffix_of(exponent: i32) -> &'static str {
    DECIMAL_SUFFIXES
        .iter()
        .find(|(e, _)| *e == exponent)
        .map_or("", |(_, s)| s)
}

fn suffix(text: &str) -> Result<Suffix, QuantityError> {
    if let Some((exponent, _)) = DECIMAL_SUFFIXES.iter().find(|(_, s)| *s == text) {
        return Ok(Suffix::Decimal(*exponent, Notation::DecimalSi));
    }
    if let Some((exponent, _)) = BINARY_SUFFIXES.iter().find(|(_, s)| *s == text) {
        return Ok(Suffix::Binary(*exponent));
    }
    if let Some(exponent) = text.strip_prefix(['e', 'E']) {
        return match exponent.parse::<i32>() {
            Ok(exponent) => Ok(Suffix::Decimal(exponent, Notation::Exponent)),
            Err(_) => Err(QuantityError::Suffix),
        };
    }
    let known = |c: char| c.is_ascii_digit() || "eEinumkKMGTP+-".contains(c);
    Err(if text.chars().all(known) {
        QuantityError::Suffix
    } else {
        QuantityError::Format
    })
}

/// Billionths of a decimal number.
fn decimal(whole: &str, fraction: &str, exponent: i32) -> Result<u128, QuantityError> {
    let mut digits = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').peekable();
    while digits.next_if_eq(&0).is_some() {}
    let digits: Vec<u8> = digits.collect();
    // The number is `digits` times ten to the power of `shift`, in billionths.
    let shift = i64::from(exponent) - i64::try_from(fraction.len()).unwrap_or(i64::MAX) + 9;
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let kept = if shift >= 0 {
        length
    } else {
        (length + shift).max(0)
    };
    if digits.is_empty() {
        return Ok(0);
    }
    if kept + shift.max(0) > 38 {
        return Err(QuantityError::Numeric);
    }
    let kept = usize::try_from(kept).unwrap_or(usize::MAX);
    let mut value = digits[..kept]
        .iter()
        .try_fold(0u128, |n, d| n.checked_mul(10)?.checked_add(u128::from(*d)));
    for _ in 0..shift.max(0) {
        value = value.and_then(|n| n.checked_mul(10));
    }
    let rounding = u128::from(digits[kept..].iter().any(|d| *d != 0));
    value
        .and_then(|n| n.checked_add(rounding))
        .ok_or(QuantityError::Numeric)
}

/// Billionths of a number with a binary suffix, capped at what 64 bits hold.
fn binary(whole: &str, fraction: &str, exponent: u32) -> (u128, Notation) {
    const KEPT: usize = 18;
    let whole = whole.trim_start_matches('0');
    let integer = if whole.len() > 20 {
        MAX_BINARY + 1
    } else {
        whole.parse().unwrap_or(0u128)
    };
    let (kept, rest) = fraction.split_at(fraction.len().min(KEPT));
    let scale = 10u128.pow(u32::try_from(KEPT - kept.len()).unwrap_or(0));
    let parts = (kept.parse().unwrap_or(0u128) * scale) << exponent;
    // Eighteen digits of the fraction count, which upstream does exactly; anything below a billionth rounds up.
    let finer = !parts.is_multiple_of(NANO) || rest.bytes().any(|b| b != b'0');
    let nanos = parts / NANO
        + u128::from(finer)
        + (integer.min(MAX_BINARY + 1) << exponent).min(MAX_BINARY + 1) * NANO;
    let nanos = nanos.min(MAX_BINARY * NANO);
    (
        nanos,
        if nanos < NANO {
            Notation::DecimalSi
        } else {
            Notation::BinarySi
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms_are_upstream_s() {
        for (text, expected) in [
            ("0", "0"),
            ("0Ki", "0"),
            ("-0", "0"),
            ("1", "1"),
            ("+1", "1"),
            ("007", "7"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.", "1"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("1000Ki", "1000Ki"),
            ("0.5Ki", "512"),
            ("1023", "1023"),
            ("1000", "1k"),
            ("1000000", "1M"),
            ("12000k", "12M"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e5", "1200e3"),
            ("1e-3", "1e-3"),
            ("-5m", "-5m"),
            ("0.1n", "1n"),
            ("1.0000000001", "1000000001n"),
            ("100000E", "100000E"),
            ("9223372036854775807Ei", "9223372036854775807"),
            ("0.0000001Ki", "102400n"),
        ] {
            assert_eq!(
                Quantity::parse(text).map(|q| q.canonical()),
                Ok(expected.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for (text, error) in [
            ("", QuantityError::Format),
            ("abc", QuantityError::Format),
            ("true", QuantityError::Format),
            ("1 Gi", QuantityError::Format),
            ("1.2.3", QuantityError::Format),
            ("1Kii", QuantityError::Suffix),
            ("1K", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
            ("1e99999999999", QuantityError::Suffix),
            ("1e1000000", QuantityError::Numeric),
        ] {
            assert_eq!(Quantity::parse(text).map(|q| q.canonical()), Err(error), "{text}");
        }
        let long = "9".repeat(100_000);
        assert_eq!(Quantity::parse(&long), Err(QuantityError::Numeric));
        let nearly = Quantity::parse(&format!("0.{long}Gi"));
        assert!(nearly.unwrap() < Quantity::parse("1Gi").unwrap());
    }

    #[test]
    fn text_is_kept_where_upstream_keeps_it() {
        for text in [
            "0", "1", "+1", "007", "1.", "100m", "1500m", "1E3", "512Mi", "1Gi", "-5m", "1e-3", "1000Ki",
        ] {
            assert_eq!(stored_form(text), Ok(None), "{text}");
        }
        for (text, stored) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000", "1k"),
            ("1000.0", "1k"),
            ("100.00n", "100n"),
            ("-0", "0"),
            ("12e5", "1200e3"),
            ("1.5e3", "1500"),
            ("1e20", "100e18"),
            ("m", "0"),
        ] {
            assert_eq!(stored_form(text), Ok(Some(stored.to_owned())), "{text}");
        }
    }

    #[test]
    fn quantities_compare_by_value() {
        let q = |text| Quantity::parse(text).unwrap();
        assert_eq!(q("1"), q("1000m"));
        assert!(q("1Gi") > q("1G") && q("-1") < q("0") && q("-2") < q("-1"));
        assert_eq!(q("-1.5").nanos(), Some(-1_500_000_000));
    }
}
