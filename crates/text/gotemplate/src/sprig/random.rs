//! Functions that depend on chance, which comes from the host.

use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::machine::Machine;
use crate::value::Value;

use base64::Engine;

use Param::{Int, Str};

type Answer = Result<Value, Fault>;

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const DIGITS: &[u8] = b"0123456789";

pub(super) const TABLE: &[Func] = &[
    Func::new("randAlphaNum", &[Int], |machine, args| {
        random_text(machine, args, &[LETTERS, DIGITS].concat())
    }),
    Func::new("randAlpha", &[Int], |machine, args| {
        random_text(machine, args, LETTERS)
    }),
    Func::new("randNumeric", &[Int], |machine, args| {
        random_text(machine, args, DIGITS)
    }),
    Func::new("randAscii", &[Int], |machine, args| {
        let printable: Vec<u8> = (32..127).collect();
        random_text(machine, args, &printable)
    }),
    Func::new("randBytes", &[Int], |machine, args| {
        let count = arg::count(args, 0).ok_or("runtime error: makeslice: len out of range")?;
        machine.spend_bytes(count)?;
        let mut bytes = vec![0; count];
        machine.entropy(&mut bytes);
        Ok(base64::engine::general_purpose::STANDARD.encode(bytes).into())
    }),
    Func::new("randInt", &[Int, Int], |machine, args| {
        let (low, high) = (arg::int(args, 0), arg::int(args, 1));
        match high
            .checked_sub(low)
            .and_then(|range| u64::try_from(range).ok())
            .filter(|range| *range > 0)
        {
            Some(range) => Ok(Value::int(low + below(machine, range) as i64)),
            None => Err("invalid argument to Intn".into()),
        }
    }),
    Func::new("shuffle", &[Str], |machine, args| {
        let text = arg::text(args, 0);
        machine.spend_bytes(text.len())?;
        let mut chars: Vec<char> = text.chars().collect();
        for at in (1..chars.len()).rev() {
            let other = below(machine, at as u64 + 1) as usize;
            chars.swap(at, other);
        }
        Ok(chars.into_iter().collect::<String>().into())
    }),
    Func::new("uuidv4", &[], |machine, _| {
        let mut bytes = [0; 16];
        machine.entropy(&mut bytes);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let hex = super::encoding::hex(&bytes);
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        Ok(parts.join("-").into())
    }),
];

/// A number below `range`, each as likely as the others.
pub(super) fn below(machine: &Machine<'_>, range: u64) -> u64 {
    let limit = u64::MAX - u64::MAX % range.max(1);
    // A host that always gives the same bytes must not keep us here.
    for _ in 0..64 {
        let mut bytes = [0; 8];
        machine.entropy(&mut bytes);
        let number = u64::from_le_bytes(bytes);
        if number < limit {
            return number % range.max(1);
        }
    }
    0
}

fn random_text(machine: &mut Machine<'_>, args: &[Value], alphabet: &[u8]) -> Answer {
    // Go gives an empty text for a negative count.
    let count = arg::count(args, 0).unwrap_or(0);
    machine.spend_bytes(count.saturating_mul(8))?;
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        out.push(alphabet[below(machine, alphabet.len() as u64) as usize]);
    }
    Ok(out.into())
}
