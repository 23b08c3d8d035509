//! `fairway api-key` on the command line.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::gitops::Place;

/// Options of `api-key`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ApiKey {
    /// What to do.
    #[command(subcommand)]
    pub command: ApiKeyCommand,
}

/// What can be done with keys.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum ApiKeyCommand {
    /// Ask for a key to an API, and print it once it is approved.
    Request(Request),
    /// Approve the key that somebody asked for; the API's owner does that.
    Approve(Named),
    /// Print a key of yours that was approved.
    Show(Named),
    /// Give a key back: from then on it lets nobody in.
    Delete(Named),
}

/// Options of `api-key request`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Request {
    /// The APIProduct: NAME, or NAMESPACE/NAME if it is in another namespace than the key.
    pub product: String,
    /// The name of the key [default: that of the product].
    #[arg(long)]
    pub name: Option<String>,
    /// The namespace of the key.
    #[arg(short = 'n', long, default_value = "default")]
    pub namespace: String,
    /// The plan, of those that the product offers.
    #[arg(long, default_value = "free")]
    pub plan: String,
    /// What it is for; whoever approves reads it.
    #[arg(long, default_value = "")]
    pub use_case: String,
    /// Approve it as well, if you are allowed to.
    #[arg(long)]
    pub approve: bool,
    /// How long to wait for the key, such as 30s or 2m.
    #[arg(long, default_value = "30s", value_parser = seconds)]
    pub timeout: Duration,
    /// Which API.
    #[command(flatten)]
    pub place: Place,
}

/// A key by name.
#[derive(Args, Clone, Debug)]
pub(crate) struct Named {
    /// The key.
    pub name: String,
    /// Its namespace.
    #[arg(short = 'n', long, default_value = "default")]
    pub namespace: String,
    /// Which API.
    #[command(flatten)]
    pub place: Place,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let (number, factor) = match text.strip_suffix('m') {
        Some(number) => (number, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| format!("{text:?} is not a time; write such as 30s or 2m"))?;
    Ok(Duration::from_secs(number.saturating_mul(factor)))
}
