//! QEMU's monitor, bare: a command, its answer. Events are passed over, as whoever does this by hand asks for the state instead.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// How long QEMU may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) struct Qmp {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writes: OwnedWriteHalf,
}

impl Qmp {
    /// Connects as soon as QEMU listens.
    pub(super) async fn connect(socket: &Path) -> Result<Self> {
        let began = Instant::now();
        let stream = loop {
            match UnixStream::connect(socket).await {
                Ok(stream) => break stream,
                Err(error) if began.elapsed() > PATIENCE => {
                    return Err(error)
                        .with_context(|| format!("QEMU does not listen at {}", socket.display()));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        };
        let (reads, writes) = stream.into_split();
        let mut qmp = Self {
            lines: BufReader::new(reads).lines(),
            writes,
        };
        qmp.execute("qmp_capabilities", json!({})).await?;
        Ok(qmp)
    }

    pub(super) async fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let line = format!("{}\n", json!({"execute": command, "arguments": arguments}));
        let asking = async {
            self.writes.write_all(line.as_bytes()).await?;
            loop {
                let line = self.lines.next_line().await?.context("QEMU has ended")?;
                let mut said: Value = serde_json::from_str(&line)?;
                if !said["error"].is_null() {
                    bail!("QEMU refuses {command}: {}", said["error"]["desc"]);
                }
                if let Some(answer) = said.get_mut("return") {
                    return Ok(answer.take());
                }
            }
        };
        let answered = tokio::time::timeout(PATIENCE, asking).await;
        answered.with_context(|| format!("QEMU does not answer {command}"))?
    }

    /// Asks until the answer is as wanted.
    pub(super) async fn until(&mut self, command: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        let began = Instant::now();
        loop {
            let answer = self.execute(command, json!({})).await?;
            if is_so(&answer) {
                return Ok(answer);
            }
            if began.elapsed() > PATIENCE {
                bail!("{command} still says {answer} after {PATIENCE:?}");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
