//! Networks that a NetworkAttachmentDefinition describes, in CNI's words.
//!
//! The switch knows segments, each with an optional VLAN: that is what a bridge is to it. Networks of other types are
//! accepted, as their manifests are right, and say with a condition that machines cannot be connected to them here.

use serde_json::Value;
use thiserror::Error;

use crate::view::Condition;

/// Types that are bridges.
const BRIDGES: [&str; 3] = ["bridge", "cnv-bridge", "cni-bridge"];
/// What the first plugin can say of a bridge, and nothing here follows.
const IDLE: [(&str, &str); 6] = [
    (
        "isGateway",
        "the segment has no gateway; a machine on it can be one",
    ),
    (
        "ipMasq",
        "nothing leads out of the segment; a machine on it can be a gateway",
    ),
    ("vlanTrunk", "a card is in one VLAN, that of vlan"),
    ("promiscMode", "a card gets what is for it, and what is for all"),
    ("portIsolation", "machines on the segment reach each other"),
    ("mtu", "a guest's card has 1500, unless the guest says otherwise"),
];
/// The highest number of a VLAN.
const MAX_VLAN: u64 = 4094;

/// A network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The segment: the bridge's name, or the object's if the bridge has none.
    pub segment: String,
    /// The VLAN in it.
    pub vlan: Option<u16>,
    /// What is said and has no effect.
    pub remarks: Vec<String>,
    /// Why machines cannot be connected to it.
    pub unserved: Option<String>,
}

/// Why a text does not describe a network.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AttachmentError {
    /// It is not JSON.
    #[error("spec.config of NetworkAttachmentDefinition {name} is not JSON: {reason}")]
    Json {
        /// The object.
        name: String,
        /// Why.
        reason: String,
    },
    /// It has no type.
    #[error(
        "spec.config of NetworkAttachmentDefinition {name} names no type; a bridge says \"type\": \"bridge\""
    )]
    NoType {
        /// The object.
        name: String,
    },
    /// There is no such VLAN.
    #[error(
        "spec.config of NetworkAttachmentDefinition {name}: vlan must be between 0 and {MAX_VLAN}, not {vlan}"
    )]
    Vlan {
        /// The object.
        name: String,
        /// What it says.
        vlan: String,
    },
}

/// Reads `spec.config` of an object.
pub fn read(name: &str, config: &str) -> Result<Attachment, AttachmentError> {
    let named = || name.to_owned();
    let config: Value = serde_json::from_str(config).map_err(|error| AttachmentError::Json {
        name: named(),
        reason: error.to_string(),
    })?;
    // Of a list of plugins the first makes the network; the others tune it.
    let main = config["plugins"].get(0).unwrap_or(&config);
    let kind = main["type"].as_str().filter(|it| !it.is_empty());
    let kind = kind.ok_or_else(|| AttachmentError::NoType { name: named() })?;
    let mut attachment = Attachment {
        segment: main["bridge"]
            .as_str()
            .filter(|it| !it.is_empty())
            .unwrap_or(name)
            .to_owned(),
        vlan: None,
        remarks: Vec::new(),
        unserved: None,
    };
    if !BRIDGES.contains(&kind) {
        attachment.unserved = Some(format!(
            "networks of type {kind} are not available; machines are connected to bridges"
        ));
        return Ok(attachment);
    }
    attachment.vlan = match &main["vlan"] {
        Value::Null => None,
        Value::Number(number) if number.as_u64().is_some_and(|it| it <= MAX_VLAN) => {
            // VLAN 0 is none.
            number
                .as_u64()
                .and_then(|it| u16::try_from(it).ok())
                .filter(|it| *it != 0)
        }
        other => {
            return Err(AttachmentError::Vlan {
                name: named(),
                vlan: other.to_string(),
            });
        }
    };
    if main["bridge"].as_str().is_some_and(|it| !it.is_empty()) {
        attachment.remarks.push(format!(
            "bridge names a network between machines: a bridge {} of the host is not joined",
            attachment.segment
        ));
    }
    if main["ipam"].as_object().is_some_and(|it| !it.is_empty()) {
        attachment
            .remarks
            .push("ipam has no effect: guests on a bridge get their addresses from it".to_owned());
    }
    let says = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Number(number) => number.as_u64() != Some(0),
        _ => true,
    };
    for (field, why) in IDLE.iter().filter(|(field, _)| says(&main[*field])) {
        if *field == "mtu" && main["mtu"] == 1500 {
            continue;
        }
        attachment.remarks.push(format!("{field} has no effect: {why}"));
    }
    // Asked for or not: a machine cannot say that it is another.
    if main["macspoofchk"] == false {
        attachment.remarks.push(
            "macspoofchk: false has no effect: a machine sends with the MAC address of its card only"
                .to_owned(),
        );
    }
    if config["plugins"].as_array().is_some_and(|it| it.len() > 1) {
        attachment
            .remarks
            .push("plugins after the first have no effect".to_owned());
    }
    Ok(attachment)
}

