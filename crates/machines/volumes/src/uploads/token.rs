//! Tokens: who holds one may send a file into one claim, for some minutes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fairway_controller::WorkspaceId;
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use ring::hmac;
use ring::rand::SystemRandom;
use serde::{Deserialize, Serialize};

use super::Refusal;

/// As long as CDI's are good. A file that began to arrive in time may arrive as long as it takes.
const GOOD_FOR: SignedDuration = SignedDuration::from_mins(5);
/// No token is longer.
const MAX_TOKEN: usize = 4096;

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Token {
    workspace: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// In seconds since 1970.
    until: i64,
}

impl Token {
    pub(super) fn new(
        workspace: &WorkspaceId,
        namespace: &str,
        name: &str,
        uid: &str,
        now: Timestamp,
    ) -> Self {
        Self {
            workspace: workspace.as_str().to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            until: now.as_second().saturating_add(GOOD_FOR.as_secs()),
        }
    }

    pub(super) fn workspace(&self) -> Result<WorkspaceId, Refusal> {
        WorkspaceId::parse(&self.workspace)
            .map_err(|error| Refusal(StatusCode::BAD_REQUEST, error.to_string()))
    }
}

/// What tokens are signed with.
pub(super) struct Key(hmac::Key);

impl Key {
    /// A key that nobody knows; nothing if there is no randomness.
    pub(super) fn new() -> Option<Self> {
        hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .ok()
            .map(Self)
    }

    /// A token as it is handed out.
    pub(super) fn seal(&self, token: &Token) -> String {
        let said = URL_SAFE_NO_PAD.encode(serde_json::to_vec(token).unwrap_or_default());
        let signature = hmac::sign(&self.0, said.as_bytes());
        format!("{said}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// What a token says, if it is ours and still good.
    pub(super) fn open(&self, text: &str, now: Timestamp) -> Result<Token, &'static str> {
        const WRONG: &str = "the token is none of this server's; ask for a new one";
        if text.len() > MAX_TOKEN {
            return Err(WRONG);
        }
        let (said, signature) = text.split_once('.').ok_or(WRONG)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| WRONG)?;
        hmac::verify(&self.0, said.as_bytes(), &signature).map_err(|_| WRONG)?;
        let said = URL_SAFE_NO_PAD.decode(said).map_err(|_| WRONG)?;
        let token: Token = serde_json::from_slice(&said).map_err(|_| WRONG)?;
        match now.as_second() < token.until {
            true => Ok(token),
            false => Err("the token has expired; ask for a new one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_a_while_and_nobody_elses() {
        let (key, other) = (Key::new().unwrap(), Key::new().unwrap());
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let token = Token::new(&WorkspaceId::root(), "shop", "disk", "u1", now);
        let text = key.seal(&token);
        assert_eq!(key.open(&text, now), Ok(token));
        assert!(
            key.open(&text, now + SignedDuration::from_mins(6))
                .unwrap_err()
                .contains("expired")
        );
        assert!(other.open(&text, now).is_err());
        let (said, signature) = text.split_once('.').unwrap();
        for wrong in [
            String::new(),
            said.to_owned(),
            format!("{said}."),
            format!("{said}x.{signature}"),
            format!("{signature}.{said}"),
            "x".repeat(5000),
        ] {
            assert!(key.open(&wrong, now).is_err(), "{wrong}");
        }
    }
}
