//! Flags of OIDC issuers, under upstream's names.

use std::path::PathBuf;

use clap::Args;

/// Who else may say who somebody is.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct OidcFlags {
    /// Trusted issuers and what their claims mean: an AuthenticationConfiguration of apiserver.config.k8s.io/v1. Read again
    /// when it changes.
    #[arg(
        long,
        value_name = "FILE",
        env = "FAIRWAY_AUTHENTICATION_CONFIG",
        conflicts_with = "oidc_issuer_url"
    )]
    pub authentication_config: Option<PathBuf>,
    /// A single trusted issuer (https).
    #[arg(
        long,
        value_name = "URL",
        requires = "oidc_client_id",
        env = "FAIRWAY_OIDC_ISSUER_URL"
    )]
    pub oidc_issuer_url: Option<String>,
    /// The client whose tokens are accepted.
    #[arg(
        long,
        value_name = "ID",
        requires = "oidc_issuer_url",
        env = "FAIRWAY_OIDC_CLIENT_ID"
    )]
    pub oidc_client_id: Option<String>,
    /// The claim that is the user's name [default: sub].
    #[arg(
        long,
        value_name = "CLAIM",
        requires = "oidc_issuer_url",
        env = "FAIRWAY_OIDC_USERNAME_CLAIM"
    )]
    pub oidc_username_claim: Option<String>,
    /// What is put before the user's name; - is nothing [default: nothing for email, else the issuer and #].
    #[arg(
        long,
        value_name = "PREFIX",
        requires = "oidc_issuer_url",
        allow_hyphen_values = true,
        env = "FAIRWAY_OIDC_USERNAME_PREFIX"
    )]
    pub oidc_username_prefix: Option<String>,
    /// The claim that has the user's groups.
    #[arg(
        long,
        value_name = "CLAIM",
        requires = "oidc_issuer_url",
        env = "FAIRWAY_OIDC_GROUPS_CLAIM"
    )]
    pub oidc_groups_claim: Option<String>,
    /// What is put before each group.
    #[arg(
        long,
        value_name = "PREFIX",
        requires = "oidc_issuer_url",
        env = "FAIRWAY_OIDC_GROUPS_PREFIX"
    )]
    pub oidc_groups_prefix: Option<String>,
    /// A claim that a token must have, with its value; may be repeated.
    #[arg(
        long,
        value_name = "KEY=VALUE",
        requires = "oidc_issuer_url",
        env = "FAIRWAY_OIDC_REQUIRED_CLAIM",
        value_delimiter = ','
    )]
    pub oidc_required_claim: Vec<String>,
    /// Who vouches for the issuer's certificate (PEM) [default: whom the machine trusts].
    #[arg(
        long,
        value_name = "FILE",
        requires = "oidc_issuer_url",
        env = "FAIRWAY_OIDC_CA_FILE"
    )]
    pub oidc_ca_file: Option<PathBuf>,
}
