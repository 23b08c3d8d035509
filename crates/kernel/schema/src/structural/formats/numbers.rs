//! Identifiers, check digits, colours and base64.

/// Hexadecimal digits 8-4-4-4-12 with optional dashes. `version` asks for a version digit, and whether the variant is
/// checked as well.
pub(super) fn is_uuid(text: &str, version: Option<(u8, bool)>) -> bool {
    let mut digits = [0_u8; 32];
    let mut count = 0;
    let mut dashed_at = 0;
    for byte in text.bytes() {
        if byte == b'-' {
            // One dash after each of the first four groups.
            if !matches!(count, 8 | 12 | 16 | 20) || dashed_at == count {
                return false;
            }
            dashed_at = count;
            continue;
        }
        if count == 32 || !byte.is_ascii_hexdigit() {
            return false;
        }
        digits[count] = byte.to_ascii_lowercase();
        count += 1;
    }
    if count != 32 || text.ends_with('-') {
        return false;
    }
    version.is_none_or(|(number, variant)| {
        digits[12] == number && (!variant || matches!(digits[16], b'8' | b'9' | b'a' | b'b'))
    })
}

fn without_space_and_minus(text: &str) -> Vec<u8> {
    text.bytes()
        .filter(|b| !matches!(b, b'-' | b'\t' | b'\n' | 0x0c | b'\r' | b' '))
        .collect()
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let b = without_space_and_minus(text);
    if b.len() != 10 || !b[..9].iter().all(u8::is_ascii_digit) || !(b[9] == b'X' || b[9].is_ascii_digit()) {
        return false;
    }
    let sum: u32 = (1..).zip(&b[..9]).map(|(i, d)| i * u32::from(d - b'0')).sum();
    let last = if b[9] == b'X' { 10 } else { u32::from(b[9] - b'0') };
    (sum + 10 * last).is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let b = without_space_and_minus(text);
    if b.len() != 13 || !b.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = b[..12]
        .iter()
        .enumerate()
        .map(|(i, d)| if i % 2 == 0 { 1 } else { 3 } * u32::from(d - b'0'))
        .sum();
    u32::from(b[12] - b'0') == (10 - sum % 10) % 10
}

/// Known issuers' prefixes and lengths, and Luhn's check digit; anything but digits is ignored.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).collect();
    let Ok(number) = std::str::from_utf8(&digits) else {
        return false;
    };
    let length = number.len();
    let second = digits.get(1).copied().unwrap_or(0);
    let issuer = match number.as_bytes().first() {
        Some(b'4') => length == 13 || length == 16,
        Some(b'5') => length == 16 && (b'1'..=b'5').contains(&second),
        Some(b'6') => length == 16 && (number.starts_with("6011") || second == b'5'),
        Some(b'3') if matches!(second, b'4' | b'7') => length == 15,
        Some(b'3') if matches!(second, b'6' | b'8') => length == 14,
        Some(b'3') if second == b'0' => length == 14 && (b'0'..=b'5').contains(&digits[2]),
        Some(b'3') if second == b'5' => length == 16,
        Some(_) => length == 15 && (number.starts_with("2131") || number.starts_with("1800")),
        None => false,
    };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, d)| {
            let digit = u32::from(d - b'0');
            match (i % 2, digit * 2) {
                (0, _) => digit,
                (_, doubled) if doubled >= 10 => doubled - 9,
                (_, doubled) => doubled,
            }
        })
        .sum();
    issuer && sum.is_multiple_of(10)
}

/// `123-45-6789`; the separators may also be spaces.
pub(super) fn is_ssn(text: &str) -> bool {
    let b = text.as_bytes();
    b.len() == 11
        && b.iter().enumerate().all(|(i, c)| match i {
            3 | 6 => matches!(c, b'-' | b' '),
            _ => c.is_ascii_digit(),
        })
}

pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

pub(super) fn is_rgb_color(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|t| t.strip_suffix(')')) else {
        return false;
    };
    let parts: Vec<&str> = inner.split(',').collect();
    parts.len() == 3
        && parts.iter().all(|part| {
            let number = part.trim_matches(['\t', '\n', '\u{c}', '\r', ' ']);
            !number.is_empty()
                && number.bytes().all(|b| b.is_ascii_digit())
                && (number == "0" || !number.starts_with('0'))
                && number.parse::<u8>().is_ok()
        })
}

/// Base64 of the standard alphabet, padded and not empty.
pub(super) fn is_base64(text: &str) -> bool {
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return false;
    }
    let padding = text.bytes().rev().take(2).take_while(|b| *b == b'=').count();
    text.as_bytes()[..text.len() - padding]
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}
