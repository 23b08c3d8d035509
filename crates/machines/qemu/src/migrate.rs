//! Moving a running machine from one QEMU to another.
//!
//! The destination is started with the same arguments and `-incoming defer`: it holds the disks' files open but not in use, and
//! takes them over at the very end. The source sends memory until little enough is left, stops, sends the rest, and has
//! then no right to the disks any more. So at every moment exactly one of the two may run: if anything fails before the
//! end, the source goes on and the destination is ended; once the destination runs, the source is ended.
//!
//! The order, which the two sides of a network have to keep by messages of their own: [`prepare`] at the destination,
//! [`send`] at the source, [`finish`] at the destination, and only then the end of the source.

use std::time::Duration;

use serde_json::{Value, json};

use crate::MachineError;
use crate::machine::Machine;

/// How a migration is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Bytes per second at most; nothing is no limit.
    pub max_bandwidth: Option<u64>,
    /// How long the guest may stand still at the end.
    pub max_downtime: Duration,
    /// Whether a guest that writes faster than memory can be sent is slowed down.
    pub auto_converge: bool,
    /// The id of a `tls-creds-x509` object that both sides have, for an encrypted connection.
    pub tls_credentials: Option<String>,
    /// How long everything may take.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_bandwidth: None,
            max_downtime: Duration::from_millis(300),
            auto_converge: true,
            tls_credentials: None,
            timeout: Duration::from_secs(800),
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
    mut progress: impl FnMut(&Progress),
) -> Result<Progress, MachineError> {
    configure(source, options).await?;
    source.qmp().execute("migrate", json!({"uri": address})).await?;
    let sending = async {
        loop {
            let found = query(source).await?;
            progress(&found.0);
            match (found.0.status.as_str(), found.1) {
                // QEMU says so a moment before it knows how long it took.
                ("completed", _) if found.0.total_ms.unwrap_or(0) > 0 => return Ok(found.0),
                ("completed", _) => tokio::time::sleep(Duration::from_millis(5)).await,
                ("failed" | "cancelled", why) => {
                    let why = why.unwrap_or_else(|| "QEMU does not say why".to_owned());
                    return Err(MachineError::Failed(format!("the migration failed: {why}")));
                }
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    match tokio::time::timeout(options.timeout, sending).await {
        Ok(outcome) => outcome,
        Err(_) => {
            cancel(source).await?;
            Err(MachineError::Late {
                what: "the migration".to_owned(),
                seconds: options.timeout.as_secs(),
            })
        }
    }
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
        downtime_ms: found["downtime"].as_u64(),
        total_ms: found["total-time"].as_u64(),
    };
    Ok((progress, found["error-desc"].as_str().map(str::to_owned)))
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
    let mut parameters = json!({
        "downtime-limit": u64::try_from(options.max_downtime.as_millis()).unwrap_or(u64::MAX),
        // Zero is no limit; QEMU's own is 128 MiB/s.
        "max-bandwidth": options.max_bandwidth.unwrap_or(0),
        // The switch learns where the machine is now.
        "announce-initial": 50, "announce-max": 550, "announce-rounds": 5, "announce-step": 100,
    });
    if let Some(credentials) = &options.tls_credentials {
        parameters["tls-creds"] = credentials.as_str().into();
    }
    machine
        .qmp()
        .execute("migrate-set-parameters", parameters)
        .await?;
    Ok(())
}
