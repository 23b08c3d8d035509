//! What QEMU tells without being asked.

use serde_json::Value;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// QEMU is about to end.
    Shutdown {
        /// Whether the guest wanted it.
        by_guest: bool,
        /// `guest-shutdown`, `host-qmp-quit`, `host-signal`, ...
        reason: String,
    },
    /// The guest was asked to switch itself off.
    PowerDown,
    /// The machine was reset.
    Reset {
        /// Whether the guest wanted it.
        by_guest: bool,
    },
    /// The processors stand still.
    Stop,
    /// The processors run.
    Resume,
    /// The guest sleeps.
    Suspend,
    /// The guest is awake again.
    Wakeup,
    /// The guest's kernel has given up.
    GuestPanicked {
        /// What QEMU does about it.
        action: String,
    },
    /// The guest's watchdog has bitten.
    Watchdog {
        /// What QEMU does about it.
        action: String,
    },
    /// A device is gone, and its name is free again.
    DeviceDeleted {
        /// Its name; QEMU also tells of parts without one.
        device: Option<String>,
    },
    /// The guest does not let a device go.
    DeviceUnplugFailed {
        /// Its name.
        device: Option<String>,
    },
    /// A migration has come to another state.
    Migration {
        /// `setup`, `active`, `completed`, `failed`, ...
        status: String,
    },
    /// A migration begins another round over the memory.
    MigrationPass {
        /// Which.
        pass: u64,
    },
    /// A job has come to another state.
    Job {
        /// Its name.
        id: String,
        /// `running`, `ready`, `concluded`, ...
        status: String,
    },
    /// A job on a disk has ended.
    BlockJobEnded {
        /// Its name.
        device: String,
        /// Why it failed, if it did.
        error: Option<String>,
    },
    /// A job on a disk keeps up with the guest, and can be completed.
    BlockJobReady {
        /// Its name.
        device: String,
    },
    /// The host could not read or write for the guest.
    BlockIoError {
        /// The device or node.
        device: String,
        /// What QEMU does: `report`, `ignore` or `stop`.
        action: String,
        /// Whether the disk of the host is full.
        no_space: bool,
    },
    /// The guest has given memory back, or taken some.
    Balloon {
        /// Bytes that it has now.
        actual: u64,
    },
    /// A port of the guest was opened or closed, by which one sees the guest agent come and go.
    Port {
        /// Its name.
        id: String,
        /// Whether it is open.
        is_open: bool,
    },
    /// Memory that the guest can take or give back in pieces has another size.
    MemorySize {
        /// The device.
        id: Option<String>,
        /// Bytes.
        size: u64,
    },
    /// The listener was too slow for so many events.
    Missed(u64),
    /// Anything else.
    Other {
        /// Its name.
        name: String,
    },
}

impl Event {
    /// Reads an event.
    pub fn parse(message: &Value) -> Self {
        let data = &message["data"];
        let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        let maybe = |name: &str| data[name].as_str().map(str::to_owned);
        let number = |name: &str| data[name].as_u64().unwrap_or_default();
        let by_guest = data["guest"].as_bool().unwrap_or(false);
        match message["event"].as_str().unwrap_or_default() {
            "SHUTDOWN" => Self::Shutdown {
                by_guest,
                reason: text("reason"),
            },
            "POWERDOWN" => Self::PowerDown,
            "RESET" => Self::Reset { by_guest },
            "STOP" => Self::Stop,
            "RESUME" => Self::Resume,
            "SUSPEND" => Self::Suspend,
            "WAKEUP" => Self::Wakeup,
            "GUEST_PANICKED" => Self::GuestPanicked {
                action: text("action"),
            },
            "WATCHDOG" => Self::Watchdog {
                action: text("action"),
            },
            "DEVICE_DELETED" => Self::DeviceDeleted {
                device: maybe("device"),
            },
            "DEVICE_UNPLUG_GUEST_ERROR" | "MEM_UNPLUG_ERROR" => Self::DeviceUnplugFailed {
                device: maybe("device"),
            },
            "MIGRATION" => Self::Migration {
                status: text("status"),
            },
            "MIGRATION_PASS" => Self::MigrationPass { pass: number("pass") },
            "JOB_STATUS_CHANGE" => Self::Job {
                id: text("id"),
                status: text("status"),
            },
            "BLOCK_JOB_COMPLETED" | "BLOCK_JOB_CANCELLED" => Self::BlockJobEnded {
                device: text("device"),
                error: maybe("error"),
            },
            "BLOCK_JOB_READY" => Self::BlockJobReady {
                device: text("device"),
            },
            "BLOCK_IO_ERROR" => Self::BlockIoError {
                device: maybe("qom-path")
                    .filter(|_| text("device").is_empty())
                    .unwrap_or_else(|| text("device")),
                action: text("action"),
                no_space: data["nospace"].as_bool().unwrap_or(false),
            },
            "BALLOON_CHANGE" => Self::Balloon {
                actual: number("actual"),
            },
            "VSERPORT_CHANGE" => Self::Port {
                id: text("id"),
                is_open: data["open"].as_bool().unwrap_or(false),
            },
            "MEMORY_DEVICE_SIZE_CHANGE" => Self::MemorySize {
                id: maybe("id"),
                size: number("size"),
            },
            name => Self::Other {
                name: name.to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_read() {
        let read = |name: &str, data: Value| Event::parse(&json!({"event": name, "data": data}));
        for (found, expected) in [
            (
                read("SHUTDOWN", json!({"guest": true, "reason": "guest-shutdown"})),
                Event::Shutdown {
                    by_guest: true,
                    reason: "guest-shutdown".to_owned(),
                },
            ),
            (read("STOP", Value::Null), Event::Stop),
            (
                read("DEVICE_DELETED", json!({"path": "/machine/x"})),
                Event::DeviceDeleted { device: None },
            ),
            (
                read(
                    "BLOCK_IO_ERROR",
                    json!({"device": "", "qom-path": "/q", "action": "stop", "nospace": true}),
                ),
                Event::BlockIoError {
                    device: "/q".to_owned(),
                    action: "stop".to_owned(),
                    no_space: true,
                },
            ),
            (
                read("VSERPORT_CHANGE", json!({"id": "agent", "open": true})),
                Event::Port {
                    id: "agent".to_owned(),
                    is_open: true,
                },
            ),
            (
                read("SOMETHING_NEW", json!({})),
                Event::Other {
                    name: "SOMETHING_NEW".to_owned(),
                },
            ),
        ] {
            assert_eq!(found, expected);
        }
        assert_eq!(Event::parse(&Value::Null), Event::Other { name: String::new() });
    }
}
