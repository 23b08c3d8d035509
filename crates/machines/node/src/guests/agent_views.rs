//! What the agent in a guest says, in the form of KubeVirt's views.

use fairway_machines_qemu::Agent;
use fairway_machines_qemu::agent::AgentError;
use serde_json::{Map, Value, json};

/// More entries than this are not told.
const MAX_ITEMS: usize = 1024;
const API_VERSION: &str = "kubevirt.io/v1";

/// `VirtualMachineInstanceGuestAgentInfo`.
pub(super) async fn info(agent: &Agent) -> Result<Value, AgentError> {
    let about = agent.call("guest-info", Value::Null).await?;
    // An agent need not know everything.
    let system = agent
        .call("guest-get-osinfo", Value::Null)
        .await
        .unwrap_or_default();
    let zone = agent
        .call("guest-get-timezone", Value::Null)
        .await
        .unwrap_or_default();
    let name = agent.host_name().await.unwrap_or_default();
    let users = agent
        .call("guest-get-users", Value::Null)
        .await
        .unwrap_or_default();
    let disks = agent
        .call("guest-get-fsinfo", Value::Null)
        .await
        .unwrap_or_default();
    let is_frozen = agent.is_frozen().await.unwrap_or(false);
    let mut info = json!({
        "apiVersion": API_VERSION, "kind": "VirtualMachineInstanceGuestAgentInfo",
        "guestAgentVersion": about["version"],
        "supportedCommands": commands(&about),
        "hostname": name,
        "os": os(&system),
        "timezone": timezone(&zone),
        "userList": items(&users, user),
        "fsInfo": {"disks": items(&disks, filesystem)},
    });
    if is_frozen {
        info["fsFreezeStatus"] = "frozen".into();
    }
    Ok(info)
}

/// `VirtualMachineInstanceGuestOSUserList`.
pub(super) async fn users(agent: &Agent) -> Result<Value, AgentError> {
    let users = agent.call("guest-get-users", Value::Null).await?;
    Ok(json!({
        "apiVersion": API_VERSION, "kind": "VirtualMachineInstanceGuestOSUserList", "metadata": {},
        "items": items(&users, user),
    }))
}

/// `VirtualMachineInstanceFileSystemList`.
pub(super) async fn filesystems(agent: &Agent) -> Result<Value, AgentError> {
    let found = agent.call("guest-get-fsinfo", Value::Null).await?;
    Ok(json!({
        "apiVersion": API_VERSION, "kind": "VirtualMachineInstanceFileSystemList", "metadata": {},
        "items": items(&found, filesystem),
    }))
}

fn items(list: &Value, one: fn(&Value) -> Value) -> Vec<Value> {
    let list = list.as_array().into_iter().flatten();
    list.take(MAX_ITEMS).map(one).collect()
}

fn commands(about: &Value) -> Vec<Value> {
    let known = about["supported_commands"].as_array().into_iter().flatten();
    let known = known.take(MAX_ITEMS);
    known
        .map(|it| json!({"name": it["name"], "enabled": it["enabled"]}))
        .collect()
}

/// As the status has it.
fn os(system: &Value) -> Value {
    let mut info = Map::new();
    for (field, of_agent) in [
        ("name", "name"),
        ("kernelRelease", "kernel-release"),
        ("version", "version"),
        ("prettyName", "pretty-name"),
        ("versionId", "version-id"),
        ("kernelVersion", "kernel-version"),
        ("machine", "machine"),
        ("id", "id"),
    ] {
        if let Some(text) = system[of_agent].as_str() {
            info.insert(field.to_owned(), text.into());
        }
    }
    Value::Object(info)
}

fn timezone(zone: &Value) -> String {
    match (zone["zone"].as_str(), zone["offset"].as_i64()) {
        (Some(name), Some(offset)) => format!("{name}, {offset}"),
        (None, Some(offset)) => offset.to_string(),
        _ => String::new(),
    }
}

fn user(found: &Value) -> Value {
    let mut user = json!({"userName": found["user"], "loginTime": found["login-time"]});
    if let Some(domain) = found["domain"].as_str() {
        user["domain"] = domain.into();
    }
    user
}

fn filesystem(found: &Value) -> Value {
    let disk = |disk: &Value| {
        let mut shown = json!({"busType": disk["bus-type"]});
        if let Some(serial) = disk["serial"].as_str() {
            shown["serial"] = serial.into();
        }
        shown
    };
    let mut shown = json!({
        "diskName": found["name"], "mountPoint": found["mountpoint"], "fileSystemType": found["type"],
        "usedBytes": found["used-bytes"].as_u64().unwrap_or_default(),
        "totalBytes": found["total-bytes"].as_u64().unwrap_or_default(),
    });
    if let Some(disks) = found["disk"].as_array().filter(|it| !it.is_empty()) {
        shown["disk"] = disks.iter().take(MAX_ITEMS).map(disk).collect();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_have_upstreams_form() {
        assert_eq!(
            filesystem(&json!({
                "name": "vda2", "mountpoint": "/", "type": "ext4", "used-bytes": 5, "total-bytes": 9,
                "disk": [{"bus-type": "virtio", "serial": "s", "pci-controller": {}}],
            })),
            json!({
                "diskName": "vda2", "mountPoint": "/", "fileSystemType": "ext4", "usedBytes": 5, "totalBytes": 9,
                "disk": [{"busType": "virtio", "serial": "s"}],
            })
        );
        assert_eq!(
            user(&json!({"user": "ada", "login-time": 1.5})),
            json!({"userName": "ada", "loginTime": 1.5})
        );
        assert_eq!(timezone(&json!({"zone": "UTC", "offset": 0})), "UTC, 0");
        assert_eq!(timezone(&Value::Null), "");
        assert_eq!(
            os(&json!({"id": "tiny", "kernel-release": "6"})),
            json!({"kernelRelease": "6", "id": "tiny"})
        );
    }
}
