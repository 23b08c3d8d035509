//! A machine that moves: what its instance says about it, and who has to do what.
//!
//! The engine names source and target in `status.migrationState`; the two nodes then meet in the instance:
//!
//! ```text
//!   source  annotation migration-source: the machine as it was built
//!   target  starts QEMU in the same way, waiting; annotation migration-target: where it listens; targetNodeAddress
//!   source  startTimestamp; copies disks that are not shared, then memory ([`source`])
//!   target  lets the guest run; nodeName, targetNodeDomainReadyTimestamp, completed, endTimestamp ([`target`])
//!   source  ends its QEMU
//! ```
//!
//! Until the last step but one the guest runs at the source, whatever fails; from then on at the target. Whoever fails says so
//! (`failed`, `failureReason`), and the other one cleans up.
//!
//! Two nodes of one host meet by sockets, if neither machine has a user of its own, as one user does not get into the other's directory; others by TCP, encrypted with keys of that one migration ([`secrecy`]). A disk that both see
//! is shared: the source leaves a mark beside it, and the target looks for it. Any other is copied, and its volume then belongs to the
//! target's node.

mod course;
mod hung_up;
mod secrecy;
mod source;
mod target;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairway_machines_plan::view::Amount;
use fairway_machines_qemu::meeting::Meeting;
use fairway_machines_qemu::migrate::Options;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::home::Built;

/// Upstream's default.
const SECONDS_PER_GIB: u64 = 150;

pub(crate) use source::{Sending, Unsaid};
pub(crate) use target::{Arriving, Listening};

pub(crate) use fairway_machines_plan::node::{
    MIGRATION_SOURCE_ANNOTATION as SOURCE, MIGRATION_TARGET_ANNOTATION as TARGET,
};

/// What the source says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FromSource {
    pub(crate) migration: String,
    pub(crate) built: Built,
    /// The board with its version, as the target's QEMU may mean another by the same word.
    pub(crate) machine_type: String,
    /// Somebody has paused the guest: it stays so.
    pub(crate) is_paused: bool,
    /// Which host it is on.
    pub(crate) host: String,
    /// The user that the machine runs as, if it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<u32>,
    /// The authority of its certificate.
    pub(crate) authority: String,
}

/// What the target says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FromTarget {
    pub(crate) migration: String,
    /// Where memory goes to.
    pub(crate) memory: Meeting,
    /// Where disks go to, and which.
    pub(crate) disks_at: Meeting,
    pub(crate) disks: Vec<String>,
    /// The authority of its certificate, if it wants the source to be sure who it is.
    pub(crate) authority: Option<String>,
}

/// A migration that is under way.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub(crate) uid: String,
    pub(crate) has_started: bool,
    pub(crate) is_listening: bool,
    pub(crate) is_to_end: bool,
    pub(crate) options: Options,
    /// Seconds for each GiB; connections between hosts are encrypted.
    pub(crate) seconds_per_gib: u64,
    pub(crate) wants_tls: bool,
    pub(crate) from_source: Option<FromSource>,
    pub(crate) from_target: Option<FromTarget>,
}

/// What a node has to do with an instance.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Role {
    /// Nothing.
    None,
    /// Its machine runs here.
    Owner,
    /// It runs here, and is about to move.
    Source(Box<State>),
    /// It is about to come.
    Target(Box<State>),
}

/// What a node has to do with an instance.
pub(crate) fn role(object: &Value, node: &str) -> Role {
    let status = &object["status"];
    let migration = &status["migrationState"];
    let is_here = status["nodeName"] == node;
    let uid = migration["migrationUid"].as_str().unwrap_or_default();
    let is_over = migration["completed"] == true || migration["failed"] == true;
    if uid.is_empty() || is_over {
        return if is_here { Role::Owner } else { Role::None };
    }
    let is_final = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
    match (
        is_here,
        migration["sourceNode"] == node,
        migration["targetNode"] == node,
    ) {
        (true, true, false) if !is_final => Role::Source(Box::new(state(object, uid))),
        (true, ..) => Role::Owner,
        (false, _, true) if !is_final => Role::Target(Box::new(state(object, uid))),
        (false, ..) => Role::None,
    }
}

fn state(object: &Value, uid: &str) -> State {
    let migration = &object["status"]["migrationState"];
    let configuration = &migration["migrationConfiguration"];
    let annotation = |name: &str| object["metadata"]["annotations"][name].as_str();
    let from_source: Option<FromSource> = annotation(SOURCE).and_then(|it| serde_json::from_str(it).ok());
    let from_target: Option<FromTarget> = annotation(TARGET).and_then(|it| serde_json::from_str(it).ok());
    State {
        uid: uid.to_owned(),
        has_started: !migration["startTimestamp"].is_null(),
        is_listening: migration["targetNodeAddress"]
            .as_str()
            .is_some_and(|it| !it.is_empty()),
        is_to_end: migration["abortRequested"] == true,
        options: options(configuration),
        seconds_per_gib: configuration["completionTimeoutPerGiB"]
            .as_u64()
            .filter(|it| *it > 0)
            .unwrap_or(SECONDS_PER_GIB),
        wants_tls: configuration["disableTLS"] != true,
        // What another migration has left means nothing.
        from_source: from_source.filter(|it| it.migration == uid),
        from_target: from_target.filter(|it| it.migration == uid),
    }
}

