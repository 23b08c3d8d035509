//! `fairway why` on the command line.

use clap::Args;

use super::Output;
use super::vm::Place;

/// Options of `why`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Why {
    /// What to explain: KIND/NAME (vm/web, voyage/…, application/…, service/…, httproute/…, route/…), the NAME of a machine, run or
    /// Application, or an address such as https://web.apps.fairway.localhost.
    #[arg(value_name = "OBJECT")]
    pub object: String,
    /// Which API, which namespace.
    #[command(flatten)]
    pub place: Place,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}
