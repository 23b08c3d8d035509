//! What goes out.

use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::Role;
use crate::frame::{Header, MAX_CONTROL, MAX_HEADER, Opcode, mask};

/// The half that writes. What is written is on its way when the call returns.
#[derive(Debug)]
pub struct Writer<W> {
    io: W,
    role: Role,
    /// A frame in the making; it keeps its room.
    frame: Vec<u8>,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes as somebody in this role.
    pub fn new(io: W, role: Role) -> Self {
        Self {
            io,
            role,
            frame: Vec::new(),
        }
    }

    /// Sends data as one binary message.
    pub async fn data(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.send(Opcode::Binary, bytes).await
    }

    /// Asks whether the other end is there.
    pub async fn ping(&mut self) -> std::io::Result<()> {
        self.send(Opcode::Ping, b"").await
    }

    /// Answers a ping.
    pub async fn pong(&mut self, payload: &[u8]) -> std::io::Result<()> {
        self.send(Opcode::Pong, &payload[..payload.len().min(MAX_CONTROL)])
            .await
    }

    /// Says that the connection ends. A reason that is too long is cut.
    pub async fn close(&mut self, code: u16, reason: &str) -> std::io::Result<()> {
        let mut payload = code.to_be_bytes().to_vec();
        let cut = reason.floor_char_boundary(MAX_CONTROL - payload.len());
        payload.extend(&reason.as_bytes()[..cut]);
        self.send(Opcode::Close, &payload).await
    }

    /// Ends the connection below: nothing more is sent.
    pub async fn shutdown(&mut self) -> std::io::Result<()> {
        self.io.shutdown().await
    }

    async fn send(&mut self, opcode: Opcode, payload: &[u8]) -> std::io::Result<()> {
        let key = match self.role {
            Role::Server => None,
            Role::Client => {
                let mut key = [0; 4];
                SystemRandom::new()
                    .fill(&mut key)
                    .map_err(|_| std::io::Error::other("there is no randomness to mask a frame with"))?;
                Some(key)
            }
        };
        let header = Header {
            fin: true,
            opcode,
            mask: key,
            length: payload.len() as u64,
        };
        self.frame.clear();
        self.frame.reserve(MAX_HEADER + payload.len());
        header.write(&mut self.frame);
        let start = self.frame.len();
        self.frame.extend_from_slice(payload);
        if let Some(key) = key {
            mask(&mut self.frame[start..], key, 0);
        }
        self.io.write_all(&self.frame).await?;
        self.io.flush().await
    }
}
