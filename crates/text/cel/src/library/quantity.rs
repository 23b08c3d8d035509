//! Kubernetes quantities: `500m`, `1Gi`, `1.5e3`, with exact decimal arithmetic.

use std::cmp::Ordering;

use super::{Opaque, arg, opaque};
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::Registry;
use crate::meter::Meter;
use crate::value::Value;

/// `mantissa * 10^exponent`.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    mantissa: i128,
    exponent: i32,
    /// Whether the number is of the size that Kubernetes keeps as a 64-bit integer; only those can be integers to it.
    small: bool,
}

/// The smallest unit: a nano; finer amounts round up to it.
const NANO: i32 = -9;
/// Mantissas stay below this many digits, so that aligning two of equal magnitude cannot overflow.
const MAX_DIGITS: u32 = 37;

const FORMAT_WRONG: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC: &str = "unable to parse numeric part of quantity";
const SUFFIX: &str = "unable to parse quantity's suffix";

pub(super) fn register(r: &mut Registry) {
    r.add(
        "quantity",
        "(string) -> quantity",
        Cost::ScanArgument,
        |_, args| {
            let quantity = Quantity::parse(arg!(args, 0, String)).map_err(Error::invalid)?;
            Ok(Value::opaque(Opaque::Quantity(quantity)))
        },
    );
    r.add("isQuantity", "(string) -> bool", Cost::ScanArgument, |_, args| {
        Ok(Value::Bool(Quantity::parse(arg!(args, 0, String)).is_ok()))
    });
    r.add("sign", "(quantity) -> int", Cost::Fixed(1), |_, args| {
        Ok(Value::Int(opaque!(args, 0, Quantity).mantissa.signum() as i64))
    });
    r.add(
        "isGreaterThan",
        "quantity.(quantity) -> bool",
        Cost::Fixed(1),
        |_, args| {
            Ok(Value::Bool(
                opaque!(args, 0, Quantity)
                    .compare(opaque!(args, 1, Quantity))
                    .is_gt(),
            ))
        },
    );
    r.add(
        "isLessThan",
        "quantity.(quantity) -> bool",
        Cost::Fixed(1),
        |_, args| {
            Ok(Value::Bool(
                opaque!(args, 0, Quantity)
                    .compare(opaque!(args, 1, Quantity))
                    .is_lt(),
            ))
        },
    );
    r.add(
        "compareTo",
        "quantity.(quantity) -> int",
        Cost::Fixed(1),
        |_, args| {
            Ok(Value::Int(
                opaque!(args, 0, Quantity).compare(opaque!(args, 1, Quantity)) as i64,
            ))
        },
    );
    r.add(
        "asApproximateFloat",
        "quantity.() -> double",
        Cost::Fixed(1),
        |_, args| Ok(Value::Double(opaque!(args, 0, Quantity).approximate())),
    );
    r.add(
        "asInteger",
        "quantity.() -> int",
        Cost::Fixed(1),
        |_, args| match opaque!(args, 0, Quantity).as_integer() {
            Some(value) => Ok(Value::Int(value)),
            None => Err(Error::invalid("cannot convert value to integer")),
        },
    );
    r.add("isInteger", "quantity.() -> bool", Cost::Fixed(1), |_, args| {
        Ok(Value::Bool(opaque!(args, 0, Quantity).as_integer().is_some()))
    });
    r.add(
        "add",
        "quantity.(quantity) -> quantity",
        Cost::Fixed(1),
        |_, args| sum(opaque!(args, 0, Quantity), *opaque!(args, 1, Quantity)),
    );
    r.add("add", "quantity.(int) -> quantity", Cost::Fixed(1), |_, args| {
        sum(opaque!(args, 0, Quantity), Quantity::whole(*arg!(args, 1, Int)))
    });
    r.add(
        "sub",
        "quantity.(quantity) -> quantity",
        Cost::Fixed(1),
        |_, args| sum(opaque!(args, 0, Quantity), opaque!(args, 1, Quantity).negated()),
    );
    r.add("sub", "quantity.(int) -> quantity", Cost::Fixed(1), subtract_int);
}

fn subtract_int<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    sum(
        opaque!(args, 0, Quantity),
        Quantity::whole(*arg!(args, 1, Int)).negated(),
    )
}

fn sum<'a>(left: &Quantity, right: Quantity) -> Result<Value<'a>, Error> {
    let sum = left.add(right).ok_or(Error::Overflow("quantity"))?;
    Ok(Value::opaque(Opaque::Quantity(sum)))
}

fn digits(mantissa: i128) -> u32 {
    mantissa.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1)
}

fn scaled(mantissa: i128, places: i64) -> Option<i128> {
    let factor = 10i128.checked_pow(u32::try_from(places).ok()?)?;
    mantissa.checked_mul(factor)
}

/// The suffix's base, its exponent, and whether it is a binary one.
fn interpret_suffix(suffix: &str) -> Option<(bool, i32)> {
    Some(match suffix {
        "n" => (false, -9),
        "u" => (false, -6),
        "m" => (false, -3),
        "" => (false, 0),
        "k" => (false, 3),
        "M" => (false, 6),
        "G" => (false, 9),
        "T" => (false, 12),
        "P" => (false, 15),
        "E" => (false, 18),
        "Ki" => (true, 10),
        "Mi" => (true, 20),
        "Gi" => (true, 30),
        "Ti" => (true, 40),
        "Pi" => (true, 50),
        "Ei" => (true, 60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            (false, exponent.parse().ok()?)
        }
    })
}

