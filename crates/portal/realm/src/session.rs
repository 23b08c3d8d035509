//! Sessions as their objects have them: of a browser, of a program that acts for somebody, of a device that waits.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::time;

/// What a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Kind {
    /// A browser that has signed in.
    Browser,
    /// A program that acts for somebody.
    #[default]
    Grant,
    /// A device that waits to be confirmed.
    Device,
}

/// `spec` of a Session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Session {
    /// What it is.
    pub kind: Kind,
    /// Whose.
    pub user: String,
    /// Whose, also if another one takes the name.
    #[serde(rename = "userUID")]
    pub user_uid: String,
    /// The program.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client: String,
    /// What the program asked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// What it wants to find in its token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// The browser's session that it came from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub browser: String,
    /// Of the browser's cookie.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub secret_digest: String,
    /// How the user proved who he is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// When.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub authenticated_at: String,
    /// When it ends.
    pub expires_at: String,
    /// How often its refresh token was renewed.
    pub generation: i64,
    /// Its code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The device that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
}

/// An authorization code.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Code {
    /// Of the code.
    pub digest: String,
    /// PKCE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub challenge: Option<String>,
    /// Where it was sent.
    #[serde(rename = "redirectURI")]
    pub redirect_uri: String,
    /// When it is void.
    pub expires_at: String,
    /// Whether it was used.
    pub redeemed: bool,
}

/// A device that waits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Device {
    /// Of its code.
    pub digest: String,
    /// What the user types.
    pub user_code: String,
    /// Whether he confirmed.
    pub approved: bool,
    /// Whether he refused.
    pub denied: bool,
    /// When it last asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_poll: Option<String>,
}

impl Session {
    /// From its object; none if it is not one.
    pub fn read(object: &Value) -> Option<Self> {
        serde_json::from_value(object.get("spec")?.clone()).ok()
    }

    /// Whether its time is up. A time that cannot be read is up.
    pub fn is_over(&self, now: i64) -> bool {
        time::read(&self.expires_at).is_none_or(|end| now >= end)
    }

    /// When the user proved who he is.
    pub fn authenticated_at(&self) -> i64 {
        time::read(&self.authenticated_at).unwrap_or(0)
    }

    /// Whether the program asked for something.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scope.split(' ').any(|it| it == scope)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_is_what_its_object_says() {
        let session = Session {
            user: "alice".to_owned(),
            expires_at: time::write(100),
            code: Some(Code::default()),
            scope: "openid groups".to_owned(),
            ..Session::default()
        };
        let object = json!({"spec": session});
        assert_eq!(Session::read(&object).unwrap(), session);
        assert_eq!(object["spec"]["code"]["redirectURI"], "");
        assert_eq!(object["spec"]["kind"], "Grant");
        assert!(session.has_scope("groups") && !session.has_scope("group"));
        assert!(!session.is_over(99) && session.is_over(100));
        assert!(Session::default().is_over(0), "without an end it has ended");
        assert_eq!(Session::read(&json!({})), None);
    }
}
