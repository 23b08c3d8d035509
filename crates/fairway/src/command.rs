//! One module per command.

pub(crate) mod app;
pub(crate) mod appset;
pub(crate) mod backup;
pub(crate) mod certs;
pub(crate) mod cluster;
pub(crate) mod completion;
pub(crate) mod down;
pub(crate) mod gateway;
mod gitops;
pub(crate) mod image;
pub(crate) mod keys;
pub(crate) mod kubeconfig;
pub(crate) mod node;
pub(crate) mod proj;
pub(crate) mod render;
pub(crate) mod repo;
pub(crate) mod running;
mod service;
pub(crate) mod status;
pub(crate) mod syncagent;
pub(crate) mod trust;
pub(crate) mod undelete;
pub(crate) mod up;
pub(crate) mod version;
pub(crate) mod vm;
pub(crate) mod workspace;
