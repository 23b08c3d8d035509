//! QEMU's control protocol: commands with answers, and events in between, as lines of JSON.
//!
//! One task owns the connection. A command waits for its answer, found by its number, for a bounded time; events go to
//! whoever listens, and a listener that is slow is told how many it has missed rather than being waited for. Everything
//! that QEMU can make grow has a limit.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::event::Event;

/// How long a command may take if nobody says otherwise. QEMU answers in milliseconds, unless its main loop waits for a disk.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest line. The description of the protocol itself has some 300 kB.
const MAX_LINE: usize = 8 << 20;
/// How many events wait for a slow listener.
const EVENTS: usize = 256;
/// How many commands wait for their turn.
const COMMANDS: usize = 64;

/// Why a command has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QmpError {
    /// QEMU says no.
    #[error("QEMU refused {command}: {description}")]
    Refused {
        /// What was asked for.
        command: String,
        /// The kind of error, such as `DeviceNotFound`.
        class: String,
        /// What QEMU says.
        description: String,
    },
    /// There was no answer in time. The command may have been executed, or may be later.
    #[error("QEMU did not answer {command} within {seconds} s")]
    Timeout {
        /// What was asked for.
        command: String,
        /// How long.
        seconds: u64,
    },
    /// The connection is gone: QEMU has ended, or is about to.
    #[error("the connection to QEMU is closed")]
    Closed,
    /// What came is not the protocol.
    #[error("QEMU speaks otherwise than expected: {0}")]
    Protocol(String),
}

impl QmpError {
    /// Whether QEMU refused with this kind of error.
    pub fn is_class(&self, class: &str) -> bool {
        matches!(self, Self::Refused { class: found, .. } if found == class)
    }
}

struct Request {
    command: String,
    arguments: Value,
    answer: oneshot::Sender<Result<Value, QmpError>>,
}

/// A connection. Clones share it; it is closed with the last of them.
#[derive(Debug, Clone)]
pub struct Qmp {
    requests: mpsc::Sender<Request>,
    // The task has the strong one: when the connection is gone, listeners hear so.
    events: broadcast::WeakSender<Event>,
}

/// Events of a connection, from the moment of asking for them.
#[derive(Debug)]
pub struct Events(broadcast::Receiver<Event>);

impl Events {
    /// The next event; `None` when the connection is closed.
    pub async fn next(&mut self) -> Option<Event> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(Event::Missed(count)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// The next event that is of interest.
    pub async fn find<T>(&mut self, mut wanted: impl FnMut(&Event) -> Option<T>) -> Option<T> {
        while let Some(event) = self.next().await {
            if let Some(found) = wanted(&event) {
                return Some(found);
            }
        }
        None
    }
}

impl Qmp {
    /// Greets QEMU on a connection that was just made. QEMU talks to one client at a time: if another one is connected, there is
    /// no greeting, and the time runs out.
    pub async fn open<S>(stream: S, timeout: Duration) -> Result<Self, QmpError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = Lines::new(BufReader::new(reader));
        let greet = async {
            let greeting = lines.next().await?;
            if greeting.get("QMP").is_none() {
                return Err(QmpError::Protocol("there is no greeting".to_owned()));
            }
            send(&mut writer, &json!({"execute": "qmp_capabilities", "id": 0})).await?;
            loop {
                let answer = lines.next().await?;
                if answer.get("return").is_some() {
                    return Ok(());
                }
                if answer.get("error").is_some() {
                    return Err(refusal("qmp_capabilities", &answer));
                }
            }
        };
        tokio::time::timeout(timeout, greet)
            .await
            .map_err(|_| QmpError::Timeout {
                command: "the greeting (another client may be connected)".to_owned(),
                seconds: timeout.as_secs(),
            })??;
        let (requests, receiver) = mpsc::channel(COMMANDS);
        let (sender, _) = broadcast::channel(EVENTS);
        let events = sender.downgrade();
        let task = Task {
            lines,
            writer,
            requests: receiver,
            events: sender,
            waiting: HashMap::new(),
            next: 1,
        };
        tokio::spawn(task.run());
        Ok(Self { requests, events })
    }

    /// Executes a command.
    pub async fn execute(&self, command: &str, arguments: Value) -> Result<Value, QmpError> {
        self.execute_within(command, arguments, TIMEOUT).await
    }

