//! From what was observed to what is served, and to what everybody is told about it.

use crate::observed::Observed;
use crate::settings::Settings;
use crate::status::Status;
use crate::table::Table;

/// What a build yields.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Built {
    pub table: Table,
    /// Of every object that has one here, also if it has not changed: the writer compares.
    pub statuses: Vec<Status>,
}

/// The same observation and settings always yield the same.
pub fn build(observed: &Observed, settings: &Settings) -> Built {
    let _ = (observed, settings);
    Built::default()
}
