//! What is kept of objects: the few fields that decisions here read, parsed once.
//!
//! A form that cannot be read is kept as nothing of the kind, and decisions treat it as such; the API has checked types
//! before, so this is a matter of objects that were stored by somebody else.

mod attachment;
mod instance;
mod seen;
mod service;
mod slice;

use fairway_machines_frames::packet::{SCTP, TCP, UDP};
use serde_json::Value;

pub(crate) use attachment::Attachment;
#[cfg(test)]
pub(crate) use instance::PodCard;
pub(crate) use instance::{Instance, OtherCard};
pub(crate) use seen::Seen;
pub(crate) use service::{HOST_PORTS, PortTarget, Service, ServicePort, ServiceType};
pub(crate) use slice::{SERVICE_NAME, Slice};

/// A port that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedPort {
    pub(crate) name: String,
    pub(crate) protocol: u8,
    pub(crate) port: u16,
}

/// The number of a protocol; nothing said means TCP.
pub(crate) fn protocol(text: &str) -> Option<u8> {
    match text {
        "" | "TCP" => Some(TCP),
        "UDP" => Some(UDP),
        "SCTP" => Some(SCTP),
        _ => None,
    }
}

/// A protocol as objects write it.
pub(crate) fn protocol_name(number: u8) -> &'static str {
    match number {
        UDP => "UDP",
        SCTP => "SCTP",
        _ => "TCP",
    }
}

/// A map of strings in an object.
pub(crate) fn strings(object: &Value, pointer: &str) -> Value {
    match object.pointer(pointer) {
        Some(map @ Value::Object(_)) => map.clone(),
        _ => Value::Object(serde_json::Map::new()),
    }
}

/// A text in an object.
pub(crate) fn text(object: &Value, pointer: &str) -> String {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}

/// Whether something in an object is said to be so.
pub(crate) fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

/// A list in an object.
pub(crate) fn list<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    let found = object.pointer(pointer).and_then(Value::as_array);
    found.map_or(&[], Vec::as_slice)
}

/// The number of a port in an object.
pub(crate) fn port(object: &Value, field: &str) -> Option<u16> {
    let number = object.get(field)?.as_u64()?;
    u16::try_from(number).ok().filter(|port| *port != 0)
}