    /// Executes a command that may take longer, or less long, than usual.
    pub async fn execute_within(
        &self,
        command: &str,
        arguments: Value,
        timeout: Duration,
    ) -> Result<Value, QmpError> {
        let (answer, answered) = oneshot::channel();
        let request = Request {
            command: command.to_owned(),
            arguments,
            answer,
        };
        let exchange = async {
            self.requests.send(request).await.map_err(|_| QmpError::Closed)?;
            answered.await.map_err(|_| QmpError::Closed)?
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Err(QmpError::Timeout {
                command: command.to_owned(),
                seconds: timeout.as_secs(),
            }),
        }
    }

    /// Events from now on.
    pub fn events(&self) -> Events {
        let receiver = match self.events.upgrade() {
            Some(events) => events.subscribe(),
            None => broadcast::channel(1).1,
        };
        Events(receiver)
    }
}

struct Task<R, W> {
    lines: Lines<R>,
    writer: W,
    requests: mpsc::Receiver<Request>,
    events: broadcast::Sender<Event>,
    waiting: HashMap<u64, (String, oneshot::Sender<Result<Value, QmpError>>)>,
    next: u64,
}

impl<R: AsyncBufRead + Unpin, W: AsyncWrite + Unpin> Task<R, W> {
    /// Until QEMU or the last user is gone. Whoever still waits then hears that the connection is closed. That nothing can be
    /// sent any more is not the end: what QEMU said last, which is why it ends, may still be there to be read.
    async fn run(mut self) {
        loop {
            tokio::select! {
                line = self.lines.next() => match line {
                    Ok(message) => self.hear(&message),
                    Err(_) => return,
                },
                request = self.requests.recv() => match request {
                    Some(request) => self.send(request).await,
                    None => return,
                },
            }
        }
    }

    async fn send(&mut self, request: Request) {
        // Those that nobody waits for any more are forgotten; their answers are dropped when they come.
        self.waiting.retain(|_, (_, answer)| !answer.is_closed());
        let id = self.next;
        self.next += 1;
        let mut message = Map::new();
        message.insert("execute".to_owned(), request.command.clone().into());
        if !request.arguments.is_null() {
            message.insert("arguments".to_owned(), request.arguments);
        }
        message.insert("id".to_owned(), id.into());
        match send(&mut self.writer, &Value::Object(message)).await {
            Ok(()) => {
                self.waiting.insert(id, (request.command, request.answer));
            }
            Err(error) => {
                let _ = request.answer.send(Err(error));
            }
        }
    }

    fn hear(&mut self, message: &Value) {
        if message.get("event").is_some() {
            // It is no matter if nobody listens.
            let _ = self.events.send(Event::parse(message));
            return;
        }
        let waiting = message
            .get("id")
            .and_then(Value::as_u64)
            .and_then(|id| self.waiting.remove(&id));
        if let Some((command, answer)) = waiting {
            let outcome = match message.get("return") {
                Some(value) => Ok(value.clone()),
                None => Err(refusal(&command, message)),
            };
            let _ = answer.send(outcome);
        }
    }
}

fn refusal(command: &str, message: &Value) -> QmpError {
    let text = |name: &str| message["error"][name].as_str().unwrap_or("?").to_owned();
    QmpError::Refused {
        command: command.to_owned(),
        class: text("class"),
        description: text("desc"),
    }
}

async fn send(writer: &mut (impl AsyncWrite + Unpin), message: &Value) -> Result<(), QmpError> {
    let line = format!("{message}\n");
    match tokio::time::timeout(TIMEOUT, writer.write_all(line.as_bytes())).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(QmpError::Closed),
    }
}

/// Lines of JSON. What was read of a line stays here, so that waiting for the next one can be given up at any time.
pub(crate) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            line: Vec::new(),
        }
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Result<Value, QmpError> {
        loop {
            let buffer = self.reader.fill_buf().await.map_err(|_| QmpError::Closed)?;
            if buffer.is_empty() {
                return Err(QmpError::Closed);
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(buffer.len(), |end| end + 1);
            if self.line.len() + taken > MAX_LINE {
                return Err(QmpError::Protocol(format!(
                    "a line has more than {MAX_LINE} bytes"
                )));
            }
            self.line.extend_from_slice(&buffer[..taken]);
            self.reader.consume(taken);
            if end.is_none() {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            return serde_json::from_slice(&line).map_err(|error| QmpError::Protocol(error.to_string()));
        }
    }
}

#[cfg(test)]
mod tests;
