//! The access log: lines are handed to a thread that writes them. If it cannot follow, lines are lost rather than requests
//! slowed, and the loss is counted.

use std::io::Write;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::options::AccessLog;

pub(crate) struct Log {
    send: Option<SyncSender<String>>,
    writer: Option<JoinHandle<()>>,
}

impl Log {
    pub(crate) fn start(log: Option<AccessLog>) -> std::io::Result<Self> {
        let Some(log) = log else {
            return Ok(Self {
                send: None,
                writer: None,
            });
        };
        let (send, receive) = sync_channel::<String>(log.waiting);
        let writer = std::thread::Builder::new().name("gateway-log".into()).spawn(move || {
            let Ok(mut target) = log.target.into_inner() else {
                return;
            };
            while let Ok(line) = receive.recv() {
                let mut lines = line;
                // What waits is written together.
                while lines.len() < 64 * 1024 {
                    match receive.try_recv() {
                        Ok(line) => lines.push_str(&line),
                        Err(_) => break,
                    }
                }
                if let Err(error) = target.write_all(lines.as_bytes()).and_then(|()| target.flush()) {
                    tracing::warn!(%error, "cannot write the access log; its lines are lost until this is mended");
                }
            }
        })?;
        Ok(Self {
            send: Some(send),
            writer: Some(writer),
        })
    }

    pub(crate) fn is_on(&self) -> bool {
        self.send.is_some()
    }

    /// False if the line was dropped.
    pub(crate) fn write(&self, line: String) -> bool {
        self.send.as_ref().is_none_or(|send| send.try_send(line).is_ok())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // The writer ends when nobody can send any more, and has then written everything.
        self.send = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}
