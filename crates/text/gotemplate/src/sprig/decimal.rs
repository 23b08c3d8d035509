//! Decimal arithmetic for `addf` and its kin: 0.1 and 0.2 make 0.3. Numbers that do not fit are computed as floats.

/// `mantissa` × 10^`exponent`.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    mantissa: i128,
    exponent: i32,
}

/// How many digits after the point a quotient has.
const DIVISION_DIGITS: i32 = 16;

#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

fn from_float(value: f64) -> Option<Decimal> {
    if !value.is_finite() {
        return None;
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e')?;
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    Some(Decimal {
        mantissa: mantissa.replace('.', "").parse().ok()?,
        exponent: exponent
            .parse::<i32>()
            .ok()?
            .checked_sub(i32::try_from(fraction).ok()?)?,
    })
}

fn power(exponent: i32) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

fn rescale(value: Decimal, exponent: i32) -> Option<i128> {
    value.mantissa.checked_mul(power(value.exponent - exponent)?)
}

fn exact(left: Decimal, right: Decimal, operation: Operation) -> Option<Decimal> {
    let exponent = left.exponent.min(right.exponent);
    match operation {
        Operation::Add | Operation::Subtract => {
            let (left, right) = (rescale(left, exponent)?, rescale(right, exponent)?);
            let mantissa = match operation {
                Operation::Add => left.checked_add(right)?,
                _ => left.checked_sub(right)?,
            };
            Some(Decimal { mantissa, exponent })
        }
        Operation::Multiply => Some(Decimal {
            mantissa: left.mantissa.checked_mul(right.mantissa)?,
            exponent: left.exponent + right.exponent,
        }),
        Operation::Divide => {
            // left / right × 10^16, rounded half away from zero.
            let shift = left.exponent - right.exponent + DIVISION_DIGITS;
            let (numerator, denominator) = match shift >= 0 {
                true => (left.mantissa.checked_mul(power(shift)?)?, right.mantissa),
                false => (left.mantissa, right.mantissa.checked_mul(power(-shift)?)?),
            };
            let (quotient, rest) = (
                numerator.checked_div(denominator)?,
                numerator.checked_rem(denominator)?,
            );
            let sign = numerator.signum() * denominator.signum();
            let rounds = rest.abs().checked_mul(2)? >= denominator.abs();
            Some(Decimal {
                mantissa: quotient + if rounds { sign } else { 0 },
                exponent: -DIVISION_DIGITS,
            })
        }
    }
}

fn to_float(value: Decimal) -> f64 {
    format!("{}e{}", value.mantissa, value.exponent)
        .parse()
        .unwrap_or(0.0)
}

/// The first with each of the others in turn; an error where Go would panic.
pub(super) fn fold(first: f64, others: &[f64], operation: Operation) -> Result<f64, &'static str> {
    let divides = matches!(operation, Operation::Divide);
    if divides && others.contains(&0.0) {
        return Err("decimal division by 0");
    }
    let mut result = from_float(first);
    for other in others {
        result = result
            .zip(from_float(*other))
            .and_then(|(left, right)| exact(left, right, operation));
    }
    Ok(match result {
        Some(result) => to_float(result),
        None => others.iter().fold(first, |left, right| match operation {
            Operation::Add => left + right,
            Operation::Subtract => left - right,
            Operation::Multiply => left * right,
            Operation::Divide => left / right,
        }),
    })
}
