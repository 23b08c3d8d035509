//! `accessCredentials`: keys and passwords, and the way they take into the guest.

use serde::Deserialize;

use super::Present;

/// A key or a password.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct AccessCredential {
    /// Keys that may log in.
    pub ssh_public_key: Option<SshPublicKey>,
    /// Passwords by user.
    pub user_password: Option<UserPassword>,
}

/// Keys that may log in.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct SshPublicKey {
    /// Where they are.
    pub source: SecretSource,
    /// Which way they take.
    pub propagation_method: Propagation,
}

/// Passwords by user.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct UserPassword {
    /// Where they are.
    pub source: SecretSource,
    /// Which way they take.
    pub propagation_method: Propagation,
}

/// Where credentials are.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct SecretSource {
    /// A Secret of the namespace.
    pub secret: Option<SecretName>,
}

impl SecretSource {
    /// The Secret's name, if one is given.
    pub fn name(&self) -> Option<&str> {
        let name = self.secret.as_ref().map(|it| it.secret_name.as_str());
        name.filter(|it| !it.is_empty())
    }
}

/// The name of a Secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct SecretName {
    /// The name.
    pub secret_name: String,
}

/// The way into the guest.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Propagation {
    /// In the ConfigDrive seed.
    pub config_drive: Option<Present>,
    /// In the NoCloud seed.
    pub no_cloud: Option<Present>,
    /// Through the agent in the guest.
    pub qemu_guest_agent: Option<GuestAgentUsers>,
}

/// Whose keys the agent sets.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct GuestAgentUsers {
    /// Users of the guest.
    pub users: Vec<String>,
}
