//! Moving a running machine from one QEMU to another.
//!
//! The destination is started with the same arguments and `-incoming defer`: it holds the disks' files open but not in use, and
//! takes them over at the very end. The source sends memory until little enough is left, stops, sends the rest, and has
//! then no right to the disks any more. So at every moment exactly one of the two may run: if anything fails before the
//! end, the source goes on and the destination is ended; once the destination runs, the source is ended.
//!
//! The order, which the two sides of a network have to keep by messages of their own: [`prepare`] at the destination,
//! [`send`] at the source, [`finish`] at the destination, and only then the end of the source. Disks that both sides do not
//! share are copied along ([`crate::mirror`]).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::MachineError;
use crate::event::Event;
use crate::machine::Machine;
use crate::meeting::{TLS_NAME, TLS_OBJECT};
use crate::mirror::Mirrors;
use crate::qmp::{Events, QmpError};

/// How long QEMU may take to end what it was told to end.
const ENDS: Duration = Duration::from_secs(30);
/// How often somebody looks how far a migration is that says nothing.
const LOOKS: Duration = Duration::from_millis(50);

/// How a migration is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Bytes per second at most; nothing is no limit.
    pub max_bandwidth: Option<u64>,
    /// How long the guest may stand still at the end.
    pub max_downtime: Duration,
    /// Whether a guest that writes faster than memory can be sent is slowed down.
    pub auto_converge: bool,
    /// Encrypted; both sides are armed for that ([`crate::meeting::arm`]).
    pub is_tls: bool,
    /// How long everything may take.
    pub timeout: Duration,
    /// How long it may make no progress.
    pub stuck: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_bandwidth: None,
            max_downtime: Duration::from_millis(300),
            auto_converge: true,
            is_tls: false,
            timeout: Duration::from_secs(800),
            stuck: Duration::from_secs(150),
        }
    }
}

/// How far a migration is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// QEMU's word: `setup`, `active`, `device`, `completed`, ...
    pub status: String,
    /// Bytes of memory that were sent.
    pub transferred: u64,
    /// Bytes of memory that are left.
    pub remaining: u64,
    /// Bytes of memory that there are.
    pub total: u64,
    /// Bytes of memory that are sent in a second.
    pub rate: u64,
    /// Bytes of memory that the guest writes to in a second; nothing before QEMU has gone through it once.
    pub dirty_rate: u64,
    /// Milliseconds for which the guest stood still, once it is known.
    pub downtime_ms: Option<u64>,
    /// Milliseconds since the beginning.
    pub total_ms: Option<u64>,
}

/// Makes the destination ready; where it listens is an address of QEMU, such as `unix:PATH` or `tcp:ADDRESS:PORT`.
pub async fn prepare(destination: &Machine, address: &str, options: &Options) -> Result<(), MachineError> {
    configure(destination, options).await?;
    let arguments = json!({"uri": address});
    destination.qmp().execute("migrate-incoming", arguments).await?;
    Ok(())
}

/// Sends the machine, and returns when everything has been sent. If it fails, the machine runs on here.
pub async fn send(
    source: &Machine,
    address: &str,
    options: &Options,
    progress: impl FnMut(&Progress),
) -> Result<Progress, MachineError> {
    send_with(source, address, options, None, progress).await
}

/// Sends the machine with disks that are being copied: when its guest stands still, what is left of them is copied first.
pub async fn send_with(
    source: &Machine,
    address: &str,
    options: &Options,
    mirrors: Option<&mut Mirrors>,
    progress: impl FnMut(&Progress),
) -> Result<Progress, MachineError> {
    configure(source, options).await?;
    let capabilities = json!({"capabilities": [
        {"capability": "pause-before-switchover", "state": mirrors.is_some()},
    ]});
    source
        .qmp()
        .execute("migrate-set-capabilities", capabilities)
        .await?;
    source.qmp().execute("migrate", json!({"uri": address})).await?;
    follow(source, options, mirrors, progress).await
}

