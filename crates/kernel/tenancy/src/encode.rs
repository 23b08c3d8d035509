//! How kcp writes hashes: the digest as one large number, in base 36 or 62.
//!
//! Identifiers, label values and generated names all use it, so it has to be the same digit for digit.

use sha2::{Digest, Sha224};

const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// `bytes` as a big-endian number in `base`, without leading zeros.
fn number(bytes: &[u8], base: u16) -> String {
    let mut rest: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
    let mut digits = Vec::new();
    while !rest.is_empty() {
        let mut remainder = 0_u16;
        for byte in &mut rest {
            let value = (remainder << 8) | u16::from(*byte);
            // The quotient of (remainder·256 + byte) / base is below 256 because the remainder is below the base.
            *byte = u8::try_from(value / base).unwrap_or(u8::MAX);
            remainder = value % base;
        }
        digits.push(DIGITS[usize::from(remainder)]);
        let leading = rest.iter().take_while(|byte| **byte == 0).count();
        rest.drain(..leading);
    }
    if digits.is_empty() {
        digits.push(b'0');
    }
    digits.iter().rev().map(|digit| char::from(*digit)).collect()
}

/// As [`number`] in base 36, but each leading zero byte becomes a zero digit, so that texts do not get short by chance.
pub(crate) fn base36_padded(bytes: &[u8]) -> String {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut text = "0".repeat(zeros);
    if zeros < bytes.len() {
        text.push_str(&number(bytes, 36));
    }
    text
}

/// The SHA-224 of a text in base 62.
pub(crate) fn base62_sha224(text: &str) -> String {
    number(&Sha224::digest(text.as_bytes()), 62)
}

/// Bytes in base 62.
pub(crate) fn base62(bytes: &[u8]) -> String {
    number(bytes, 62)
}

/// The SHA-224 of bytes.
pub(crate) fn sha224(bytes: &[u8]) -> [u8; 28] {
    Sha224::digest(bytes).into()
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|nibble| char::from(DIGITS[usize::from(nibble)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (bytes, base36, base62) in [
            (&[][..], "", "0"),
            (&[0][..], "0", "0"),
            (&[0, 0][..], "00", "0"),
            (&[35][..], "z", "z"),
            (&[36][..], "10", "A"),
            (&[61][..], "1p", "Z"),
            (&[1, 0][..], "74", "48"),
            (&[0, 1, 0][..], "074", "48"),
            (&[255; 8][..], "3w5e11264sgsf", "lYGhA16ahyf"),
        ] {
            assert_eq!(base36_padded(bytes), base36, "{bytes:?} in base 36");
            assert_eq!(super::base62(bytes), base62, "{bytes:?} in base 62");
        }
        assert_eq!(hex(&[0, 15, 255]), "000fff");
    }
}
