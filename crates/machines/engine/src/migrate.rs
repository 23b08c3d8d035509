//! Machines that move from one node to another while they run: the part of the cluster.
//!
//! A VirtualMachineInstanceMigration asks for it. Here a target is chosen and written into the instance's
//! `status.migrationState`; from then on the two nodes act, and say there how far they are. Everybody writes with the
//! version that was read, so that whoever comes second reads again:
//!
//! ```text
//!   phase that follows  who     writes into migrationState
//!   Scheduled           engine  migrationUid, sourceNode, targetNode, migrationConfiguration; nothing of an earlier one stays
//!   PreparingTarget     source  nothing here: annotation fairway.dev/migration-source, the machine as it was built
//!   TargetReady         target  targetNodeAddress, when it listens; annotation fairway.dev/migration-target
//!   Running             source  startTimestamp, before it sends the first byte
//!   Succeeded           target  completed, endTimestamp, targetNodeDomainReadyTimestamp, when the guest runs there; and in the
//!                               instance nodeName, its label, and no evacuationNodeName any more
//!   Failed              either  failed, failureReason, completed, endTimestamp; abortStatus if that was asked for
//! ```
//!
//! The migration itself (phase, conditions, finalizer) is written here alone. It goes with its instance, as upstream's.
//!
//! Who ends a migration, so that no guest ever runs twice:
//!
//! - Before `startTimestamp` nothing has left the source, so that it is ended here: when it is cancelled, when the target is not
//!   heard of, or is not ready in time.
//! - After it a cancelled one is `abortRequested`, and the source ends it. What was sent whole the target alone can run: the source
//!   waits for its word, however long that takes. If the target is lost, the word comes from here when nothing can run there any
//!   more (see `nodes`), and the source then ends what it has: the target may have written to the disks.
//! - If the source is lost after it, the target is asked by `abortRequested` to end what has not arrived; the instance is let go
//!   when the target has said so, or cannot run anything any more either.

mod controller;
mod decide;
pub(crate) mod evacuate;
pub(crate) mod glimpse;

pub(crate) use controller::Migrations;
