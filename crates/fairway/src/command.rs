//! One module per command.

pub(crate) mod backup;
pub(crate) mod certs;
pub(crate) mod completion;
pub(crate) mod down;
pub(crate) mod keys;
pub(crate) mod kubeconfig;
pub(crate) mod render;
pub(crate) mod repo;
pub(crate) mod running;
mod service;
pub(crate) mod status;
pub(crate) mod syncagent;
pub(crate) mod up;
pub(crate) mod version;
pub(crate) mod workspace;