impl Quantity {
    fn whole(value: i64) -> Quantity {
        Quantity {
            mantissa: i128::from(value),
            exponent: 0,
            small: true,
        }
    }

    fn negated(self) -> Quantity {
        Quantity {
            mantissa: -self.mantissa,
            ..self
        }
    }

    fn parse(text: &str) -> Result<Quantity, &'static str> {
        if text.is_empty() {
            return Err(FORMAT_WRONG);
        }
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let unsigned = unsigned.trim_start_matches('0');
        let split = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, mut rest) = unsigned.split_at(split(unsigned));
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            (fraction, rest) = after.split_at(split(after));
        }
        let letters = rest.bytes().take_while(|b| b"eEinumkKMGTP".contains(b)).count();
        let exponent = rest[letters..]
            .strip_prefix(['+', '-'])
            .unwrap_or(&rest[letters..]);
        if !exponent.bytes().all(|b| b.is_ascii_digit()) {
            return Err(FORMAT_WRONG);
        }
        let (binary, exponent) = interpret_suffix(rest).ok_or(SUFFIX)?;
        let length = (whole.len().max(1) + fraction.len()) as i32;
        let number = format!("0{whole}{fraction}");
        if number.trim_start_matches('0').len() > MAX_DIGITS as usize {
            return Err(NUMERIC);
        }
        let number: i128 = number.parse().map_err(|_| NUMERIC)?;
        let number = if negative { -number } else { number };
        let places = -(fraction.len() as i32);
        if binary {
            return Quantity::binary(number, exponent, places, length);
        }
        let exponent = exponent.checked_add(places).ok_or(NUMERIC)?;
        let small = length <= 18 && exponent >= NANO;
        Ok(Quantity {
            mantissa: number,
            exponent,
            small,
        }
        .rounded())
    }

    fn binary(number: i128, power: i32, places: i32, length: i32) -> Result<Quantity, &'static str> {
        let precision = 15 - length - power * 3 / 10 - 1;
        let small = places == 0 && precision >= 0;
        let mantissa = number.checked_mul(1i128 << power).ok_or(NUMERIC)?;
        let exact = Quantity {
            mantissa,
            exponent: places,
            small,
        }
        .rounded();
        let largest = Quantity::whole(i64::MAX);
        Ok(match exact.compare(&largest) {
            Ordering::Greater => Quantity {
                small: false,
                ..largest
            },
            _ if exact.compare(&largest.negated()).is_lt() => Quantity {
                small: false,
                ..largest.negated()
            },
            _ => exact,
        })
    }

    /// Amounts finer than a nano round away from zero.
    fn rounded(self) -> Quantity {
        if self.exponent >= NANO || self.mantissa == 0 {
            return self;
        }
        let excess = (NANO - self.exponent) as u32;
        let sign = self.mantissa.signum();
        let mantissa = match 10i128.checked_pow(excess) {
            Some(factor) => sign * ((self.mantissa.abs() + factor - 1) / factor),
            None => sign,
        };
        Quantity {
            mantissa,
            exponent: NANO,
            small: false,
        }
    }

    /// Exact comparison.
    pub(crate) fn compare(&self, other: &Quantity) -> Ordering {
        let sign = self.mantissa.signum().cmp(&other.mantissa.signum());
        if sign.is_ne() || self.mantissa == 0 {
            return sign;
        }
        let magnitude = |q: &Quantity| i64::from(digits(q.mantissa)) + i64::from(q.exponent);
        let by_size = magnitude(self).cmp(&magnitude(other));
        if by_size.is_ne() {
            return if self.mantissa > 0 {
                by_size
            } else {
                by_size.reverse()
            };
        }
        // Equal magnitude: the aligned mantissa has as many digits as the other one.
        let gap = i64::from(self.exponent) - i64::from(other.exponent);
        let left = scaled(self.mantissa, gap.max(0)).unwrap_or(self.mantissa);
        let right = scaled(other.mantissa, (-gap).max(0)).unwrap_or(other.mantissa);
        left.cmp(&right)
    }

    fn add(self, other: Quantity) -> Option<Quantity> {
        if self.mantissa == 0 {
            return Some(other);
        }
        if other.mantissa == 0 {
            return Some(self);
        }
        let exponent = self.exponent.min(other.exponent);
        let left = scaled(self.mantissa, i64::from(self.exponent) - i64::from(exponent))?;
        let right = scaled(other.mantissa, i64::from(other.exponent) - i64::from(exponent))?;
        let mantissa = left.checked_add(right).filter(|sum| digits(*sum) <= MAX_DIGITS)?;
        let fits = |value: i128| i64::try_from(value).is_ok();
        let small = self.small && other.small && fits(left) && fits(right) && fits(mantissa);
        Some(Quantity {
            mantissa,
            exponent,
            small,
        })
    }

    fn as_integer(&self) -> Option<i64> {
        if !self.small {
            return None;
        }
        i64::try_from(scaled(self.mantissa, i64::from(self.exponent))?).ok()
    }

    fn approximate(&self) -> f64 {
        let base = self.mantissa as f64;
        if self.exponent == 0 {
            base
        } else {
            base * 10f64.powi(self.exponent)
        }
    }
}
