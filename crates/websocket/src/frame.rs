//! Frames: what stands before each piece of data.

use thiserror::Error;

/// The longest payload of pings, pongs and closes.
pub const MAX_CONTROL: usize = 125;
/// The longest header: two bytes, a length of eight, a mask of four.
pub const MAX_HEADER: usize = 14;

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// More of the message before.
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    /// Whether it is about the connection, and not data.
    pub fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }

    fn parse(bits: u8) -> Option<Self> {
        Some(match bits {
            0x0 => Self::Continuation,
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xA => Self::Pong,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0x0,
            Self::Text => 0x1,
            Self::Binary => 0x2,
            Self::Close => 0x8,
            Self::Ping => 0x9,
            Self::Pong => 0xA,
        }
    }
}

/// What a header says that none may say.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Violation {
    #[error("a frame uses an extension that was not agreed on")]
    Reserved,
    #[error("a frame is of the unknown kind {0:#x}")]
    Opcode(u8),
    #[error("a ping, pong or close is in pieces or longer than {MAX_CONTROL} bytes")]
    Control,
    #[error("a frame is longer than 2^63 bytes")]
    Length,
    #[error("a client's frame is not masked")]
    NotMasked,
    #[error("a server's frame is masked")]
    Masked,
    #[error("a message begins before the one before has ended, or goes on without a beginning")]
    Order,
    #[error("a close has no code that can be sent")]
    CloseCode,
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The message ends with it.
    pub fin: bool,
    pub opcode: Opcode,
    /// What the payload is masked with.
    pub mask: Option<[u8; 4]>,
    /// Length of the payload.
    pub length: u64,
}

impl Header {
    /// Reads a header and says how long it is; `None` if not all of it is there.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Violation> {
        let &[first, second, ref rest @ ..] = bytes else {
            return Ok(None);
        };
        if first & RESERVED != 0 {
            return Err(Violation::Reserved);
        }
        let opcode = Opcode::parse(first & 0x0F).ok_or(Violation::Opcode(first & 0x0F))?;
        let fin = first & FIN != 0;
        let (length, taken) = match second & !MASKED {
            LENGTH_16 => match rest.first_chunk() {
                Some(bytes) => (u64::from(u16::from_be_bytes(*bytes)), 2),
                None => return Ok(None),
            },
            LENGTH_64 => match rest.first_chunk() {
                Some(bytes) => (u64::from_be_bytes(*bytes), 8),
                None => return Ok(None),
            },
            short => (u64::from(short), 0),
        };
        if length > i64::MAX as u64 {
            return Err(Violation::Length);
        }
        if opcode.is_control() && (!fin || length > MAX_CONTROL as u64) {
            return Err(Violation::Control);
        }
        let (mask, taken) = match second & MASKED {
            0 => (None, taken),
            _ => match rest[taken..].first_chunk() {
                Some(key) => (Some(*key), taken + key.len()),
                None => return Ok(None),
            },
        };
        let header = Self {
            fin,
            opcode,
            mask,
            length,
        };
        Ok(Some((header, 2 + taken)))
    }

    /// Writes it.
    pub fn write(&self, into: &mut Vec<u8>) {
        let fin = if self.fin { FIN } else { 0 };
        let masked = if self.mask.is_some() { MASKED } else { 0 };
        into.push(fin | self.opcode.bits());
        match (u8::try_from(self.length), u16::try_from(self.length)) {
            (Ok(short), _) if short < LENGTH_16 => into.push(masked | short),
            (_, Ok(medium)) => {
                into.push(masked | LENGTH_16);
                into.extend(medium.to_be_bytes());
            }
            _ => {
                into.push(masked | LENGTH_64);
                into.extend(self.length.to_be_bytes());
            }
        }
        into.extend(self.mask.iter().flatten());
    }
}

/// Masks or unmasks a piece of a payload that begins so many bytes after its start.
pub fn mask(bytes: &mut [u8], key: [u8; 4], offset: u64) {
    // Turned to where the piece begins, the key can be used eight bytes at a time.
    let turn = (offset % 4) as usize;
    let key: [u8; 8] = std::array::from_fn(|at| key[(at + turn) % 4]);
    let wide = u64::from_ne_bytes(key);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_rfc() {
        // Section 5.7.
        let key = [0x37, 0xfa, 0x21, 0x3d];
        for (bytes, fin, opcode, mask, length) in [
            (&[0x81, 0x05][..], true, Opcode::Text, None, 5),
            (
                &[0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d],
                true,
                Opcode::Text,
                Some(key),
                5,
            ),
            (&[0x01, 0x03], false, Opcode::Text, None, 3),
            (&[0x80, 0x02], true, Opcode::Continuation, None, 2),
            (&[0x89, 0x05], true, Opcode::Ping, None, 5),
            (&[0x82, 0x7E, 0x01, 0x00], true, Opcode::Binary, None, 256),
            (
                &[0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0],
                true,
                Opcode::Binary,
                None,
                65_536,
            ),
        ] {
            let header = Header {
                fin,
                opcode,
                mask,
                length,
            };
            assert_eq!(Header::parse(bytes), Ok(Some((header, bytes.len()))));
            let mut written = Vec::new();
            header.write(&mut written);
            assert_eq!(written, bytes);
            for part in 0..bytes.len() {
                assert_eq!(Header::parse(&bytes[..part]), Ok(None), "{part} of {bytes:?}");
            }
        }
    }

    #[test]
    fn headers_that_none_may_send() {
        for (bytes, expected) in [
            (&[0xC1, 0x00][..], Violation::Reserved),
            (&[0x83, 0x00], Violation::Opcode(3)),
            (&[0x8B, 0x00], Violation::Opcode(11)),
            (&[0x09, 0x00], Violation::Control),
            (&[0x88, 0x7E, 0x00, 0x7E], Violation::Control),
            (&[0x82, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0], Violation::Length),
        ] {
            assert_eq!(Header::parse(bytes), Err(expected), "{bytes:?}");
        }
    }

    #[test]
    fn masks_turn_with_the_place() {
        let key = [1, 2, 3, 4];
        let plain: Vec<u8> = (0..50).collect();
        let masked: Vec<u8> = plain.iter().enumerate().map(|(at, b)| b ^ key[at % 4]).collect();
        for cut in 0..plain.len() {
            let mut bytes = plain.clone();
            let (first, second) = bytes.split_at_mut(cut);
            mask(first, key, 0);
            mask(second, key, cut as u64);
            assert_eq!(bytes, masked, "cut at {cut}");
        }
    }
}
