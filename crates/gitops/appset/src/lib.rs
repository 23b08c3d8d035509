//! What Applications an ApplicationSet stands for.
//!
//! [`generator`] makes sets of parameters out of lists, clusters, repositories and combinations of them; what is outside
//! (clusters, directories, files, pull requests) is asked of [`Sources`]. [`template`] fills parameters into texts, in the
//! form `{{param}}` or as Go templates. [`application`] makes Applications of them; [`changes`] says what to create, update and
//! delete. [`rollout`] lets them be synced step by step. [`status`] says how all that went.
//!
//! Semantics are Argo CD's, version 3. The crate must not know Git, clusters or clients.

#![cfg_attr(
    test,
    allow(
        clippy::needless_pass_by_value,
        reason = "test tables hand over JSON literals; borrowing them would only add noise"
    )
)]

pub mod application;
pub mod changes;
pub mod generator;
pub mod rollout;
pub mod status;
pub mod template;

pub use generator::{Cluster, Sources};
pub use template::Renderer;

use serde_json::{Map, Value};

/// Parameters of one Application: flat texts for `{{param}}`, any tree for Go templates.
pub type Params = Map<String, Value>;

/// Why there are no Applications.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A generator is wrong.
    #[error("{0}")]
    Generator(String),
    /// A source could not be read.
    #[error("{0}")]
    Source(String),
    /// A text could not be filled.
    #[error("failed to execute go template {text}: {reason}")]
    Template {
        /// The text.
        text: String,
        /// Why.
        reason: String,
    },
    /// There are too many.
    #[error("the generators yield more than {0} sets of parameters; split the ApplicationSet")]
    TooMany(usize),
}

/// The most sets of parameters that one ApplicationSet may yield: products of generators grow fast.
pub const MAX_PARAMS: usize = 20_000;

/// A name that DNS allows: what it does not is replaced by dashes.
pub fn sanitize_name(name: &str) -> String {
    let lower = name.to_lowercase();
    let replaced: String = lower
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-' {
                c
            } else {
                '-'
            }
        })
        .take(253)
        .collect();
    replaced.trim_matches(['-', '.']).to_owned()
}

/// A text as part of an address: lower case, dashes, at most so long, smartly: whole words.
pub fn slug(text: &str, max: usize, smart: bool) -> String {
    let mut slug = String::new();
    for c in text.to_lowercase().chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' => slug.push(c),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = slug.trim_matches(['-', '_']);
    if slug.len() <= max {
        return slug.to_owned();
    }
    let cut = &slug[..max];
    match smart && !slug[max..].starts_with('-') {
        true => cut.rfind('-').map_or(cut, |end| &cut[..end]).to_owned(),
        false => cut.to_owned(),
    }
}
