//! NetworkAttachmentDefinitions.

use fairway_machines_plan::attachment;
use serde_json::Value;

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
