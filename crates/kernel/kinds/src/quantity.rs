//! Amounts of resources: parsing and the one canonical form in which the API stores them.
//!
//! A quantity is kept as a whole number of billionths, the finest step that Kubernetes knows; what is finer is
//! rounded away from zero. It remembers how it was written (`Ki`, `k`, `e3`), because that decides how it is shown.

use std::cmp::Ordering;

use serde_json::Value;

use crate::read;

/// How a quantity was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `1e3`
    DecimalExponent,
    /// `1Ki`
    BinarySi,
    /// `1k`
    DecimalSi,
}

/// An amount.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// What a text that is no quantity answers.
pub const FORMAT_ERROR: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const NANO: i128 = 1_000_000_000;
/// Amounts are capped here, as they are upstream.
const LARGEST: i128 = i64::MAX as i128 * NANO;
/// More significant digits than the largest amount has in billionths say nothing but "a little more".
const DIGITS: usize = 28;

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
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
        self.nanos.cmp(&other.nanos)
    }
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self {
        nanos: 0,
        format: Format::DecimalSi,
    };

    /// A whole amount.
    pub fn from_int(value: i64) -> Self {
        Self {
            nanos: i128::from(value) * NANO,
            format: Format::DecimalSi,
        }
    }

    /// Reads a quantity; numbers in JSON count as if they were quoted.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(s) => Self::parse(s),
            Value::Number(n) => Self::parse(&n.to_string()),
            _ => None,
        }
    }

    /// Reads a quantity.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
        let (negative, body) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = body
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(body.len());
        let (number, suffix) = body.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (format, base2, base10) = scale(suffix)?;

        let mut mantissa = 0_i128;
        let mut digits = 0_usize;
        let mut exponent = base10 + 9;
        let mut lost = false;
        let all = whole
            .bytes()
            .map(|b| (b, false))
            .chain(fraction.bytes().map(|b| (b, true)));
        for (byte, fractional) in all {
            let digit = i128::from(byte - b'0');
            if digits < DIGITS {
                mantissa = mantissa * 10 + digit;
                digits += usize::from(mantissa != 0);
                exponent -= i32::from(fractional);
            } else {
                lost |= digit != 0;
                exponent += i32::from(!fractional);
            }
        }
        let nanos = to_nanos(mantissa, lost, base2, exponent);
        Some(Self {
            nanos: if negative { -nanos } else { nanos },
            format,
        })
    }

    /// Less than, equal to, or more than nothing.
    pub fn sign(self) -> i32 {
        match self.nanos.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// Whether this is a whole number.
    pub fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    /// Whether this is a multiple of another quantity.
    pub fn is_multiple_of(self, other: Self) -> bool {
        other.nanos != 0 && self.nanos % other.nanos == 0
    }

    /// The amount as a whole number, rounded up.
    pub fn value(self) -> i64 {
        clamp(ceil_div(self.nanos, NANO))
    }

    /// The amount in thousandths, rounded up.
    pub fn milli_value(self) -> i64 {
        clamp(ceil_div(self.nanos, NANO / 1000))
    }

    /// The amount rounded up to thousandths, as the API does with resource lists.
    #[must_use]
    pub fn round_up_milli(self) -> Self {
        let step = NANO / 1000;
        Self {
            nanos: away_div(self.nanos, step) * step,
            format: self.format,
        }
    }

    /// The sum of two amounts, written as the first unless that is nothing.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let format = if self.nanos == 0 {
            other.format
        } else {
            self.format
        };
        Self {
            nanos: (self.nanos + other.nanos).clamp(-LARGEST, LARGEST),
            format,
        }
    }

    /// What is left when another amount is taken away, written as the first unless that is nothing.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        let format = if self.nanos == 0 {
            other.format
        } else {
            self.format
        };
        Self {
            nanos: (self.nanos - other.nanos).clamp(-LARGEST, LARGEST),
            format,
        }
    }

    /// The amount rounded up to a whole number.
    #[must_use]
    pub fn round_up(self) -> Self {
        Self {
            nanos: away_div(self.nanos, NANO) * NANO,
            format: self.format,
        }
    }

    /// The canonical text.
    pub fn canonical(self) -> String {
        if self.nanos == 0 {
            return "0".to_owned();
        }
        let small = self.nanos.abs() < 1024 * NANO;
        match self.format {
            Format::BinarySi if !small => {
                let (number, steps) = strip(away_div(self.nanos, NANO), 1024, 6);
                format!("{number}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][steps])
            }
            Format::DecimalExponent => {
                let (number, steps) = strip(self.nanos, 1000, 12);
                match steps * 3 {
                    9 => number.to_string(),
                    power if power < 9 => format!("{number}e-{}", 9 - power),
                    power => format!("{number}e{}", power - 9),
                }
            }
            Format::BinarySi | Format::DecimalSi => {
                let (number, steps) = strip(self.nanos, 1000, 9);
                format!(
                    "{number}{}",
                    ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][steps]
                )
            }
        }
    }
}

