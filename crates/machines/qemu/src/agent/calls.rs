//! Calls of the guest agent with their types.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Agent, AgentError};

/// How long freezing file systems may take: everything that waits is written first.
const FREEZE: Duration = Duration::from_secs(60);
/// More entries than this of a list are not kept.
const MAX_LIST: usize = 1024;

/// What system the guest is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct OsInfo {
    /// Such as `debian`.
    pub id: String,
    /// Such as `Debian GNU/Linux`.
    pub name: String,
    /// For people.
    pub pretty_name: String,
    /// Such as `12 (bookworm)`.
    pub version: String,
    /// Such as `12`.
    pub version_id: String,
    /// The kernel.
    pub kernel_release: String,
    /// The kernel's build.
    pub kernel_version: String,
    /// The processor.
    pub machine: String,
}

/// A network interface of the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The guest's name for it.
    pub name: String,
    /// Its hardware address.
    pub mac: Option<String>,
    /// Its addresses with the length of their prefix.
    pub addresses: Vec<(String, u8)>,
}

/// What has passed a network interface in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Packets that were damaged.
    pub errors: u64,
    /// Packets that were dropped.
    pub dropped: u64,
}

/// What has passed a network interface of the guest, by its own account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    /// The hardware address of the interface.
    pub mac: String,
    /// What came in.
    pub received: Count,
    /// What went out.
    pub sent: Count,
}

/// Somebody who is logged in.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct User {
    /// The name.
    pub user: String,
    /// Since when, in seconds since 1970.
    pub login_time: f64,
}

/// A file system of the guest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Filesystem {
    /// The device.
    pub name: String,
    /// Where it is mounted.
    pub mountpoint: String,
    /// Such as `ext4`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Bytes that are in use.
    #[serde(default)]
    pub used_bytes: u64,
    /// Bytes that there are.
    #[serde(default)]
    pub total_bytes: u64,
}

/// How a program in the guest ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// Its code; nothing if it was killed.
    pub code: Option<i64>,
    /// What it printed, as far as the agent kept it.
    pub output: Vec<u8>,
    /// What it printed as errors.
    pub errors: Vec<u8>,
}

impl Agent {
    /// Whether the agent is there.
    pub async fn ping(&self) -> Result<(), AgentError> {
        self.call("guest-ping", Value::Null).await.map(|_| ())
    }

    /// The agent's version.
    pub async fn version(&self) -> Result<String, AgentError> {
        let info = self.call("guest-info", Value::Null).await?;
        Ok(info["version"].as_str().unwrap_or_default().to_owned())
    }

    /// What system the guest is.
    pub async fn os_info(&self) -> Result<OsInfo, AgentError> {
        typed(self.call("guest-get-osinfo", Value::Null).await?)
    }

    /// The guest's name for itself.
    pub async fn host_name(&self) -> Result<String, AgentError> {
        let name = self.call("guest-get-host-name", Value::Null).await?;
        Ok(name["host-name"].as_str().unwrap_or_default().to_owned())
    }

    /// The guest's network interfaces.
    pub async fn interfaces(&self) -> Result<Vec<Interface>, AgentError> {
        let list = self.call("guest-network-get-interfaces", Value::Null).await?;
        let list = list.as_array().map_or(&[][..], Vec::as_slice);
        let interface = |entry: &Value| {
            let addresses = entry["ip-addresses"].as_array().map_or(&[][..], Vec::as_slice);
            let address = |entry: &Value| {
                let prefix = entry["prefix"]
                    .as_u64()
                    .and_then(|prefix| u8::try_from(prefix).ok())?;
                Some((entry["ip-address"].as_str()?.to_owned(), prefix))
            };
            Some(Interface {
                name: entry["name"].as_str()?.to_owned(),
                mac: entry["hardware-address"].as_str().map(str::to_owned),
                addresses: addresses.iter().take(MAX_LIST).filter_map(address).collect(),
            })
        };
        Ok(list.iter().take(MAX_LIST).filter_map(interface).collect())
    }

    /// What has passed the guest's network interfaces.
    pub async fn traffic(&self) -> Result<Vec<Traffic>, AgentError> {
        let list = self.call("guest-network-get-interfaces", Value::Null).await?;
        let list = list.as_array().map_or(&[][..], Vec::as_slice);
        let traffic = |entry: &Value| {
            let said = entry.get("statistics")?;
            let count = |prefix: &str| {
                let number = |word: &str| said[format!("{prefix}-{word}")].as_u64().unwrap_or_default();
                Count {
                    bytes: number("bytes"),
                    packets: number("packets"),
                    errors: number("errs"),
                    dropped: number("dropped"),
                }
            };
            Some(Traffic {
                mac: entry["hardware-address"].as_str()?.to_owned(),
                received: count("rx"),
                sent: count("tx"),
            })
        };
        Ok(list.iter().take(MAX_LIST).filter_map(traffic).collect())
    }

