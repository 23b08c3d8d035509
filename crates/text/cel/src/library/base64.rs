//! Base64, standard alphabet.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::arg;
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::Registry;
use crate::value::Value;

pub(super) fn register(r: &mut Registry) {
    r.add("base64.encode", "(bytes) -> string", Cost::Fixed(1), |_, args| {
        Ok(Value::string(encode(arg!(args, 0, Bytes))))
    });
    r.add("base64.decode", "(string) -> bytes", Cost::Fixed(1), |_, args| {
        let text = arg!(args, 0, String);
        match decode(text).or_else(|| STANDARD_NO_PAD.decode(text.as_bytes()).ok()) {
            Some(bytes) => Ok(Value::Bytes(bytes.into())),
            None => Err(Error::invalid("illegal base64 data")),
        }
    });
}

/// Encodes with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes padded text; line ends are skipped, as Go does.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    if text.contains(['\r', '\n']) {
        return STANDARD.decode(text.replace(['\r', '\n'], "")).ok();
    }
    STANDARD.decode(text).ok()
}