/// Format, power of two and power of ten of a suffix.
fn scale(suffix: &str) -> Option<(Format, u32, i32)> {
    let decimal = |power| Some((Format::DecimalSi, 0, power));
    let binary = |power| Some((Format::BinarySi, power, 0));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let power = suffix.strip_prefix(['e', 'E'])?;
            let digits = power.strip_prefix(['+', '-']).unwrap_or(power);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            // Powers beyond any amount saturate or vanish; the exact figure does not matter there.
            let power = power.parse::<i32>().ok()?.clamp(-1000, 1000);
            Some((Format::DecimalExponent, 0, power))
        }
    }
}

/// `mantissa * 2^base2 * 10^exponent`, rounded up and capped.
fn to_nanos(mut mantissa: i128, mut lost: bool, base2: u32, mut exponent: i32) -> i128 {
    // Make room for the power of two by giving up digits that a division below would give up anyway.
    while exponent < 0 && mantissa > i128::MAX >> base2 {
        lost |= mantissa % 10 != 0;
        mantissa /= 10;
        exponent += 1;
    }
    if mantissa > i128::MAX >> base2 {
        return LARGEST;
    }
    mantissa <<= base2;
    while exponent > 0 && mantissa != 0 {
        if mantissa > LARGEST {
            return LARGEST;
        }
        mantissa *= 10;
        exponent -= 1;
    }
    while exponent < 0 && mantissa != 0 {
        lost |= mantissa % 10 != 0;
        mantissa /= 10;
        exponent += 1;
    }
    (mantissa + i128::from(lost)).min(LARGEST)
}

/// Takes a factor out of a number, at most `most` times.
fn strip(mut number: i128, factor: i128, most: usize) -> (i128, usize) {
    let mut steps = 0;
    while steps < most && number % factor == 0 {
        number /= factor;
        steps += 1;
    }
    (number, steps)
}

fn ceil_div(number: i128, by: i128) -> i128 {
    number.div_euclid(by) + i128::from(number.rem_euclid(by) != 0)
}

fn away_div(number: i128, by: i128) -> i128 {
    if number < 0 {
        -ceil_div(-number, by)
    } else {
        ceil_div(number, by)
    }
}

fn clamp(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

/// Brings a quantity field to its canonical form; what is no quantity stays for the validator to refuse.
pub fn canonicalize(obj: &mut Value, key: &str) {
    if let Some(slot) = obj.get_mut(key) {
        canonicalize_value(slot, false);
    }
}

fn canonicalize_value(slot: &mut Value, round_to_milli: bool) {
    let Some(mut quantity) = Quantity::from_value(slot) else {
        return;
    };
    if round_to_milli {
        quantity = quantity.round_up_milli();
    }
    let text = quantity.canonical();
    if slot.as_str() != Some(&text) {
        *slot = Value::String(text);
    }
}

/// Brings every amount of a resource list (`limits`, `capacity`, `hard`) to its canonical form, in thousandths.
pub fn canonicalize_list(obj: &mut Value, key: &str) {
    for (_, slot) in obj
        .get_mut(key)
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
    {
        canonicalize_value(slot, true);
    }
}

/// The amounts of a resource list.
pub fn amounts<'a>(obj: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, Option<Quantity>)> {
    read::entries(obj, key).map(|(name, value)| (name, Quantity::from_value(value)))
}