    /// Who is logged in.
    pub async fn users(&self) -> Result<Vec<User>, AgentError> {
        typed(self.call("guest-get-users", Value::Null).await?)
    }

    /// The guest's file systems.
    pub async fn filesystems(&self) -> Result<Vec<Filesystem>, AgentError> {
        typed(self.call("guest-get-fsinfo", Value::Null).await?)
    }

    /// Runs a program in the guest and waits for its end.
    pub async fn execute(
        &self,
        program: &str,
        arguments: &[String],
        input: Option<&[u8]>,
        timeout: Duration,
    ) -> Result<Executed, AgentError> {
        let end = Instant::now() + timeout;
        let mut call = json!({"path": program, "arg": arguments, "capture-output": true});
        if let Some(input) = input {
            call["input-data"] = STANDARD.encode(input).into();
        }
        let started = self.call("guest-exec", call).await?;
        let pid = started["pid"].clone();
        let mut pause = Duration::from_millis(20);
        loop {
            let status = self.call("guest-exec-status", json!({"pid": pid})).await?;
            if status["exited"] == true {
                let bytes = |name: &str| {
                    let text = status[name].as_str().unwrap_or_default();
                    STANDARD.decode(text).unwrap_or_default()
                };
                return Ok(Executed {
                    code: status["exitcode"].as_i64(),
                    output: bytes("out-data"),
                    errors: bytes("err-data"),
                });
            }
            if Instant::now() >= end {
                return Err(AgentError::Timeout {
                    command: format!("guest-exec of {program}"),
                    seconds: timeout.as_secs(),
                });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    /// Writes everything to the disks and lets nothing be written after; how many file systems. Whoever freezes has to thaw.
    pub async fn freeze(&self) -> Result<u64, AgentError> {
        let count = self
            .call_within("guest-fsfreeze-freeze", Value::Null, FREEZE)
            .await?;
        Ok(count.as_u64().unwrap_or_default())
    }

    /// Lets the guest write again; how many file systems.
    pub async fn thaw(&self) -> Result<u64, AgentError> {
        let count = self
            .call_within("guest-fsfreeze-thaw", Value::Null, FREEZE)
            .await?;
        Ok(count.as_u64().unwrap_or_default())
    }

    /// Whether the guest's file systems are frozen.
    pub async fn is_frozen(&self) -> Result<bool, AgentError> {
        let status = self.call("guest-fsfreeze-status", Value::Null).await?;
        Ok(status == "frozen")
    }

    /// The SSH keys with which a user can log in.
    pub async fn ssh_keys(&self, user: &str) -> Result<Vec<String>, AgentError> {
        let answer = self
            .call("guest-ssh-get-authorized-keys", json!({"username": user}))
            .await?;
        let keys = answer["keys"].as_array().map_or(&[][..], Vec::as_slice);
        let keys = keys.iter().take(MAX_LIST).filter_map(Value::as_str);
        Ok(keys.map(str::to_owned).collect())
    }

    /// Lets a user log in with these keys, too; with `replace` with these alone.
    pub async fn set_ssh_keys(&self, user: &str, keys: &[String], replace: bool) -> Result<(), AgentError> {
        let arguments = json!({"username": user, "keys": keys, "reset": replace});
        self.call("guest-ssh-add-authorized-keys", arguments)
            .await
            .map(|_| ())
    }

    /// Sets the guest's clock: nanoseconds since 1970.
    pub async fn set_time(&self, nanoseconds: i64) -> Result<(), AgentError> {
        self.call("guest-set-time", json!({"time": nanoseconds}))
            .await
            .map(|_| ())
    }

    /// Sets a user's password.
    pub async fn set_password(&self, user: &str, password: &str) -> Result<(), AgentError> {
        let password = STANDARD.encode(password);
        let arguments = json!({"username": user, "password": password, "crypted": false});
        self.call("guest-set-user-password", arguments).await.map(|_| ())
    }

    /// Asks the guest to switch itself off, or to start anew.
    pub async fn shutdown(&self, reboot: bool) -> Result<(), AgentError> {
        let mode = if reboot { "reboot" } else { "powerdown" };
        self.tell("guest-shutdown", json!({"mode": mode})).await
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, AgentError> {
    serde_json::from_value(value).map_err(|error| AgentError::Protocol(error.to_string()))
}
