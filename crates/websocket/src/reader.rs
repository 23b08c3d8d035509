//! What comes in: data as it arrives, and what is said about the connection.

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::frame::{Header, Opcode, Violation, mask};
use crate::{Role, code};

/// How much is read at once, and the most that a connection holds.
const BUFFER: usize = 16 << 10;

/// Something that came in.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'r> {
    /// A piece of data. Never empty.
    Data(&'r [u8]),
    /// The other end wants to hear this back.
    Ping(Vec<u8>),
    /// It answered.
    Pong,
    /// It says that the connection ends.
    Close(Close),
    /// The connection is gone.
    End,
}

/// Why a connection ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Close {
    /// Nothing was said: 0.
    pub code: u16,
    pub reason: String,
}

/// Why nothing more can be read.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error("the connection broke")]
    Io(#[from] std::io::Error),
    #[error("the other end does not keep to WebSocket: {0}")]
    Violation(#[from] Violation),
    #[error("text was sent where only binary messages are taken")]
    Text,
}

impl ReadError {
    /// What to close the connection with.
    pub fn code(&self) -> u16 {
        match self {
            Self::Io(_) => code::GOING_AWAY,
            Self::Violation(_) => code::PROTOCOL,
            Self::Text => code::UNSUPPORTED,
        }
    }
}

/// The half that reads.
#[derive(Debug)]
pub struct Reader<R> {
    io: R,
    role: Role,
    buffer: Box<[u8]>,
    /// What of the buffer is to be read yet.
    start: usize,
    end: usize,
    frame: Option<Open>,
    /// A message is under way.
    in_message: bool,
    is_over: bool,
}

/// A frame whose payload is under way.
#[derive(Debug)]
struct Open {
    header: Header,
    done: u64,
}

/// What to do with what is in the buffer.
enum Step {
    /// Read more first.
    Fill,
    /// Go on.
    Again,
    /// A piece of data is at this place.
    Data(std::ops::Range<usize>),
    /// A whole ping, pong or close is at this place.
    Control(Opcode, std::ops::Range<usize>),
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Reads what the other end sends to somebody in this role.
    pub fn new(io: R, role: Role) -> Self {
        Self {
            io,
            role,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
            frame: None,
            in_message: false,
            is_over: false,
        }
    }

    /// What comes next. Nothing is lost if this is dropped before it is done.
    pub async fn next(&mut self) -> Result<Event<'_>, ReadError> {
        let (opcode, place) = loop {
            if self.is_over {
                return Ok(Event::End);
            }
            match self.step()? {
                Step::Again => {}
                Step::Fill => self.fill().await?,
                Step::Data(place) => break (Opcode::Binary, place),
                Step::Control(opcode, place) => break (opcode, place),
            }
        };
        let bytes = &self.buffer[place];
        Ok(match opcode {
            Opcode::Ping => Event::Ping(bytes.to_vec()),
            Opcode::Pong => Event::Pong,
            Opcode::Close => Event::Close(close(bytes)?),
            Opcode::Continuation | Opcode::Text | Opcode::Binary => Event::Data(bytes),
        })
    }

    async fn fill(&mut self) -> Result<(), ReadError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let count = self.io.read(&mut self.buffer[self.end..]).await?;
        self.end += count;
        self.is_over = count == 0;
        Ok(())
    }

    fn step(&mut self) -> Result<Step, ReadError> {
        let there = &mut self.buffer[self.start..self.end];
        let Some(open) = &mut self.frame else {
            let Some((header, taken)) = Header::parse(there)? else {
                return Ok(Step::Fill);
            };
            self.check(&header)?;
            self.start += taken;
            self.frame = Some(Open { header, done: 0 });
            return Ok(Step::Again);
        };
        let header = open.header;
        let left = header.length - open.done;
        // At most what is in the buffer, so it fits.
        let count = usize::try_from(left).map_or(there.len(), |left| left.min(there.len()));
        let whole = count as u64 == left;
        if (header.opcode.is_control() && !whole) || (count == 0 && left > 0) {
            return Ok(Step::Fill);
        }
        if let Some(key) = header.mask {
            mask(&mut there[..count], key, open.done);
        }
        open.done += count as u64;
        let place = self.start..self.start + count;
        self.start += count;
        if whole {
            self.frame = None;
        }
        Ok(match header.opcode {
            opcode if opcode.is_control() => Step::Control(opcode, place),
            _ if count == 0 => Step::Again,
            _ => Step::Data(place),
        })
    }

    /// Whether the header may come now, and what message it is of.
    fn check(&mut self, header: &Header) -> Result<(), ReadError> {
        match (self.role, header.mask) {
            (Role::Server, None) => return Err(Violation::NotMasked.into()),
            (Role::Client, Some(_)) => return Err(Violation::Masked.into()),
            _ => {}
        }
        match (header.opcode, self.in_message) {
            (Opcode::Text, _) => return Err(ReadError::Text),
            (Opcode::Binary, true) | (Opcode::Continuation, false) => {
                return Err(Violation::Order.into());
            }
            (Opcode::Binary | Opcode::Continuation, _) => self.in_message = !header.fin,
            (Opcode::Close | Opcode::Ping | Opcode::Pong, _) => {}
        }
        Ok(())
    }
}

fn close(payload: &[u8]) -> Result<Close, Violation> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return match payload {
            [] => Ok(Close::default()),
            _ => Err(Violation::CloseCode),
        };
    };
    let code = u16::from_be_bytes(*code);
    // What is reserved for what did not come over the wire, or for nobody.
    if !(1000..=4999).contains(&code) || matches!(code, 1004..=1006 | 1015..=2999) {
        return Err(Violation::CloseCode);
    }
    Ok(Close {
        code,
        reason: String::from_utf8_lossy(reason).into_owned(),
    })
}
