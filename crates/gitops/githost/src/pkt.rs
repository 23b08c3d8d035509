//! pkt-lines, the frames of Git's protocol: four hexadecimal digits that say how long the frame is, themselves included.

use bytes::{BufMut, Bytes, BytesMut};

/// The most bytes of content in a frame.
pub const MAX_CONTENT: usize = 65_516;
/// The most bytes that a side band carries in a frame: one says which band it is.
pub const MAX_BAND: usize = MAX_CONTENT - 1;
/// The end of a section.
pub const FLUSH: &[u8] = b"0000";

/// What the first four bytes of a frame say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// The end of a section.
    Flush,
    /// A separator of protocol version 2.
    Delimiter,
    /// The end of a response of protocol version 2.
    ResponseEnd,
    /// So many bytes of content follow.
    Content(usize),
}

/// A stream whose frames are not well-formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request is not in Git's protocol: a frame's length is malformed")]
pub struct BadFrame;

/// Reads the head of a frame.
pub fn head(digits: [u8; 4]) -> Result<Head, BadFrame> {
    let mut length = 0;
    for digit in digits {
        let value = char::from(digit).to_digit(16).ok_or(BadFrame)?;
        length = length * 16 + value as usize;
    }
    match length {
        0 => Ok(Head::Flush),
        1 => Ok(Head::Delimiter),
        2 => Ok(Head::ResponseEnd),
        3 => Err(BadFrame),
        _ if length - 4 > MAX_CONTENT => Err(BadFrame),
        _ => Ok(Head::Content(length - 4)),
    }
}

/// Appends a frame. Content beyond the longest frame is cut off; callers' texts are shorter.
pub fn write(out: &mut BytesMut, content: &[u8]) {
    let content = &content[..content.len().min(MAX_CONTENT)];
    out.put_slice(format!("{:04x}", content.len() + 4).as_bytes());
    out.put_slice(content);
}

/// A band of a side-band stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Band {
    /// What the client's program reads.
    Data = 1,
    /// What the client's user reads.
    Progress = 2,
}

/// Frames that carry these bytes on a band.
pub fn band(band: Band, content: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(content.len() + 16);
    for piece in content.chunks(MAX_BAND) {
        out.put_slice(format!("{:04x}", piece.len() + 5).as_bytes());
        out.put_u8(band as u8);
        out.put_slice(piece);
    }
    out.freeze()
}

/// Lines for the client's user. Control characters are for terminals, and texts come from many hands: they are left out.
pub fn message(text: &str) -> Bytes {
    let mut clean: String = text
        .chars()
        .map(|letter| if letter == '\t' { ' ' } else { letter })
        .filter(|letter| *letter == '\n' || !letter.is_control())
        .collect();
    if !clean.ends_with('\n') {
        clean.push('\n');
    }
    band(Band::Progress, clean.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let cases: &[(&[u8; 4], Result<Head, BadFrame>)] = &[
            (b"0000", Ok(Head::Flush)),
            (b"0001", Ok(Head::Delimiter)),
            (b"0002", Ok(Head::ResponseEnd)),
            (b"0003", Err(BadFrame)),
            (b"0004", Ok(Head::Content(0))),
            (b"00a5", Ok(Head::Content(161))),
            (b"FFF0", Ok(Head::Content(MAX_CONTENT))),
            (b"fff1", Err(BadFrame)),
            (b"00g0", Err(BadFrame)),
            (b"+004", Err(BadFrame)),
            (b" 004", Err(BadFrame)),
            (b"PACK", Err(BadFrame)),
        ];
        for (digits, expected) in cases {
            assert_eq!(head(**digits), *expected, "{digits:?}");
        }
    }

    #[test]
    fn frames_are_written() {
        let mut out = BytesMut::new();
        write(&mut out, b"hi\n");
        assert_eq!(&out[..], b"0007hi\n");
        assert_eq!(&message("a\x1b[31m\tb")[..], b"000d\x02a[31m b\n");
        let long = band(Band::Data, &vec![b'x'; MAX_BAND + 1]);
        assert_eq!(&long[..5], b"fff0\x01");
        assert_eq!(&long[MAX_BAND + 5..], b"0006\x01x");
    }
}