/// How it is done, as the settings have it.
fn options(configuration: &Value) -> Options {
    let defaults = Options::default();
    let bandwidth = serde_json::from_value::<Amount>(configuration["bandwidthPerMigration"].clone());
    let bandwidth = bandwidth.ok().map(Amount::bytes).filter(|it| *it > 0);
    let stuck = configuration["progressTimeout"].as_u64().filter(|it| *it > 0);
    Options {
        max_bandwidth: bandwidth,
        // Upstream says no unless somebody says yes; a guest that writes faster than memory can be sent would never move.
        auto_converge: configuration["allowAutoConverge"].as_bool().unwrap_or(true),
        stuck: stuck.map_or(defaults.stuck, Duration::from_secs),
        ..defaults
    }
}

/// How long it may take to send so many bytes.
fn timeout(seconds_per_gib: u64, bytes: u64) -> Duration {
    Duration::from_secs(seconds_per_gib.saturating_mul(bytes.div_ceil(1 << 30).max(1)))
}

/// How two nodes reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By sockets of the host.
    Here,
    /// By the network, at an address of the target.
    Network { address: IpAddr, is_tls: bool },
}

impl Way {
    /// The way from a source's host to this one. A machine that has a user of its own does not get into the directory of another.
    fn of(
        source: &str,
        own: &str,
        is_confined: bool,
        address: Option<IpAddr>,
        wants_tls: bool,
    ) -> Result<Self, String> {
        match address {
            _ if source == own && !is_confined => Ok(Self::Here),
            Some(address) => Ok(Self::Network {
                address,
                is_tls: wants_tls,
            }),
            None => Err("the target node has no address at which others reach it; give it one (--node-addresses ADDR)".to_owned()),
        }
    }
}

/// The mark that a source leaves beside a disk, by which a target knows that it sees the same one.
fn mark(directory: &Path, uid: &str) -> PathBuf {
    directory.join(format!(".moving-{uid}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_has_to_do_what() {
        let moving = |more: Value| {
            let mut migration = json!({"migrationUid": "m", "sourceNode": "a", "targetNode": "b"});
            for (field, value) in more.as_object().unwrap() {
                migration[field] = value.clone();
            }
            migration
        };
        let cases = [
            (
                "rests",
                json!({"nodeName": "a", "phase": "Running"}),
                ["Owner", "None", "None"],
            ),
            (
                "moves",
                json!({"nodeName": "a", "phase": "Running", "migrationState": moving(json!({}))}),
                ["Source", "Target", "None"],
            ),
            (
                "failed",
                json!({"nodeName": "a", "phase": "Running", "migrationState": moving(json!({"failed": true}))}),
                ["Owner", "None", "None"],
            ),
            (
                "has moved",
                json!({"nodeName": "b", "phase": "Running", "migrationState": moving(json!({"completed": true}))}),
                ["None", "Owner", "None"],
            ),
            (
                "runs there, and nobody said that it is over",
                json!({"nodeName": "b", "phase": "Running", "migrationState": moving(json!({}))}),
                ["None", "Owner", "None"],
            ),
            (
                "ended on its way",
                json!({"nodeName": "a", "phase": "Failed", "migrationState": moving(json!({}))}),
                ["Owner", "None", "None"],
            ),
        ];
        for (name, status, expected) in cases {
            let object = json!({ "status": status });
            for (node, expected) in ["a", "b", "c"].into_iter().zip(expected) {
                let found = match role(&object, node) {
                    Role::None => "None",
                    Role::Owner => "Owner",
                    Role::Source(_) => "Source",
                    Role::Target(_) => "Target",
                };
                assert_eq!(found, expected, "{name}: {node}");
            }
        }
    }

    #[test]
    fn settings_are_heeded() {
        let found = options(&json!({
            "bandwidthPerMigration": "64Mi", "progressTimeout": 100, "allowAutoConverge": false,
        }));
        assert_eq!(found.max_bandwidth, Some(64 << 20));
        assert_eq!(found.stuck, Duration::from_secs(100));
        assert!(!found.auto_converge);
        assert_eq!(options(&Value::Null), Options::default());
        for (bytes, seconds) in [(0, 150), (1 << 30, 150), ((1 << 30) + 1, 300), (8 << 30, 1200)] {
            assert_eq!(timeout(150, bytes), Duration::from_secs(seconds), "{bytes}");
        }
    }

    #[test]
    fn ways_between_nodes() {
        let address: IpAddr = "192.0.2.7".parse().unwrap();
        let network = |is_tls| Ok(Way::Network { address, is_tls });
        for (source, confined, at, tls, expected, reason) in [
            ("a", false, None, true, Ok(Way::Here), "one host"),
            (
                "a",
                false,
                Some(address),
                true,
                Ok(Way::Here),
                "although it has an address",
            ),
            (
                "a",
                true,
                Some(address),
                true,
                network(true),
                "one host, two users",
            ),
            ("b", false, Some(address), true, network(true), "two hosts"),
            ("b", false, Some(address), false, network(false), "as it was told"),
        ] {
            assert_eq!(Way::of(source, "a", confined, at, tls), expected, "{reason}");
        }
        assert!(Way::of("b", "a", false, None, true).is_err());
        assert!(Way::of("a", "a", true, None, true).is_err());
    }

    #[test]
    fn words_of_another_migration_mean_nothing() {
        let from_target = FromTarget {
            migration: "old".to_owned(),
            memory: Meeting::Unix("s".to_owned()),
            disks_at: Meeting::Unix("d".to_owned()),
            disks: Vec::new(),
            authority: None,
        };
        let object = json!({
            "metadata": {"annotations": {TARGET: serde_json::to_string(&from_target).unwrap(), SOURCE: "damaged"}},
            "status": {"migrationState": {"targetNodeAddress": "x"}},
        });
        assert_eq!(state(&object, "new").from_target, None);
        assert_eq!(state(&object, "old").from_target, Some(from_target));
        assert_eq!(state(&object, "old").from_source, None);
        assert!(state(&object, "new").is_listening);
    }
}
