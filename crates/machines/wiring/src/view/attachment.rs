//! NetworkAttachmentDefinitions.

use fairway_controller::WorkspaceId;
use fairway_machines_frames::topology::SegmentId;
use fairway_machines_plan::attachment;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::text;

/// What is kept of a definition: a layer-2 network, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attachment(pub(crate) Result<Bridge, String>);

/// A bridge, and a VLAN in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Bridge {
    pub(crate) name: String,
    pub(crate) vlan: Option<u16>,
}

impl Attachment {
    /// Reads an object.
    pub(crate) fn read(object: &Value) -> Self {
        let name = text(object, "/metadata/name");
        let read = attachment::read(&name, &text(object, "/spec/config"));
        Self(match read {
            Err(error) => Err(error.to_string()),
            Ok(found) => match found.unserved {
                Some(why) => Err(format!("NetworkAttachmentDefinition {name}: {why}")),
                None => Ok(Bridge {
                    name: found.segment,
                    vlan: found.vlan,
                }),
            },
        })
    }
}

impl Bridge {
    /// What nodes call the network among each other. It follows from what it is called and whose it is, so that nobody has to
    /// give out numbers; a workspace cannot choose names that make it another one's.
    pub(crate) fn segment(&self, workspace: &WorkspaceId) -> SegmentId {
        let mut hash = Sha256::new();
        for part in [workspace.as_str(), &self.name] {
            // Lengths keep `a`+`bc` and `ab`+`c` apart.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        // No VLAN has this number.
        hash.update(self.vlan.unwrap_or(u16::MAX).to_be_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        SegmentId(digest.first_chunk().copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_network_is_its_workspaces_own() {
        let mut seen = BTreeSet::new();
        for (workspace, name, vlan) in [
            ("root", "br1", None),
            ("root", "br1", Some(7)),
            ("root", "br1", Some(8)),
            ("root", "br2", Some(7)),
            ("roo", "tbr1", None),
            ("team", "br1", Some(7)),
        ] {
            let bridge = Bridge {
                name: name.to_owned(),
                vlan,
            };
            let segment = bridge.segment(&WorkspaceId::parse(workspace).unwrap());
            assert_eq!(segment, bridge.segment(&WorkspaceId::parse(workspace).unwrap()));
            assert!(seen.insert(segment), "{workspace} {name} {vlan:?}");
        }
    }
}
