//! Base 64 and 32, JSON, and checksums.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fairway_text_gotext::json::Html;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::json_text::{Style, read, write};
use crate::machine::Machine;
use crate::value::Value;

use Param::{Any, Str};

const PLAIN: Style = Style {
    html: Html::Escaped,
    pretty: false,
};
const PRETTY: Style = Style {
    html: Html::Escaped,
    pretty: true,
};
const RAW: Style = Style {
    html: Html::Raw,
    pretty: false,
};

pub(super) const TABLE: &[Func] = &[
    Func::new("b64enc", &[Str], |machine, args| {
        machine.spend_bytes(arg::bytes(args, 0).len())?;
        Ok(STANDARD.encode(arg::bytes(args, 0)).into())
    }),
    Func::new("b64dec", &[Str], |_, args| {
        Ok(b64_decode(arg::bytes(args, 0)).into())
    }),
    Func::new("b32enc", &[Str], |machine, args| {
        machine.spend_bytes(arg::bytes(args, 0).len())?;
        Ok(b32_encode(arg::bytes(args, 0)).into())
    }),
    Func::new("b32dec", &[Str], |_, args| {
        Ok(b32_decode(arg::bytes(args, 0)).into())
    }),
    Func::new("sha1sum", &[Str], |machine, args| {
        hash(machine, args, |bytes| hex(&Sha1::digest(bytes)))
    }),
    Func::new("sha256sum", &[Str], |machine, args| {
        hash(machine, args, |bytes| hex(&Sha256::digest(bytes)))
    }),
    Func::new("sha512sum", &[Str], |machine, args| {
        hash(machine, args, |bytes| hex(&Sha512::digest(bytes)))
    }),
    Func::new("adler32sum", &[Str], |machine, args| {
        hash(machine, args, |bytes| adler32(bytes).to_string())
    }),
    Func::new("toJson", &[Any], |_, args| {
        Ok(write(arg::any(args, 0), PLAIN).unwrap_or_default().into())
    }),
    Func::new("mustToJson", &[Any], |_, args| {
        Ok(write(arg::any(args, 0), PLAIN)?.into())
    }),
    Func::new("toPrettyJson", &[Any], |_, args| {
        Ok(write(arg::any(args, 0), PRETTY).unwrap_or_default().into())
    }),
    Func::new("mustToPrettyJson", &[Any], |_, args| {
        Ok(write(arg::any(args, 0), PRETTY)?.into())
    }),
    Func::new("toRawJson", &[Any], |_, args| {
        Ok(write(arg::any(args, 0), RAW)?.into())
    }),
    Func::new("mustToRawJson", &[Any], |_, args| {
        Ok(write(arg::any(args, 0), RAW)?.into())
    }),
    Func::new("fromJson", &[Str], |_, args| {
        Ok(read(arg::bytes(args, 0)).unwrap_or(Value::Nil))
    }),
    Func::new("mustFromJson", &[Str], |_, args| Ok(read(arg::bytes(args, 0))?)),
];

fn hash(machine: &mut Machine<'_>, args: &[Value], digest: fn(&[u8]) -> String) -> Result<Value, Fault> {
    machine.spend_bytes(arg::bytes(args, 0).len())?;
    Ok(digest(arg::bytes(args, 0)).into())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn adler32(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (1_u32, 0_u32);
    for &byte in bytes {
        low = (low + u32::from(byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    (high << 16) | low
}

/// What Go's decoder gives: the bytes, or its complaint as text.
fn b64_decode(text: &[u8]) -> Vec<u8> {
    // Line breaks may be anywhere.
    let packed: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\n' | b'\r'))
        .collect();
    STANDARD.decode(&packed).unwrap_or_else(|_| {
        let at = first_illegal(text, 4, |byte| {
            byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
        });
        format!("illegal base64 data at input byte {at}").into_bytes()
    })
}

/// Where Go's decoders stop: at the first character that they do not expect.
fn first_illegal(text: &[u8], group: usize, is_digit: impl Fn(u8) -> bool) -> usize {
    let mut digits = 0;
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'\n' | b'\r' => {}
            b'=' => {
                // Padding may only complete a group, and nothing may follow it.
                let missing = group - digits % group;
                let pads = text[at..].iter().filter(|byte| **byte == b'=').count();
                let possible = digits % group >= 2 && pads >= missing;
                return if possible {
                    (at + missing).min(text.len())
                } else {
                    at
                };
            }
            byte if is_digit(byte) => digits += 1,
            _ => return at,
        }
    }
    // Text that ends within a group is blamed at the group's start.
    text.len() - digits % group
}

const B32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn b32_encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let mut block = [0; 5];
        block[..chunk.len()].copy_from_slice(chunk);
        let bits = block
            .iter()
            .fold(0_u64, |bits, byte| (bits << 8) | u64::from(*byte));
        let digits = (chunk.len() * 8).div_ceil(5);
        for at in 0..8 {
            let digit = (bits >> (35 - 5 * at)) & 31;
            out.push(if at < digits {
                char::from(B32[digit as usize])
            } else {
                '='
            });
        }
    }
    out
}

fn b32_decode(text: &[u8]) -> Vec<u8> {
    let packed: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\n' | b'\r'))
        .collect();
    decode_groups(&packed).unwrap_or_else(|| {
        let at = first_illegal(text, 8, |byte| B32.contains(&byte));
        format!("illegal base32 data at input byte {at}").into_bytes()
    })
}

fn decode_groups(packed: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    if !packed.len().is_multiple_of(8) {
        return None;
    }
    let groups = packed.len() / 8;
    for (group, chunk) in packed.chunks(8).enumerate() {
        let digits = chunk.iter().position(|&byte| byte == b'=').unwrap_or(8);
        let valid = chunk[digits..].iter().all(|&byte| byte == b'=')
            && matches!(digits, 2 | 4 | 5 | 7 | 8)
            && (digits == 8 || group + 1 == groups);
        if !valid {
            return None;
        }
        let mut bits = 0_u64;
        for (at, byte) in chunk.iter().enumerate() {
            let digit = match at < digits {
                true => B32.iter().position(|known| known == byte)? as u64,
                false => 0,
            };
            bits = (bits << 5) | digit;
        }
        let bytes = bits.to_be_bytes();
        out.extend_from_slice(&bytes[3..3 + digits * 5 / 8]);
    }
    Some(out)
}