#[cfg(test)]
mod tests {
    use super::{Quantity, canonicalize_list};

    #[test]
    fn canonical_forms() {
        let cases = [
            ("0", "0", "nothing"),
            ("1000m", "1", "thousandths that make a whole"),
            ("100m", "100m", "less than a whole"),
            ("0.5", "500m", "decimals become thousandths"),
            ("1.5Gi", "1536Mi", "binary suffixes keep whole numbers"),
            ("1024Ki", "1Mi", "the largest binary suffix"),
            ("512Ki", "512Ki", "no larger suffix fits"),
            ("1023", "1023", "plain numbers stay"),
            ("1024", "1024", "plain numbers are decimal"),
            ("0.5Ki", "512", "binary below 1024 is decimal"),
            ("1e3", "1e3", "exponents stay exponents"),
            ("12e4", "120e3", "in steps of a thousand"),
            ("1e-3", "1e-3", "also below one"),
            ("1000k", "1M", "the largest decimal suffix"),
            ("128974848", "128974848", "example of the documentation"),
            ("129e6", "129e6", "example of the documentation"),
            ("123Mi", "123Mi", "example of the documentation"),
            ("-1", "-1", "negative"),
            ("+5", "5", "a plus sign says nothing"),
            (".5", "500m", "no whole part"),
            ("5.", "5", "no fraction"),
            ("0.0000000001", "1n", "finer than a billionth is rounded up"),
            ("9223372036854775807", "9223372036854775807", "the largest amount"),
            (
                "99999999999999999999999999999999999999999",
                "9223372036854775807",
                "capped",
            ),
            ("1E", "1E", "exa, not an exponent"),
            ("1e99", "9223372036854775807e0", "capped"),
        ];
        for (input, expected, reason) in cases {
            let quantity = Quantity::parse(input).unwrap_or_else(|| panic!("{input}: {reason}"));
            let expected = expected.strip_suffix("e0").unwrap_or(expected);
            assert_eq!(quantity.canonical(), expected, "{input}: {reason}");
        }
    }

    #[test]
    fn what_is_no_quantity() {
        for input in [
            "", "m", "1.2.3", "1 Gi", "1gi", "1KI", "--1", "1e", "1e1.5", "0x10", "1mm", "Ki",
        ] {
            assert!(Quantity::parse(input).is_none(), "{input}");
        }
    }

    #[test]
    fn hostile_lengths_end() {
        let long = "9".repeat(100_000);
        assert_eq!(Quantity::parse(&long).unwrap().value(), i64::MAX);
        let fine = format!("0.{}1Ei", "0".repeat(100_000));
        assert_eq!(Quantity::parse(&fine).unwrap().canonical(), "1n");
    }

    #[test]
    fn resource_lists_round_up_to_thousandths() {
        let mut obj = serde_json::json!({"limits": {"cpu": 1, "memory": "1024Mi", "x": "100u"}});
        canonicalize_list(&mut obj, "limits");
        assert_eq!(
            obj,
            serde_json::json!({"limits": {"cpu": "1", "memory": "1Gi", "x": "1m"}})
        );
    }

    #[test]
    fn order_ignores_writing() {
        assert!(Quantity::parse("1Gi") > Quantity::parse("1G"));
        assert_eq!(Quantity::parse("1000m"), Quantity::parse("1"));
    }
}
