//! Applications, ApplicationSets and projects as the command line shows them, and what its commands write into them.
//!
//! Tables, headings and words are those of `argocd`, version 3.2, so that scripts that read its output go on working.
//! [`operation`] makes the operations that commands ask for, [`progress`] follows one until it is done, [`drawing`] shows
//! that as a tree. [`answer`] is what a push is told, [`plan`] what a sync would do. Everything is a function of objects as
//! JSON: nothing here has a client, a clock or a terminal.

#![cfg_attr(
    test,
    allow(
        clippy::needless_pass_by_value,
        reason = "test tables hand over JSON literals; borrowing them would only add noise"
    )
)]

pub mod answer;
pub mod application;
pub mod application_set;
pub mod cluster;
pub mod drawing;
pub mod field;
pub mod grown;
pub mod history;
pub mod lines;
pub mod operation;
pub mod plan;
pub mod progress;
pub mod project;
pub mod resource;
pub mod selection;
pub mod summary;
pub mod table;
pub mod time;
pub mod tombstone;
