//! Verbs about who may log in to a machine.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::power::Named;
use super::switch;

/// Options of `vm credentials`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Credentials {
    /// What to do.
    #[command(subcommand)]
    pub command: CredentialsCommand,
}

/// What can be done with credentials.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum CredentialsCommand {
    /// Let an SSH key in: into the Secret that the machine names for the user, or into a new one.
    AddSshKey(AddSshKey),
    /// Let an SSH key in no longer.
    RemoveSshKey(RemoveSshKey),
    /// Set a user's password, in the Secret that the machine names.
    SetPassword(SetPassword),
}

/// Whose credentials, and where they are.
#[derive(Args, Clone, Debug)]
pub(crate) struct Whose {
    /// The machine.
    #[command(flatten)]
    pub named: Named,
    /// The user in the guest.
    #[arg(short, long, value_name = "USER")]
    pub user: String,
    /// The Secret, if the machine names several.
    #[arg(long, value_name = "NAME")]
    pub secret: Option<String>,
    /// Change the Secret even if it is not the machine's own.
    #[arg(long = "force", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub is_forced: bool,
}

/// A public key.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct Key {
    /// The file with the public key.
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The public key itself.
    #[arg(long, value_name = "KEY")]
    pub value: Option<String>,
}

/// Options of `vm credentials add-ssh-key`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AddSshKey {
    /// Whose.
    #[command(flatten)]
    pub whose: Whose,
    /// Which.
    #[command(flatten)]
    pub key: Key,
    /// Make a new Secret and name it in the machine. A running one needs --force, and has the key after a restart.
    #[arg(long = "create-secret", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true, conflicts_with = "updates")]
    pub creates: bool,
    /// Never make a new Secret.
    #[arg(id = "updates", long = "update-secret", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub updates: bool,
}

/// Options of `vm credentials remove-ssh-key`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RemoveSshKey {
    /// Whose.
    #[command(flatten)]
    pub whose: Whose,
    /// Which.
    #[command(flatten)]
    pub key: Key,
}

/// Options of `vm credentials set-password`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SetPassword {
    /// Whose.
    #[command(flatten)]
    pub whose: Whose,
    /// The password, or - to read it from the standard input.
    #[arg(short, long, value_name = "PASSWORD")]
    pub password: String,
}
