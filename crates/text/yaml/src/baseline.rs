//! What Go's libraries read and wrote, recorded by `testdata/make_baseline.sh`.

use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Baseline {
    pub(crate) readings: Vec<Reading>,
    pub(crate) writings: Vec<Writing>,
}

/// An input and what became of it, by the rules of YAML 1.1 and 1.2.
#[derive(Deserialize)]
pub(crate) struct Reading {
    pub(crate) yaml: String,
    pub(crate) json: Option<String>,
    pub(crate) error: Option<String>,
    /// What strict reading objects to.
    pub(crate) strict: Option<String>,
    pub(crate) json3: Option<String>,
    pub(crate) error3: Option<String>,
}

/// A value and its YAML.
#[derive(Deserialize)]
pub(crate) struct Writing {
    pub(crate) json: String,
    pub(crate) yaml: String,
}

pub(crate) fn load() -> Baseline {
    serde_json::from_str(include_str!("../testdata/baseline.json")).unwrap()
}
