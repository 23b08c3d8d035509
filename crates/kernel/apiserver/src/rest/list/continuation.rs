//! Continue tokens: where the next page begins, and at which revision.
//!
//! The form is upstream's (base64 of a small JSON object), so that tools that look inside see what they expect. A token
//! without a revision continues from the same key with whatever is current: upstream offers it when the revision of
//! the first page has been compacted.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::status::ApiError;

/// Like Go, lenient about the bits after the last byte.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::RequireNone),
);

/// A place in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Continuation {
    /// The revision of the first page; `None`: an inconsistent continuation.
    pub revision: Option<u64>,
    /// The last key that has been sent.
    pub after: Box<str>,
}

impl Continuation {
    /// As a token.
    pub(crate) fn encode(&self) -> String {
        let revision: Value = self.revision.map_or_else(|| json!(-1), |r| json!(r));
        URL_SAFE_NO_PAD
            .encode(json!({"v": "meta.k8s.io/v1", "rv": revision, "start": self.after}).to_string())
    }

    /// From a token.
    pub(crate) fn decode(token: &str) -> Result<Self, ApiError> {
        let refuse = |why: &str| {
            ApiError::bad_request(format!(
                "invalid continue token: continue key is not valid{}{why}",
                if why.is_empty() { "" } else { ": " }
            ))
        };
        let invalid = || refuse("");
        let bytes = LENIENT.decode(token).map_err(|_| invalid())?;
        let value: Value = serde_json::from_slice(&bytes)
            .map_err(|_| refuse(&fairway_text_yaml::json_fault(&bytes).unwrap_or_default()))?;
        if value["v"] != "meta.k8s.io/v1" {
            return Err(refuse(&format!(
                "server does not recognize this encoded version {}",
                value["v"].as_str().unwrap_or("")
            )));
        }
        let after = value["start"]
            .as_str()
            .filter(|s| !s.is_empty())
            .ok_or_else(invalid)?;
        let revision = match value["rv"].as_i64() {
            Some(-1) => None,
            Some(revision) if revision > 0 => Some(revision.unsigned_abs()),
            _ => return Err(invalid()),
        };
        Ok(Self {
            revision,
            after: after.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_and_garbage_does_not() {
        for revision in [Some(7), None] {
            let token = Continuation {
                revision,
                after: "root/a/b".into(),
            };
            assert_eq!(Continuation::decode(&token.encode()), Ok(token));
        }
        for wrong in ["", "!", "e30", "bnVsbA"] {
            assert_eq!(
                Continuation::decode(wrong).map_err(|e| e.code),
                Err(400),
                "{wrong}"
            );
        }
    }
}