/// Follows a migration that is under way until its end.
pub async fn follow(
    source: &Machine,
    options: &Options,
    mut mirrors: Option<&mut Mirrors>,
    mut progress: impl FnMut(&Progress),
) -> Result<Progress, MachineError> {
    let mut events = source.qmp().events();
    let sending = async {
        let mut least = (u64::MAX, Instant::now());
        loop {
            let found = match query(source).await {
                // A busy QEMU answers late, and goes on sending meanwhile.
                Err(MachineError::Qmp(QmpError::Timeout { .. })) => continue,
                found => found?,
            };
            progress(&found.0);
            if found.0.remaining < least.0 {
                least = (found.0.remaining, Instant::now());
            } else if least.1.elapsed() > options.stuck && found.0.status == "active" {
                let seconds = options.stuck.as_secs();
                return Err(MachineError::Failed(format!(
                    "Live migration stuck for {seconds} seconds and has been aborted"
                )));
            }
            match (found.0.status.as_str(), found.1) {
                ("pre-switchover", _) => {
                    if let Some(mirrors) = mirrors.as_deref_mut() {
                        mirrors.settle(source).await?;
                    }
                    let arguments = json!({"state": "pre-switchover"});
                    source.qmp().execute("migrate-continue", arguments).await?;
                }
                // QEMU says so a moment before it knows how long it took.
                ("completed", _) if found.0.total_ms.unwrap_or(0) > 0 => return Ok(found.0),
                ("completed", _) => tokio::time::sleep(Duration::from_millis(5)).await,
                ("failed" | "cancelled", why) => {
                    let why = why.unwrap_or_else(|| "QEMU does not say why".to_owned());
                    return Err(MachineError::Failed(format!("the migration failed: {why}")));
                }
                _ => until_news(&mut events).await,
            }
        }
    };
    match tokio::time::timeout(options.timeout, sending).await {
        Ok(Ok(sent)) => Ok(sent),
        // One that waits for what failed would wait for ever.
        Ok(Err(error)) => give_up(source, error).await,
        Err(_) => {
            let late = MachineError::Late {
                what: "the migration".to_owned(),
                seconds: options.timeout.as_secs(),
            };
            give_up(source, late).await
        }
    }
}

/// Waits until the migration has come to another state, or for so long that it is worth looking how far it is. While copies of
/// disks are waited for, the guest stands still, so it does not wait for somebody to look.
async fn until_news(events: &mut Events) {
    let changed =
        events.find(|event| matches!(event, Event::Migration { .. } | Event::Missed(_)).then_some(()));
    let _ = tokio::time::timeout(LOOKS, changed).await;
}

/// Gives a migration up because of something; but one that was over before counts as sent, as the guest does not run here any more.
async fn give_up(source: &Machine, why: MachineError) -> Result<Progress, MachineError> {
    let _ = cancel(source).await;
    let ending = async {
        loop {
            match query(source).await {
                Ok((found, _)) if found.status == "completed" => return Some(found),
                Ok((found, _)) if matches!(found.status.as_str(), "cancelling" | "device" | "active") => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                _ => return None,
            }
        }
    };
    let ended = tokio::time::timeout(ENDS, ending).await;
    ended.ok().flatten().ok_or(why)
}

/// Waits until the machine runs at its destination: when the source says that everything was sent, it may still be on its way.
pub async fn finish(destination: &Machine, timeout: Duration) -> Result<(), MachineError> {
    destination.wait_for_state("running", timeout).await
}

/// Gives a migration up; the machine stays where it is.
pub async fn cancel(source: &Machine) -> Result<(), MachineError> {
    source.qmp().execute("migrate_cancel", Value::Null).await?;
    Ok(())
}

/// How far the migration of a source is.
pub async fn progress(source: &Machine) -> Result<Progress, MachineError> {
    Ok(query(source).await?.0)
}

async fn query(machine: &Machine) -> Result<(Progress, Option<String>), MachineError> {
    let found = machine.qmp().execute("query-migrate", Value::Null).await?;
    let memory = |name: &str| found["ram"][name].as_u64().unwrap_or_default();
    let progress = Progress {
        status: found["status"].as_str().unwrap_or_default().to_owned(),
        transferred: memory("transferred"),
        remaining: memory("remaining"),
        total: memory("total"),
        rate: bytes_of(found["ram"]["mbps"].as_f64().unwrap_or_default()),
        dirty_rate: memory("dirty-pages-rate").saturating_mul(memory("page-size")),
        downtime_ms: found["downtime"].as_u64(),
        total_ms: found["total-time"].as_u64(),
    };
    Ok((progress, found["error-desc"].as_str().map(str::to_owned)))
}

/// Bytes of so many millions of bits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "QEMU measures in floating point; what is no number is zero"
)]
fn bytes_of(megabits: f64) -> u64 {
    (megabits * 125_000.0) as u64
}

async fn configure(machine: &Machine, options: &Options) -> Result<(), MachineError> {
    let capabilities = json!({"capabilities": [
        {"capability": "events", "state": true},
        {"capability": "auto-converge", "state": options.auto_converge},
    ]});
    machine
        .qmp()
        .execute("migrate-set-capabilities", capabilities)
        .await?;
    let parameters = json!({
        "downtime-limit": u64::try_from(options.max_downtime.as_millis()).unwrap_or(u64::MAX),
        // Zero is no limit; QEMU's own is 128 MiB/s.
        "max-bandwidth": options.max_bandwidth.unwrap_or(0),
        // The switch learns where the machine is now.
        "announce-initial": 50, "announce-max": 550, "announce-rounds": 5, "announce-step": 100,
        // What an earlier attempt has left goes.
        "tls-creds": if options.is_tls { TLS_OBJECT } else { "" },
        "tls-hostname": if options.is_tls { TLS_NAME } else { "" },
    });
    machine
        .qmp()
        .execute("migrate-set-parameters", parameters)
        .await?;
    Ok(())
}
