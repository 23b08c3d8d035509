//! One machine of this host: its task ([`runner`]), what the task does ([`act`]) and says ([`report`], [`status`]), and what it is
//! made of: directory and record ([`home`]), disks ([`disks`], [`seeds`]), firmware ([`firmware`]), process ([`launch`], [`running`]),
//! and what the agent in the guest tells ([`guest`]).

mod act;
mod disks;
mod firmware;
mod guest;
pub(crate) mod home;
pub(crate) mod input;
mod launch;
mod report;
pub(crate) mod runner;
mod running;
mod seeds;
mod status;
