//! Chunked bodies: where each chunk begins and ends. Extensions are bounded and dropped, trailers bounded and checked.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Of a size line with its extensions, and of all trailers.
const LONGEST_LINE: usize = 1024;
const LONGEST_TRAILERS: usize = 8 * 1024;
const MOST_TRAILERS: usize = 32;

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum State {
    Size,
    Data(u64),
    /// The line end after a chunk's data.
    DataEnd,
    Trailers,
    Done,
}

#[derive(Debug)]
pub(crate) struct Decoder(State);

#[derive(Debug, PartialEq)]
pub(crate) enum Chunk {
    Data(Bytes),
    Trailers(HeaderMap),
    /// More bytes are needed.
    Partial,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the chunked body is malformed: {0}")]
pub(crate) struct BadChunk(&'static str);

impl Decoder {
    pub(crate) fn new() -> Self {
        Self(State::Size)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0 == State::Done
    }

    /// Takes what is complete from the front of `buffer`.
    pub(crate) fn next(&mut self, buffer: &mut BytesMut) -> Result<Chunk, BadChunk> {
        loop {
            match self.0 {
                State::Size => match line(buffer, LONGEST_LINE)? {
                    None => return Ok(Chunk::Partial),
                    Some(line) => {
                        self.0 = match size(&line)? {
                            0 => State::Trailers,
                            size => State::Data(size),
                        }
                    }
                },
                State::Data(left) => {
                    if buffer.is_empty() {
                        return Ok(Chunk::Partial);
                    }
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
                    let left = left - here as u64;
                    self.0 = if left == 0 {
                        State::DataEnd
                    } else {
                        State::Data(left)
                    };
                    return Ok(Chunk::Data(buffer.split_to(here).freeze()));
                }
                State::DataEnd => {
                    if buffer.len() < 2 {
                        return match buffer.first() {
                            Some(byte) if *byte != b'\r' => Err(BadChunk("data is longer than its chunk")),
                            _ => Ok(Chunk::Partial),
                        };
                    }
                    if &buffer.split_to(2)[..] != b"\r\n" {
                        return Err(BadChunk("data is longer than its chunk"));
                    }
                    self.0 = State::Size;
                }
                State::Trailers => {
                    let Some(trailers) = trailers(buffer)? else {
                        return Ok(Chunk::Partial);
                    };
                    self.0 = State::Done;
                    if !trailers.is_empty() {
                        return Ok(Chunk::Trailers(trailers));
                    }
                }
                State::Done => return Ok(Chunk::End),
            }
        }
    }
}

/// Without its end, which is CR LF and nothing else.
fn line(buffer: &mut BytesMut, longest: usize) -> Result<Option<BytesMut>, BadChunk> {
    let Some(at) = memchr::memchr(b'\n', buffer) else {
        return if buffer.len() > longest {
            Err(BadChunk("a line is too long"))
        } else {
            Ok(None)
        };
    };
    if at > longest {
        return Err(BadChunk("a line is too long"));
    }
    if at == 0 || buffer[at - 1] != b'\r' {
        return Err(BadChunk("a line ends with LF alone"));
    }
    let mut line = buffer.split_to(at + 1);
    line.truncate(at - 1);
    Ok(Some(line))
}

fn size(line: &[u8]) -> Result<u64, BadChunk> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    // Sixteen digits are all that fit; a proxy needs no chunk that large.
    if digits == 0 || digits > 15 {
        return Err(BadChunk("a size is not a number"));
    }
    let rest = &line[digits..];
    let extension = rest
        .iter()
        .position(|byte| !matches!(byte, b' ' | b'\t'))
        .map(|at| &rest[at..]);
    match extension {
        None if rest.is_empty() => {}
        Some([b';', extension @ ..])
            if extension
                .iter()
                .all(|byte| *byte == b'\t' || (0x20..0x7f).contains(byte)) => {}
        _ => return Err(BadChunk("a size is followed by something else")),
    }
    std::str::from_utf8(&line[..digits])
        .ok()
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or(BadChunk("a size is not a number"))
}

fn trailers(buffer: &mut BytesMut) -> Result<Option<HeaderMap>, BadChunk> {
    if buffer.starts_with(b"\r\n") {
        let _ = buffer.split_to(2);
        return Ok(Some(HeaderMap::new()));
    }
    for at in memchr::memchr_iter(b'\n', buffer) {
        if at == 0 || buffer[at - 1] != b'\r' {
            return Err(BadChunk("a line ends with LF alone"));
        }
        if at >= 3 && &buffer[at - 3..at] == b"\r\n\r" {
            if at > LONGEST_TRAILERS {
                break;
            }
            let block = buffer.split_to(at + 1).freeze();
            return parse_trailers(&block).map(Some);
        }
    }
    if buffer.len() > LONGEST_TRAILERS {
        return Err(BadChunk("the trailers are too long"));
    }
    Ok(None)
}

fn parse_trailers(block: &Bytes) -> Result<HeaderMap, BadChunk> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_TRAILERS];
    let Ok(httparse::Status::Complete((_, headers))) = httparse::parse_headers(block, &mut headers) else {
        return Err(BadChunk("the trailers are malformed or too many"));
    };
    let mut map = HeaderMap::with_capacity(headers.len());
    for header in headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes())
            .map_err(|_| BadChunk("a trailer's name is malformed"))?;
        let value = HeaderValue::from_maybe_shared(block.slice_ref(header.value))
            .map_err(|_| BadChunk("a trailer's value is malformed"))?;
        // What says where a message ends or where it goes is for its head alone (RFC 9110, 6.5.1).
        if crate::hops::belongs_in_head(&name) {
            continue;
        }
        map.append(name, value);
    }
    Ok(map)
}

