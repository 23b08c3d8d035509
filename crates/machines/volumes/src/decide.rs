//! What volumes do next, decided without looking anything up. Each file is one question; what is observed comes in, and what
//! should be comes out.

pub(crate) mod attributes;
pub(crate) mod claim;
pub(crate) mod data_source;
pub(crate) mod fitting;
pub(crate) mod import_cron;
pub(crate) mod owner;
pub(crate) mod reclaim;
pub(crate) mod snapshot;
pub(crate) mod source;
pub(crate) mod status;
pub(crate) mod volume;
