//! The little of DER that a certificate needs, written.

pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const OCTET_STRING: u8 = 0x04;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT: u8 = 0x06;
const BOOLEAN: u8 = 0x01;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// A context-specific tag; `constructed` where its content is made of elements.
pub(crate) fn context(number: u8, constructed: bool) -> u8 {
    0x80 | if constructed { 0x20 } else { 0 } | number
}

/// Tag, length, content.
pub(crate) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    if length < 0x80 {
        // Below 128 it fits into seven bits.
        out.push(u8::try_from(length).unwrap_or(0));
    } else {
        let bytes = length.to_be_bytes();
        let significant = &bytes[bytes.iter().position(|b| *b != 0).unwrap_or(0)..];
        out.push(0x80 | u8::try_from(significant.len()).unwrap_or(0));
        out.extend_from_slice(significant);
    }
    out.extend_from_slice(content);
    out
}

/// Several elements as one.
pub(crate) fn group(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    element(tag, &parts.concat())
}

/// A positive number from its big-endian bytes.
pub(crate) fn positive(bytes: &[u8]) -> Vec<u8> {
    let first = bytes.iter().position(|b| *b != 0).unwrap_or(bytes.len());
    let mut content = bytes[first..].to_vec();
    if content.first().is_none_or(|b| b & 0x80 != 0) {
        content.insert(0, 0);
    }
    element(INTEGER, &content)
}

/// An object identifier from its encoded content.
pub(crate) fn object(content: &[u8]) -> Vec<u8> {
    element(OBJECT, content)
}

/// Whole bytes as a bit string.
pub(crate) fn bits(bytes: &[u8]) -> Vec<u8> {
    named_bits(bytes, 0)
}

/// A bit string whose last byte has unused bits.
pub(crate) fn named_bits(bytes: &[u8], unused: u8) -> Vec<u8> {
    let mut content = vec![unused];
    content.extend_from_slice(bytes);
    element(BIT_STRING, &content)
}

/// `TRUE`.
pub(crate) fn yes() -> Vec<u8> {
    element(BOOLEAN, &[0xff])
}

/// A moment: two digits of the year until 2049, four from then on, as RFC 5280 wants it.
pub(crate) fn time(unix: i64) -> Vec<u8> {
    let moment = jiff::Timestamp::from_second(unix).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let four = moment.strftime("%Y%m%d%H%M%SZ").to_string();
    let year: i32 = four[..4].parse().unwrap_or(1970);
    if (1950..2050).contains(&year) {
        element(UTC_TIME, &four.as_bytes()[2..])
    } else {
        element(GENERALIZED_TIME, four.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::{SEQUENCE, element, positive, time};

    #[test]
    fn lengths_and_numbers_are_minimal() {
        for (length, head) in [
            (0, vec![0x30, 0]),
            (127, vec![0x30, 127]),
            (128, vec![0x30, 0x81, 128]),
            (300, vec![0x30, 0x82, 1, 44]),
        ] {
            let made = element(SEQUENCE, &vec![0; length]);
            assert_eq!(made[..head.len()], head[..], "{length}");
            assert_eq!(made.len(), head.len() + length);
        }
        for (bytes, want) in [
            (vec![], vec![2, 1, 0]),
            (vec![0, 0, 5], vec![2, 1, 5]),
            (vec![0x80], vec![2, 2, 0, 0x80]),
            (vec![0x7f, 1], vec![2, 2, 0x7f, 1]),
        ] {
            assert_eq!(positive(&bytes), want, "{bytes:?}");
        }
    }

    #[test]
    fn years_change_their_form_in_2050() {
        for (unix, want) in [
            (0, "700101000000Z"),
            (2_524_607_999, "491231235959Z"),
            (2_524_608_000, "20500101000000Z"),
        ] {
            assert_eq!(time(unix)[2..], *want.as_bytes());
        }
    }
}
