//! Just enough of DER, the encoding of keys and certificates, and of PEM around it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use num_bigint::BigUint;

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OID: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// A value with its tag and length.
pub(super) fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match content.len() {
        length @ 0..128 => out.push(length as u8),
        length => {
            let bytes: Vec<u8> = length
                .to_be_bytes()
                .into_iter()
                .skip_while(|byte| *byte == 0)
                .collect();
            out.push(0x80 | bytes.len() as u8);
            out.extend_from_slice(&bytes);
        }
    }
    out.extend_from_slice(content);
    out
}

pub(super) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    tagged(SEQUENCE, &parts.concat())
}

/// A number, with a zero before it where it would look negative.
pub(super) fn integer(number: &BigUint) -> Vec<u8> {
    let mut bytes = number.to_bytes_be();
    if bytes.first().is_none_or(|byte| byte & 0x80 != 0) {
        bytes.insert(0, 0);
    }
    tagged(INTEGER, &bytes)
}

pub(super) fn small(number: u32) -> Vec<u8> {
    integer(&BigUint::from(number))
}

/// Bits, all of them used.
pub(super) fn bits(content: &[u8]) -> Vec<u8> {
    tagged(BIT_STRING, &[&[0], content].concat())
}

pub(super) fn oid(encoded: &[u8]) -> Vec<u8> {
    tagged(OID, encoded)
}

/// Reads values one after the other.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next value's tag, content, and the whole of it.
    pub(super) fn next(&mut self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = match first {
            0..128 => usize::from(first),
            _ => {
                let count = usize::from(first & 0x7f);
                if count == 0 || count > 4 {
                    return None;
                }
                let digits = rest.get(..count)?;
                rest = &rest[count..];
                digits
                    .iter()
                    .fold(0, |length, byte| (length << 8) | usize::from(*byte))
            }
        };
        let content = rest.get(..length)?;
        let whole = &self.0[..self.0.len() - rest.len() + length];
        self.0 = &rest[length..];
        Some((tag, content, whole))
    }

    /// The content of the next value, which must have this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next()
            .filter(|(found, ..)| *found == tag)
            .map(|(_, content, _)| content)
    }

    pub(super) fn number(&mut self) -> Option<BigUint> {
        self.expect(INTEGER).map(BigUint::from_bytes_be)
    }
}

/// `-----BEGIN KIND-----`, in lines of 64.
pub(super) fn to_pem(kind: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let mut out = format!("-----BEGIN {kind}-----\n");
    for line in encoded.as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out.push_str(&format!("-----END {kind}-----\n"));
    out
}

/// The kind and the bytes of the first block.
pub(super) fn from_pem(text: &str) -> Option<(String, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (kind, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {kind}-----"))?;
    // Headers, if there are any, end with an empty line.
    let body = match body.contains(':') {
        true => body.split_once("\n\n").map_or(body, |(_, body)| body),
        false => body,
    };
    let packed: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    Some((kind.to_owned(), STANDARD.decode(packed).ok()?))
}
