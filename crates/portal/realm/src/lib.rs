//! Realms without anything that touches the world: who is known where, what a program may ask for, whether a code, a refresh token
//! or a device may become tokens, how often somebody may guess, what tokens say, and whom those of other providers stand for.
//!
//! Time, chance and objects come from the caller, so that every rule of the protocol is a table of tests. What must be secret is
//! compared in constant time ([`secret`]). The crate must not hash passwords, serve requests or know a client of the API.

pub mod authorization;
pub mod claims;
pub mod client;
pub mod device;
pub mod directory;
pub mod external;
pub mod grant;
pub mod guard;
pub mod keys;
pub mod params;
pub mod password;
pub mod portal;
pub mod proven;
pub mod secret;
pub mod session;
pub mod settings;
pub mod time;
pub mod totp;

pub use authorization::{Authorization, Verdict};
pub use client::Client;
pub use directory::{Directory, Member};
pub use guard::Guard;
pub use params::Params;
pub use session::Session;
pub use settings::Settings;