/// The condition for a status: whether machines can be connected.
pub fn condition(read: &Result<Attachment, AttachmentError>) -> Condition {
    match read {
        Err(error) => Condition::fails("Ready", "InvalidConfig", error.to_string()),
        Ok(Attachment {
            unserved: Some(why), ..
        }) => Condition::fails("Ready", "TypeNotServed", why.clone()),
        Ok(attachment) => Condition::holds("Ready", "Served", attachment.remarks.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        for (config, segment, vlan, status, message) in [
            (
                r#"{"type": "bridge", "bridge": "br1", "vlan": 100}"#,
                "br1",
                Some(100),
                "True",
                "bridge names a network between machines: a bridge br1 of the host is not joined",
            ),
            (r#"{"type": "bridge"}"#, "lan", None, "True", ""),
            (
                r#"{"type": "bridge", "vlan": 0, "ipam": {}}"#,
                "lan",
                None,
                "True",
                "",
            ),
            (
                r#"{"plugins": [{"type": "cnv-bridge", "bridge": "br0", "ipam": {"type": "dhcp"}}, {"type": "tuning"}]}"#,
                "br0",
                None,
                "True",
                "bridge names a network between machines: a bridge br0 of the host is not joined; ipam has no effect: guests on a bridge get their addresses from it; plugins after the first have no effect",
            ),
            (
                r#"{"type": "bridge", "mtu": 1500, "macspoofchk": true, "isGateway": false, "vlanTrunk": []}"#,
                "lan",
                None,
                "True",
                "",
            ),
            (
                r#"{"type": "bridge", "mtu": 9000, "macspoofchk": false, "isGateway": true, "ipMasq": true, "vlanTrunk": [{"id": 7}], "promiscMode": true, "portIsolation": true}"#,
                "lan",
                None,
                "True",
                "isGateway has no effect: the segment has no gateway; a machine on it can be one; \
                 ipMasq has no effect: nothing leads out of the segment; a machine on it can be a gateway; \
                 vlanTrunk has no effect: a card is in one VLAN, that of vlan; \
                 promiscMode has no effect: a card gets what is for it, and what is for all; \
                 portIsolation has no effect: machines on the segment reach each other; \
                 mtu has no effect: a guest's card has 1500, unless the guest says otherwise; \
                 macspoofchk: false has no effect: a machine sends with the MAC address of its card only",
            ),
            (
                r#"{"type": "macvlan", "master": "ens192", "vlan": 100}"#,
                "lan",
                None,
                "False",
                "networks of type macvlan are not available; machines are connected to bridges",
            ),
        ] {
            let found = read("lan", config);
            let told = condition(&found);
            assert_eq!(
                (told.status.as_str(), told.message.as_str()),
                (status, message),
                "{config}"
            );
            let found = found.unwrap();
            assert_eq!((found.segment.as_str(), found.vlan), (segment, vlan), "{config}");
        }
    }

    #[test]
    fn what_is_none() {
        for (config, reason) in [
            ("", "is not JSON"),
            ("[]", "names no type"),
            (r#"{"type": ""}"#, "names no type"),
            (
                r#"{"type": "bridge", "vlan": 4095}"#,
                "between 0 and 4094, not 4095",
            ),
            (r#"{"type": "bridge", "vlan": "ten"}"#, "not \"ten\""),
            (r#"{"type": "bridge", "vlan": -1}"#, "not -1"),
        ] {
            let told = condition(&read("lan", config));
            assert_eq!(told.reason, "InvalidConfig");
            assert!(told.message.contains(reason), "{}", told.message);
        }
    }
}
