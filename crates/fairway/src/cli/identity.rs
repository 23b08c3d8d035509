//! `fairway login`, `logout`, `whoami`, `user`, `group`, `org` and `oidc-client` on the command line.

use clap::{Args, Subcommand, ValueEnum};

use super::Output;
use super::workspace::Where;

/// Options of `login`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Login {
    /// The organisation to sign in to; root for the administrators of the platform.
    #[arg(long, value_name = "NAME", default_value = "root")]
    pub org: String,
    /// Where people sign in, such as https://id.fairway.localhost:7443 [default: that of the Fairway on this machine].
    #[arg(long, value_name = "URL", conflicts_with = "issuer")]
    pub sign_in_url: Option<String>,
    /// Another provider, which the server is configured to believe.
    #[command(flatten)]
    pub external: External,
    /// What to ask the other provider for, separated by spaces [default: of openid, profile, email and groups what it says that it
    /// knows].
    #[arg(long, value_name = "SCOPES", requires = "issuer")]
    pub scope: Option<String>,
    /// A file with the certificates, in PEM, of those who vouch for the other provider [default: those that this host trusts].
    #[arg(long, value_name = "FILE", requires = "issuer")]
    pub issuer_ca: Option<std::path::PathBuf>,
    /// Show a code to type on another device, instead of waiting for a browser on this one.
    #[arg(long, conflicts_with = "username")]
    pub device: bool,
    /// Do not start a browser; print the address only.
    #[arg(long)]
    pub no_browser: bool,
    /// Sign in as this user without a browser; needs --password-stdin.
    #[arg(
        long,
        value_name = "NAME",
        requires = "password_stdin",
        conflicts_with = "issuer"
    )]
    pub username: Option<String>,
    /// Read the password from standard input.
    #[arg(long, requires = "username")]
    pub password_stdin: bool,
    /// The one-time code, if the user has one.
    #[arg(long, value_name = "CODE", requires = "username")]
    pub otp: Option<String>,
    /// Write the context to this file, which is made if it is not there [default: the kubeconfig that is used].
    #[arg(long, value_name = "FILE")]
    pub write: Option<std::path::PathBuf>,
    /// Where.
    #[command(flatten)]
    pub place: Where,
}

/// A provider that is not Fairway's own, such as a Keycloak.
#[derive(Args, Clone, Debug)]
pub(crate) struct External {
    /// Sign in at this OIDC issuer instead of the organisation's realm; the server has to be configured to believe its tokens.
    #[arg(long, value_name = "URL", requires = "client_id")]
    pub issuer: Option<String>,
    /// What the issuer knows this program as: a public client.
    #[arg(long, value_name = "ID", requires = "issuer")]
    pub client_id: Option<String>,
}

/// Options of `logout`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Logout {
    /// The organisation.
    #[arg(long, value_name = "NAME", default_value = "root")]
    pub org: String,
    /// Where people sign in [default: that of the Fairway on this machine].
    #[arg(long, value_name = "URL", conflicts_with = "issuer")]
    pub sign_in_url: Option<String>,
    /// Another provider.
    #[command(flatten)]
    pub external: External,
    /// Where.
    #[command(flatten)]
    pub place: Where,
}

/// Options of `whoami`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Whoami {
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Where.
    #[command(flatten)]
    pub place: Where,
}

/// Options of `credential`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Credential {
    /// For whom.
    #[arg(value_enum)]
    pub program: Program,
    /// The file that `fairway login` has written.
    #[arg(long, value_name = "FILE")]
    pub session: std::path::PathBuf,
    /// What git wants: get, store or erase.
    pub operation: Option<String>,
}

/// Programs that ask for a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    /// kubectl and other clients of Kubernetes.
    Kubernetes,
    /// git.
    Git,
}

/// In which organisation.
#[derive(Args, Clone, Debug)]
pub(crate) struct InOrg {
    /// The organisation; root for the administrators of the platform [default: that of the current workspace].
    #[arg(long, value_name = "NAME")]
    pub org: Option<String>,
    /// Where.
    #[command(flatten)]
    pub place: Where,
}

/// Options of `user`.
#[derive(Args, Clone, Debug)]
pub(crate) struct User {
    /// What to do.
    #[command(subcommand)]
    pub command: UserCommand,
}

/// What can be done with users.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum UserCommand {
    /// List the users of an organisation.
    #[command(visible_alias = "ls")]
    List(UserList),
    /// Make a user; the password is read from standard input, or made and printed once.
    Create(UserCreate),
    /// Remove a user.
    Delete(UserNamed),
    /// Lock a user out, everywhere and at once.
    Disable(UserNamed),
    /// Let a user in again.
    Enable(UserNamed),
    /// Set a password: read from standard input, or made and printed once.
    SetPassword(SetPassword),
    /// Set up one-time codes, and print what an authenticator app is told.
    EnableTotp(UserNamed),
    /// Do without one-time codes again.
    DisableTotp(UserNamed),
}

/// Options of `user list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct UserList {
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// In which organisation.
    #[command(flatten)]
    pub at: InOrg,
}

