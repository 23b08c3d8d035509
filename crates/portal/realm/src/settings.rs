//! Settings of a realm, from its Realm object; without one the defaults hold.

use std::sync::Arc;

use serde_json::Value;

use crate::external::IdentityProvider;

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// On the sign-in page; empty: the name of the realm.
    pub display_name: String,
    /// How long an access token is valid, in seconds.
    pub access_token: i64,
    /// How long a sign-in lasts, in seconds.
    pub session: i64,
    /// After so many wrong attempts in a row one waits.
    pub lockout_attempts: u32,
    /// So many seconds.
    pub lockout: i64,
    /// The shortest password.
    pub password_min: usize,
    /// Whether a one-time code is needed.
    pub require_totp: bool,
    /// Other providers that people may sign in with.
    pub identity_providers: Arc<[IdentityProvider]>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            display_name: String::new(),
            access_token: 300,
            session: 14 * 86_400,
            lockout_attempts: 10,
            lockout: 300,
            password_min: 12,
            require_totp: false,
            identity_providers: Arc::default(),
        }
    }
}

impl Settings {
    /// Those of an object. What its schema would refuse falls back to the bounds.
    pub fn read(realm: &Value) -> Self {
        let (spec, defaults) = (&realm["spec"], Self::default());
        let number = |field: &str, default: i64, least: i64, most: i64| {
            spec[field]
                .as_i64()
                .map_or(default, |given| given.clamp(least, most))
        };
        Self {
            display_name: spec["displayName"].as_str().unwrap_or_default().to_owned(),
            access_token: number("accessTokenSeconds", defaults.access_token, 60, 3_600),
            session: number("sessionSeconds", defaults.session, 300, 31_536_000),
            lockout_attempts: u32::try_from(number("lockoutAttempts", 10, 3, 100)).unwrap_or(10),
            lockout: number("lockoutSeconds", defaults.lockout, 1, 86_400),
            password_min: usize::try_from(number("passwordMinLength", 12, 8, 128)).unwrap_or(12),
            require_totp: spec["requireTOTP"] == true,
            identity_providers: IdentityProvider::all(realm).into(),
        }
    }

    /// One of the other providers.
    pub fn identity_provider(&self, name: &str) -> Option<&IdentityProvider> {
        self.identity_providers.iter().find(|it| it.name == name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_have_defaults_and_bounds() {
        assert_eq!(Settings::read(&json!({})), Settings::default());
        let read = Settings::read(&json!({"spec": {
            "accessTokenSeconds": 5, "sessionSeconds": 600, "lockoutAttempts": 3, "lockoutSeconds": 60,
            "passwordMinLength": 1000, "requireTOTP": true, "displayName": "Acme",
        }}));
        let expected = Settings {
            display_name: "Acme".to_owned(),
            access_token: 60,
            session: 600,
            lockout_attempts: 3,
            lockout: 60,
            password_min: 128,
            require_totp: true,
            identity_providers: Arc::default(),
        };
        assert_eq!(read, expected);
    }
}
