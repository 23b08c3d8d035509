//! Who did what, as JSON lines in the form of `audit.k8s.io/v1` at level Metadata.
//!
//! Requests hand their line to a thread that writes; nobody waits for the disk. The queue is bounded: if the disk does not
//! keep up, lines are dropped and counted, and the next line that is written says how many.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use fairway_kernel_authz::UserInfo;
use serde_json::{Value, json};

use crate::authn::Peer;
use crate::request::RequestInfo;

const QUEUE: usize = 8_192;
/// Between two batches of lines.
const PAUSE: Duration = Duration::from_millis(10);

/// The audit log.
pub struct Audit {
    lines: Option<SyncSender<Value>>,
    dropped: AtomicU64,
}

/// One request, for the log.
pub struct Entry<'a> {
    /// Id of the request.
    pub id: &'a str,
    /// What was asked.
    pub info: &'a RequestInfo,
    /// The whole URI.
    pub uri: &'a str,
    /// Who asked.
    pub user: Option<&'a UserInfo>,
    /// As whom.
    pub impersonated: Option<&'a UserInfo>,
    /// From where.
    pub peer: &'a Peer,
    /// With what.
    pub user_agent: &'a str,
    /// The answer's code.
    pub code: u16,
    /// When it came in.
    pub received: &'a str,
    /// When it was answered.
    pub answered: &'a str,
    /// Why it was allowed, or not.
    pub decision: Option<(&'static str, &'a str)>,
}

impl Audit {
    /// Keeps no log.
    pub fn off() -> Self {
        Self {
            lines: None,
            dropped: AtomicU64::new(0),
        }
    }

    /// Appends to a file, which only its owner can read.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path)?;
        let (lines, queue) = sync_channel(QUEUE);
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write_lines(file, &queue))?;
        Ok(Self {
            lines: Some(lines),
            dropped: AtomicU64::new(0),
        })
    }

    /// Whether anybody will read an entry.
    pub fn is_on(&self) -> bool {
        self.lines.is_some()
    }

    /// Lines that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes an entry, soon.
    pub fn record(&self, entry: &Entry<'_>) {
        let Some(lines) = &self.lines else { return };
        if let Err(TrySendError::Full(_)) = lines.try_send(entry.to_value()) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write_lines(file: File, queue: &Receiver<Value>) {
    let mut out = BufWriter::with_capacity(64 * 1024, file);
    while let Ok(line) = queue.recv() {
        let mut line = Some(line);
        while let Some(value) = line {
            let written = serde_json::to_writer(&mut out, &value).map_err(std::io::Error::from);
            if let Err(error) = written.and_then(|()| out.write_all(b"\n")) {
                tracing::error!(%error, "the audit log cannot be written");
            }
            line = queue.try_recv().ok();
        }
        if let Err(error) = out.flush() {
            tracing::error!(%error, "the audit log cannot be written");
        }
        // Under load, waking for every line would cost more than writing it.
        std::thread::sleep(PAUSE);
    }
}

fn user(user: &UserInfo) -> Value {
    let mut value = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        value["uid"] = user.uid.as_str().into();
    }
    if !user.extra.is_empty() {
        value["extra"] = json!(user.extra);
    }
    value
}

impl Entry<'_> {
    fn to_value(&self) -> Value {
        let mut event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": self.id,
            "stage": "ResponseComplete", "requestURI": self.uri, "verb": self.info.verb,
            "user": self.user.map_or(Value::Null, user),
        });
        if let Some(impersonated) = self.impersonated {
            event["impersonatedUser"] = user(impersonated);
        }
        event["sourceIPs"] = self
            .peer
            .address
            .map_or_else(|| json!([]), |a| json!([a.to_string()]));
        event["userAgent"] = self.user_agent.into();
        if let Some(resource) = &self.info.resource {
            let mut object = json!({"resource": resource.resource, "apiVersion": resource.version});
            for (field, text) in [
                ("apiGroup", resource.group.as_str()),
                ("namespace", resource.namespace.as_deref().unwrap_or("")),
                ("name", &resource.name),
                ("subresource", &resource.subresource),
            ] {
                if !text.is_empty() {
                    object[field] = text.into();
                }
            }
            event["objectRef"] = object;
        }
        event["responseStatus"] = json!({"metadata": {}, "code": self.code});
        event["requestReceivedTimestamp"] = self.received.into();
        event["stageTimestamp"] = self.answered.into();
        if let Some((decision, reason)) = self.decision {
            event["annotations"] = json!({
                "authorization.k8s.io/decision": decision, "authorization.k8s.io/reason": reason,
            });
        }
        event
    }
}
