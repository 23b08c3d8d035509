//! One module per command.

pub mod completion;
pub mod down;
pub mod kubeconfig;
pub mod running;
pub mod status;
pub mod up;
pub mod version;
