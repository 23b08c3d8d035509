//! One machine of this host: its task ([`runner`]), what the task does ([`act`]) and says ([`report`], [`status`]), and what it is
//! made of: directory and record ([`home`]), disks ([`disks`], [`seeds`]) and claims that change meanwhile ([`stirred`]), firmware ([`firmware`]), what it may touch ([`confining`]), which processors are its own ([`alone`]), process ([`launch`], [`running`]),
//! what the agent in the guest tells ([`guest`]), how well the guest is ([`probe`]), what is wrong with its network ([`network`]), its keys ([`credentials`]), and what changes while it
//! runs ([`live`], [`changing`]), its way to another node included ([`migration`]); and how it goes on with memory that was kept ([`memory`]).

mod act;
mod alone;
mod changing;
pub(crate) mod confining;
mod credentials;
mod disks;
mod firmware;
mod guest;
pub(crate) mod home;
pub(crate) mod input;
mod launch;
mod live;
pub(crate) mod memory;
pub(crate) mod migration;
mod network;
mod probe;
mod report;
pub(crate) mod runner;
mod running;
mod seeds;
pub(crate) mod status;
pub(crate) mod stirred;
