//! Floats in Go's formats. The digits come from the standard library, which rounds exactly; where they go is decided
//! here.

/// Digits without leading zeros and the decimal point's place: 0.`digits` × 10^`point`.
struct Decimal {
    digits: Vec<u8>,
    point: i32,
}

fn decimal(value: f64, precision: Option<usize>) -> Decimal {
    let text = match precision {
        Some(precision) => format!("{:.*e}", precision, value.abs()),
        None => format!("{:e}", value.abs()),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 {
        digits = vec![b'0'; digits.len()];
        return Decimal { digits, point: 1 };
    }
    Decimal {
        digits,
        point: exponent + 1,
    }
}

fn special(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        _ => None,
    }
}

/// The shortest form that reads back as the same number, as `%v` prints it.
pub(crate) fn float_g(value: f64) -> String {
    format(value, 'g', None)
}

/// Go's `strconv.FormatFloat` for 64 bits, with a sign only if it is negative.
pub(crate) fn format(value: f64, verb: char, precision: Option<usize>) -> String {
    if let Some(name) = special(value) {
        return name.to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let body = match verb {
        'e' | 'E' => {
            let number = decimal(value, precision);
            scientific(&number, number.digits.len().saturating_sub(1), verb)
        }
        'f' | 'F' => match precision {
            Some(precision) => format!("{:.*}", precision, value.abs()),
            None => {
                let number = decimal(value, None);
                let fraction = number.digits.len() as i32 - number.point;
                positional(&number, usize::try_from(fraction).unwrap_or(0))
            }
        },
        'b' => return format!("{sign}{}", binary_exponent(value)),
        'x' | 'X' => return format!("{sign}{}", hexadecimal(value, verb)),
        _ => general(value, verb, precision),
    };
    format!("{sign}{body}")
}

fn general(value: f64, verb: char, precision: Option<usize>) -> String {
    let exponent_verb = if verb == 'G' { 'E' } else { 'e' };
    let mut number = match precision {
        Some(precision) => decimal(value, Some(precision.max(1) - 1)),
        None => decimal(value, None),
    };
    // Zeros at the end do not count as digits.
    while number.digits.len() > 1 && number.digits.last() == Some(&b'0') {
        number.digits.pop();
    }
    let digits = number.digits.len() as i32;
    let threshold = match precision {
        None => 6,
        Some(precision) => {
            let precision = precision.max(1) as i32;
            if precision > digits && digits >= number.point {
                digits
            } else {
                precision
            }
        }
    };
    let exponent = number.point - 1;
    if exponent < -4 || exponent >= threshold {
        return scientific(&number, number.digits.len() - 1, exponent_verb);
    }
    positional(&number, usize::try_from(digits - number.point).unwrap_or(0))
}

fn scientific(number: &Decimal, fraction: usize, verb: char) -> String {
    let mut out = String::new();
    out.push(char::from(number.digits.first().copied().unwrap_or(b'0')));
    if fraction > 0 {
        out.push('.');
        out.extend((1..=fraction).map(|at| char::from(number.digits.get(at).copied().unwrap_or(b'0'))));
    }
    let exponent = number.point - 1;
    let sign = if exponent < 0 { '-' } else { '+' };
    out.push_str(&format!("{verb}{sign}{:02}", exponent.abs()));
    out
}

fn positional(number: &Decimal, fraction: usize) -> String {
    let digit = |at: i32| {
        let found = usize::try_from(at).ok().and_then(|at| number.digits.get(at));
        char::from(found.copied().unwrap_or(b'0'))
    };
    let mut out = String::new();
    match number.point > 0 {
        true => out.extend((0..number.point).map(digit)),
        false => out.push('0'),
    }
    if fraction > 0 {
        out.push('.');
        out.extend((0..fraction as i32).map(|at| digit(number.point + at)));
    }
    out
}

/// Mantissa and exponent of a float as integers.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.abs().to_bits();
    let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52) as i32);
    match exponent {
        0 => (fraction, -1074),
        _ => (fraction | (1 << 52), exponent - 1075),
    }
}

fn binary_exponent(value: f64) -> String {
    let (mantissa, exponent) = parts(value);
    format!("{mantissa}p{exponent:+}")
}

fn hexadecimal(value: f64, verb: char) -> String {
    let (mut mantissa, mut exponent) = parts(value);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // One bit before the point.
        let shift = mantissa.leading_zeros() as i32 - 11;
        mantissa <<= shift;
        exponent += 52 - shift;
    }
    let fraction = format!("{:013x}", mantissa & ((1 << 52) - 1));
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    let text = format!(
        "0x{}{point}{fraction}p{sign}{:02}",
        mantissa >> 52,
        exponent.abs()
    );
    if verb == 'X' { text.to_uppercase() } else { text }
}
