//! QEMU's guest agent: the guest's own view of itself, and things that only the guest can do.
//!
//! The guest may be hostile, so nothing that it says is trusted: answers have a limit, every call has one, too, and
//! after a call that was not answered in time the connection is made anew and synchronised, so that a late answer is
//! never taken for that of another call. There may be no agent at all: then nothing answers.

mod calls;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use crate::{names, socket};

pub use calls::{Count, Executed, Filesystem, Interface, OsInfo, Traffic, User};

/// How long a call may take if nobody says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the agent may take to show that it is there.
const SYNC: Duration = Duration::from_secs(3);
/// The longest answer. A file or an output comes in pieces or is cut off by the agent at 16 MiB.
const MAX_ANSWER: usize = 24 << 20;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The machine has no port for an agent.
    #[error("the machine has no port for the guest agent")]
    NoPort(#[source] std::io::Error),
    /// Nothing answers.
    #[error("the guest agent does not answer: it is not installed in the guest, or not running yet")]
    Silent,
    /// The agent says no.
    #[error("the guest agent refused {command}: {description}")]
    Refused {
        /// What was asked for.
        command: String,
        /// What the agent says.
        description: String,
    },
    /// There was no answer in time.
    #[error("the guest agent did not answer {command} within {seconds} s")]
    Timeout {
        /// What was asked for.
        command: String,
        /// How long.
        seconds: u64,
    },
    /// What came is not the protocol.
    #[error("the guest agent speaks otherwise than expected: {0}")]
    Protocol(String),
}

/// The agent of a machine's guest. Clones share one connection.
#[derive(Debug, Clone)]
pub struct Agent {
    directory: PathBuf,
    connection: Arc<Mutex<Option<Connection>>>,
}

#[derive(Debug)]
struct Connection {
    stream: BufReader<UnixStream>,
    next: u64,
}

impl Agent {
    /// The agent of the machine in a directory. Nothing is connected before the first call.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            connection: Arc::new(Mutex::new(None)),
        }
    }

    /// Calls the agent. Calls are made one after the other.
    pub async fn call(&self, command: &str, arguments: Value) -> Result<Value, AgentError> {
        self.call_within(command, arguments, TIMEOUT).await
    }

    /// Calls the agent for something that may take longer than usual.
    pub async fn call_within(
        &self,
        command: &str,
        arguments: Value,
        timeout: Duration,
    ) -> Result<Value, AgentError> {
        let mut slot = self.connection.lock().await;
        // Taken out: whatever happens from here on, only a connection on which all is in order is put back.
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let exchange = connection.exchange(command, arguments);
        let outcome = tokio::time::timeout(timeout, exchange).await;
        let outcome = outcome.unwrap_or_else(|_| {
            Err(AgentError::Timeout {
                command: command.to_owned(),
                seconds: timeout.as_secs(),
            })
        });
        if matches!(outcome, Ok(_) | Err(AgentError::Refused { .. })) {
            *slot = Some(connection);
        }
        outcome
    }

    /// Sends something to which there is no answer because the guest ends, such as `guest-shutdown`.
    pub async fn tell(&self, command: &str, arguments: Value) -> Result<(), AgentError> {
        let mut slot = self.connection.lock().await;
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection
            .send(&json!({"execute": command, "arguments": arguments}))
            .await
    }

    async fn connect(&self) -> Result<Connection, AgentError> {
        let stream = socket::dial(&self.directory, names::AGENT)
            .await
            .map_err(AgentError::NoPort)?;
        let mut connection = Connection {
            stream: BufReader::new(stream),
            next: u64::from(std::process::id()) << 20,
        };
        match tokio::time::timeout(SYNC, connection.synchronise()).await {
            Ok(outcome) => outcome.map(|()| connection),
            Err(_) => Err(AgentError::Silent),
        }
    }
}

impl Connection {
    /// Finds the beginning of what is meant for this connection: everything up to a mark is of earlier ones.
    async fn synchronise(&mut self) -> Result<(), AgentError> {
        self.next += 1;
        let id = self.next;
        // The mark also ends whatever half a command the agent may have.
        self.write(b"\xff").await?;
        self.send(&json!({"execute": "guest-sync-delimited", "arguments": {"id": id}}))
            .await?;
        loop {
            let line = self.line().await?;
            let line = line.rsplit(|byte| *byte == 0xff).next().unwrap_or_default();
            let answer: Value = serde_json::from_slice(line).unwrap_or_default();
            if answer["return"].as_u64() == Some(id) {
                return Ok(());
            }
        }
    }

    async fn exchange(&mut self, command: &str, arguments: Value) -> Result<Value, AgentError> {
        let message = match arguments {
            Value::Null => json!({"execute": command}),
            arguments => json!({"execute": command, "arguments": arguments}),
        };
        self.send(&message).await?;
        let line = self.line().await?;
        let mut answer: Value =
            serde_json::from_slice(&line).map_err(|error| AgentError::Protocol(error.to_string()))?;
        match answer.get_mut("return") {
            Some(value) => Ok(value.take()),
            None => Err(AgentError::Refused {
                command: command.to_owned(),
                description: answer["error"]["desc"].as_str().unwrap_or("?").to_owned(),
            }),
        }
    }

    async fn send(&mut self, message: &Value) -> Result<(), AgentError> {
        self.write(format!("{message}\n").as_bytes()).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), AgentError> {
        // A guest that does not read lets the port run full.
        match tokio::time::timeout(SYNC, self.stream.get_mut().write_all(bytes)).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(AgentError::Silent),
        }
    }

    async fn line(&mut self) -> Result<Vec<u8>, AgentError> {
        let mut line = Vec::new();
        loop {
            let buffer = self.stream.fill_buf().await.map_err(|_| AgentError::Silent)?;
            if buffer.is_empty() {
                return Err(AgentError::Silent);
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(buffer.len(), |end| end + 1);
            if line.len() + taken > MAX_ANSWER {
                return Err(AgentError::Protocol(format!(
                    "an answer has more than {MAX_ANSWER} bytes"
                )));
            }
            line.extend_from_slice(&buffer[..taken]);
            self.stream.consume(taken);
            if end.is_some() && !line.trim_ascii().is_empty() {
                return Ok(line);
            }
        }
    }
}
