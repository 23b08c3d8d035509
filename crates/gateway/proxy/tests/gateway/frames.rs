//! HTTP/2 by hand: frames as libraries would never write them, and just enough reading to know what came back.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const PRIORITISED: u8 = 32;

/// A frame, whatever is in it.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Headers as HPACK writes what is in no table.
pub(crate) fn literals<N: AsRef<str>, V: AsRef<str>>(headers: &[(N, V)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        for text in [name.as_ref(), value.as_ref()] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend(text.as_bytes());
        }
    }
    block
}

/// The head of a request.
pub(crate) fn head(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut headers = vec![
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "a.example"),
    ];
    headers.extend(more);
    literals(&headers)
}

/// What came back on a stream.
#[derive(Debug, Default, Clone)]
pub(crate) struct Answered {
    pub(crate) status: Option<u16>,
    pub(crate) body: Vec<u8>,
    pub(crate) ended: bool,
    pub(crate) reset: bool,
}

pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    pub(crate) streams: BTreeMap<u32, Answered>,
    /// The other side has said that it is over, or hung up.
    pub(crate) over: bool,
}

impl Client {
    /// Preface and settings are sent.
    pub(crate) async fn connect(door: SocketAddr, settings: &[u8]) -> Self {
        let mut client = Self {
            stream: TcpStream::connect(door).await.unwrap(),
            buffer: Vec::new(),
            streams: BTreeMap::new(),
            over: false,
        };
        client.send(PREFACE).await;
        client.send(&frame(SETTINGS, 0, 0, settings)).await;
        client
    }

    /// Whoever refuses may hang up before all of it is written.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Reads until something holds; false if it does not within the time.
    pub(crate) async fn until(&mut self, within: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let reading = async {
            let mut piece = [0; 16 * 1024];
            while !holds(self) {
                match self.stream.read(&mut piece).await {
                    Ok(read @ 1..) => {
                        self.buffer.extend_from_slice(&piece[..read]);
                        self.take_frames().await;
                    }
                    _ if self.over => return false,
                    _ => self.over = true,
                }
            }
            true
        };
        tokio::time::timeout(within, reading).await.unwrap_or(false)
    }

    async fn take_frames(&mut self) {
        while self.buffer.len() >= 9 {
            let length = u32::from_be_bytes([0, self.buffer[0], self.buffer[1], self.buffer[2]]) as usize;
            if self.buffer.len() < 9 + length {
                return;
            }
            let taken: Vec<u8> = self.buffer.drain(..9 + length).collect();
            let (kind, flags, payload) = (taken[3], taken[4], &taken[9..]);
            let stream = u32::from_be_bytes([taken[5], taken[6], taken[7], taken[8]]);
            match kind {
                PING if flags & ACK == 0 => self.send(&frame(PING, ACK, 0, payload)).await,
                SETTINGS if flags & ACK == 0 => self.send(&frame(SETTINGS, ACK, 0, &[])).await,
                GOAWAY => self.over = true,
                HEADERS | DATA | RST_STREAM => {
                    let answered = self.streams.entry(stream).or_default();
                    match kind {
                        HEADERS if answered.status.is_none() => answered.status = Some(status(payload)),
                        DATA => answered.body.extend_from_slice(payload),
                        RST_STREAM => answered.reset = true,
                        _ => {}
                    }
                    answered.ended |= kind != RST_STREAM && flags & END_STREAM != 0;
                }
                _ => {}
            }
        }
    }
}

/// The status is the first header of an answer: one of the seven that have a number of their own, or three digits.
fn status(block: &[u8]) -> u16 {
    match block {
        [indexed @ 0x88..=0x8e, ..] => [200, 204, 206, 304, 400, 404, 500][usize::from(indexed - 0x88)],
        [0x48, 3, digits @ ..] => std::str::from_utf8(&digits[..3]).unwrap().parse().unwrap(),
        // By Huffman: digits have five or six bits, and which ones does not matter to anybody here.
        _ => 1,
    }
}
