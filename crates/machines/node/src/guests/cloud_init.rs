//! What cloud-init says of itself in a guest: the files that it keeps for others, read by the agent. They are asked for rather than the
//! program, which takes seconds in an emulated guest and does not know JSON in every version.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_machines_qemu::Agent;
use fairway_machines_qemu::agent::AgentError;
use serde_json::{Value, json};

/// How far it is, and what came of it, which is there in the end.
const FILES: [(&str, &str); 2] = [
    ("status", "/run/cloud-init/status.json"),
    ("result", "/run/cloud-init/result.json"),
];
/// The most of a file that is read. The guest may be hostile.
const MOST: usize = 64 << 10;

/// Both files, as they are; `null` for one that is not there, or is no JSON.
pub(super) async fn status(agent: &Agent) -> Result<Value, AgentError> {
    let mut told = json!({});
    for (name, path) in FILES {
        let text = read(agent, path).await?;
        told[name] = text
            .and_then(|it| serde_json::from_slice(&it).ok())
            .unwrap_or_default();
    }
    Ok(told)
}

/// A file of the guest; nothing if there is no such file.
async fn read(agent: &Agent, path: &str) -> Result<Option<Vec<u8>>, AgentError> {
    let opened = agent
        .call("guest-file-open", json!({"path": path, "mode": "r"}))
        .await;
    let handle = match opened {
        Ok(handle) => handle,
        Err(AgentError::Refused { description, .. }) if is_absent(&description) => return Ok(None),
        Err(error) => return Err(error),
    };
    let answer = agent
        .call("guest-file-read", json!({"handle": handle, "count": MOST}))
        .await;
    // Whatever came of it: an agent that was left with open files runs out of them.
    let closed = agent.call("guest-file-close", json!({"handle": handle})).await;
    let answer = answer?;
    closed?;
    let text = answer["buf-b64"].as_str().unwrap_or_default();
    Ok(Some(STANDARD.decode(text).unwrap_or_default()))
}

/// Whether the agent says that a file is not there, rather than that it does not open any.
fn is_absent(description: &str) -> bool {
    description.contains("No such file or directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_no_fault() {
        for (description, expected) in [
            (
                "failed to open file '/run/cloud-init/result.json' (mode: 'r'): No such file or directory",
                true,
            ),
            ("Command guest-file-open has been disabled", false),
            (
                "failed to open file '/run/x' (mode: 'r'): Permission denied",
                false,
            ),
        ] {
            assert_eq!(is_absent(description), expected, "{description}");
        }
    }
}
