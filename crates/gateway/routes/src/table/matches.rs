//! Which requests belong to a rule, beside the host name.

use http::{HeaderName, Method};
use regex::Regex;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    pub path: PathMatch,
    pub method: Option<Method>,
    pub headers: Vec<HeaderMatch>,
    pub query: Vec<QueryMatch>,
}

/// `/` as a prefix matches everything.
#[derive(Debug, Clone)]
pub enum PathMatch {
    Exact(String),
    /// By whole segments: `/a` matches `/a` and `/a/b`, not `/ab`. Without a slash at its end.
    Prefix(String),
    /// Matches the whole path.
    Regex(Regex),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderMatch {
    pub name: HeaderName,
    pub value: ValueMatch,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryMatch {
    pub name: String,
    pub value: ValueMatch,
}

#[derive(Debug, Clone)]
pub enum ValueMatch {
    Exact(String),
    Regex(Regex),
}

// Expressions are the same if their texts are.
impl PartialEq for PathMatch {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(one), Self::Exact(two)) | (Self::Prefix(one), Self::Prefix(two)) => one == two,
            (Self::Regex(one), Self::Regex(two)) => one.as_str() == two.as_str(),
            _ => false,
        }
    }
}

impl PartialEq for ValueMatch {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(one), Self::Exact(two)) => one == two,
            (Self::Regex(one), Self::Regex(two)) => one.as_str() == two.as_str(),
            _ => false,
        }
    }
}

impl Eq for PathMatch {}
impl Eq for ValueMatch {}