/// `data` as a chunk.
pub(crate) fn encode(out: &mut BytesMut, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    encode_size(out, data.len());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn encode_size(out: &mut BytesMut, size: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut line = [0_u8; 18];
    let mut at = line.len() - 2;
    line[at..].copy_from_slice(b"\r\n");
    let mut left = size;
    loop {
        at -= 1;
        line[at] = DIGITS[left & 15];
        left >>= 4;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&line[at..]);
}

/// The end of a chunked body.
pub(crate) fn encode_end(out: &mut BytesMut, trailers: Option<&HeaderMap>) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers.into_iter().flatten() {
        if crate::hops::belongs_in_head(name) {
            continue;
        }
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All data, or the error, whatever the pieces in which the bytes come.
    fn decode(bytes: &[u8], piece: usize) -> Result<(String, bool), BadChunk> {
        let (mut decoder, mut buffer, mut data) = (Decoder::new(), BytesMut::new(), String::new());
        for piece in bytes.chunks(piece) {
            buffer.extend_from_slice(piece);
            loop {
                match decoder.next(&mut buffer)? {
                    Chunk::Data(bytes) => data.push_str(std::str::from_utf8(&bytes).unwrap()),
                    Chunk::Trailers(map) => {
                        for (name, value) in &map {
                            data.push_str(&format!("[{name}={}]", value.to_str().unwrap()));
                        }
                    }
                    Chunk::Partial => break,
                    Chunk::End => return Ok((data, buffer.is_empty())),
                }
            }
        }
        Ok((data + "...", false))
    }

    #[test]
    fn bodies() {
        for (bytes, expected, reason) in [
            ("5\r\nhello\r\n0\r\n\r\n", Some("hello"), "one chunk"),
            ("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", Some("hello!"), "two"),
            (
                "A\r\n0123456789\r\n0\r\n\r\n",
                Some("0123456789"),
                "sizes are hexadecimal",
            ),
            (
                "5;a=b\r\nhello\r\n0\r\n\r\n",
                Some("hello"),
                "extensions are dropped",
            ),
            (
                "5 ;a\r\nhello\r\n0\r\n\r\n",
                Some("hello"),
                "space before an extension",
            ),
            ("0\r\nx-sum: 1\r\n\r\n", Some("[x-sum=1]"), "a trailer"),
            (
                "0\r\ncontent-length: 1\r\nx: 2\r\n\r\n",
                Some("[x=2]"),
                "no length in trailers",
            ),
            ("5\r\nhel", Some("hel..."), "more to come"),
            ("5\nhello\r\n0\r\n\r\n", None, "a bare LF after the size"),
            ("5\r\nhello\n0\r\n\r\n", None, "a bare LF after the data"),
            ("5\r\nhello!\r\n0\r\n\r\n", None, "data longer than its chunk"),
            ("0x5\r\nhello\r\n0\r\n\r\n", None, "a prefix"),
            ("+5\r\nhello\r\n0\r\n\r\n", None, "a sign"),
            ("-5\r\nhello\r\n0\r\n\r\n", None, "a negative size"),
            ("5 5\r\nhello\r\n0\r\n\r\n", None, "two sizes"),
            ("5 \r\nhello\r\n0\r\n\r\n", None, "space after the size"),
            ("\r\nhello\r\n0\r\n\r\n", None, "no size"),
            ("g\r\nhello\r\n0\r\n\r\n", None, "not a digit"),
            (
                "10000000000000005\r\nhello\r\n0\r\n\r\n",
                None,
                "a size that overflows",
            ),
            (
                "5;a\u{1}\r\nhello\r\n0\r\n\r\n",
                None,
                "a control character in an extension",
            ),
            ("0\r\nx: 1\n\r\n", None, "a bare LF in trailers"),
            ("0\r\n x: 1\r\n\r\n", None, "a folded trailer"),
        ] {
            for piece in [1, 3, 1000] {
                match (decode(bytes.as_bytes(), piece), expected) {
                    (Ok((data, _)), Some(expected)) => assert_eq!(data, expected, "{reason}, by {piece}"),
                    (Err(_), None) => {}
                    (got, _) => panic!("{reason}, by {piece}: {got:?}"),
                }
            }
        }
    }

    #[test]
    fn lines_and_trailers_are_bounded() {
        for bytes in [
            "1;".to_owned() + &"a".repeat(5000),
            "0\r\n".to_owned() + &"x: y\r\n".repeat(5000),
            "0\r\n".to_owned() + &"x: y\r\n".repeat(40) + "\r\n",
        ] {
            assert!(decode(bytes.as_bytes(), 1000).is_err(), "{}", &bytes[..10]);
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for size in [1_usize, 15, 16, 255, 256, 70_000] {
            let mut out = BytesMut::new();
            encode(&mut out, "x".repeat(size).as_bytes());
            encode_end(&mut out, None);
            assert_eq!(decode(&out, 4096), Ok(("x".repeat(size), true)));
        }
    }
}
