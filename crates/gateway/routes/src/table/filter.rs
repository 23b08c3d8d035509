//! What is done to requests and answers on their way.

use http::{HeaderName, HeaderValue};

use super::Backend;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    RequestHeaders(HeaderChanges),
    ResponseHeaders(HeaderChanges),
    Redirect(Redirect),
    Rewrite {
        hostname: Option<String>,
        path: Option<PathChange>,
    },
    Mirror(Mirror),
    Cors(Cors),
}

/// First set, then add, then remove.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderChanges {
    pub set: Vec<(HeaderName, HeaderValue)>,
    pub add: Vec<(HeaderName, HeaderValue)>,
    pub remove: Vec<HeaderName>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub scheme: Option<String>,
    pub hostname: Option<String>,
    pub path: Option<PathChange>,
    /// None: the scheme's own if a scheme is given, else the listener's.
    pub port: Option<u16>,
    pub status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathChange {
    Full(String),
    /// The prefix that was matched becomes this.
    Prefix(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    pub to: Backend,
    /// Of so many ...
    pub denominator: u32,
    /// ... so many are mirrored.
    pub numerator: u32,
}

/// Answers to preflights, and headers on others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cors {
    /// `*`, or with a `*` in the host part.
    pub origins: Vec<String>,
    pub credentials: bool,
    pub methods: Vec<String>,
    pub headers: Vec<String>,
    pub expose: Vec<String>,
    pub max_age: u32,
}