/// Options of `user create`.
#[derive(Args, Clone, Debug)]
pub(crate) struct UserCreate {
    /// The name to sign in with: lower-case letters, digits, dashes and dots.
    pub name: String,
    /// The name for people.
    #[arg(long, value_name = "TEXT")]
    pub display_name: Option<String>,
    /// The mail address.
    #[arg(long, value_name = "ADDRESS")]
    pub email: Option<String>,
    /// Groups to join; they must exist.
    #[arg(long = "group", value_name = "NAME")]
    pub groups: Vec<String>,
    /// Read the password from standard input.
    #[arg(long)]
    pub password_stdin: bool,
    /// In which organisation.
    #[command(flatten)]
    pub at: InOrg,
}

/// A user.
#[derive(Args, Clone, Debug)]
pub(crate) struct UserNamed {
    /// The name.
    pub name: String,
    /// In which organisation.
    #[command(flatten)]
    pub at: InOrg,
}

/// Options of `user set-password`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SetPassword {
    /// The user.
    pub name: String,
    /// Read the password from standard input.
    #[arg(long)]
    pub password_stdin: bool,
    /// In which organisation.
    #[command(flatten)]
    pub at: InOrg,
}

/// Options of `group`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Group {
    /// What to do.
    #[command(subcommand)]
    pub command: GroupCommand,
}

/// What can be done with groups.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum GroupCommand {
    /// List the groups of an organisation with their members.
    #[command(visible_alias = "ls")]
    List(UserList),
    /// Make a group.
    Create(GroupNamed),
    /// Remove a group.
    Delete(GroupNamed),
    /// Add users to a group. They have its rights at once.
    Add(GroupMembers),
    /// Take users out of a group. They lose its rights at once.
    Remove(GroupMembers),
}

/// A group.
#[derive(Args, Clone, Debug)]
pub(crate) struct GroupNamed {
    /// The name.
    pub name: String,
    /// In which organisation.
    #[command(flatten)]
    pub at: InOrg,
}

/// A group and users.
#[derive(Args, Clone, Debug)]
pub(crate) struct GroupMembers {
    /// The group.
    pub name: String,
    /// The users.
    #[arg(required = true, value_name = "USER")]
    pub users: Vec<String>,
    /// In which organisation.
    #[command(flatten)]
    pub at: InOrg,
}

/// Options of `org`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Org {
    /// What to do.
    #[command(subcommand)]
    pub command: OrgCommand,
}

/// What can be done with organisations.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum OrgCommand {
    /// List the organisations.
    #[command(visible_alias = "ls")]
    List(OrgList),
    /// Make an organisation: a workspace with a realm of its own.
    Create(OrgNamed),
    /// Show an organisation: where its people sign in, and how many there are.
    Show(OrgShow),
    /// Delete an organisation with everything inside, people included.
    Delete(OrgDelete),
}

/// Options of `org list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct OrgList {
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Where.
    #[command(flatten)]
    pub place: Where,
}

/// An organisation.
#[derive(Args, Clone, Debug)]
pub(crate) struct OrgNamed {
    /// The name.
    pub name: String,
    /// Where.
    #[command(flatten)]
    pub place: Where,
}

/// Options of `org show`.
#[derive(Args, Clone, Debug)]
pub(crate) struct OrgShow {
    /// The name.
    pub name: String,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Where.
    #[command(flatten)]
    pub place: Where,
}

/// Options of `org delete`.
#[derive(Args, Clone, Debug)]
pub(crate) struct OrgDelete {
    /// The name.
    pub name: String,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// Where.
    #[command(flatten)]
    pub place: Where,
}

/// Options of `oidc-client`.
#[derive(Args, Clone, Debug)]
pub(crate) struct OidcClient {
    /// What to do.
    #[command(subcommand)]
    pub command: OidcClientCommand,
}

/// What can be done with programs that people sign in to.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum OidcClientCommand {
    /// List the programs.
    #[command(visible_alias = "ls")]
    List(UserList),
    /// Register a program; its secret, if it has one, is printed once.
    Create(OidcClientCreate),
    /// Make a new secret; it is printed once, and the old one is void.
    NewSecret(GroupNamed),
    /// Remove a program.
    Delete(GroupNamed),
}

/// Options of `oidc-client create`.
#[derive(Args, Clone, Debug)]
pub(crate) struct OidcClientCreate {
    /// Its `client_id`.
    pub name: String,
    /// The name that people are shown.
    #[arg(long, value_name = "TEXT")]
    pub display_name: Option<String>,
    /// Where a browser may be sent with a code, exactly; the port of a loopback address may differ.
    #[arg(long = "redirect-uri", value_name = "URI", required = true)]
    pub redirect_uris: Vec<String>,
    /// Where a browser may be sent after a session has ended.
    #[arg(long = "post-logout-redirect-uri", value_name = "URI")]
    pub post_logout_redirect_uris: Vec<String>,
    /// It can keep no secret, such as a command line or a page in a browser.
    #[arg(long)]
    pub public: bool,
    /// Its tokens are good for the Kubernetes API, Git and the portal.
    #[arg(long)]
    pub api_access: bool,
    /// It may sign in people who confirm on another device.
    #[arg(long)]
    pub device_flow: bool,
    /// In which organisation.
    #[command(flatten)]
    pub at: InOrg,
}
