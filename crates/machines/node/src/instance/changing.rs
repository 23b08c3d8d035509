//! The task's part in what changes while the machine runs: one change at a time, tried again later if it fails, and told.
//!
//! What cannot be done before the machine starts anew is said by conditions of the instance, of which the engine makes
//! `RestartRequired`: `HotVCPUChange` and `HotMemoryChange` that are false, as upstream, and for devices [`HOTPLUG_FAILED`].

use std::time::Duration;

use fairway_controller::events::Severity;
use fairway_machines_plan::argv;
use fairway_machines_plan::lifecycle::HOTPLUG_FAILED;
use fairway_machines_plan::machine::{DiskLimits, DiskPlan};
use fairway_machines_plan::processors::Wanted;
use fairway_machines_plan::view::Condition;
use fairway_machines_qemu::devices::{Rate, Throttle};
use tokio::time::Instant;

use super::confining;
use super::disks::{NotReady, Preparing, claim_of};
use super::input::Input;
use super::live::{Applied, Change, NotApplied, Present, apply, changes};
use super::migration::{Role, role};
use super::runner::{Life, Runner, planned};
use super::running;
use super::status::{Hotplug, VolumeFacts, claim_info};
use crate::claims;

/// How soon a change that failed is tried again, and the longest time between two attempts.
const AGAIN: Duration = Duration::from_secs(5);
const AGAIN_MOST: Duration = Duration::from_secs(60);
/// How long a guest may do nothing about memory that it was given before that counts as failed.
const TAKES_MEMORY: Duration = Duration::from_secs(60);

/// A change that failed.
#[derive(Debug)]
pub(super) struct Failed {
    change: Change,
    times: u32,
    again_at: Instant,
    why: NotApplied,
}

impl Failed {
    fn why(&self) -> &str {
        match &self.why {
            NotApplied::NeedsRestart(why) | NotApplied::NotNow(why) => why,
        }
    }
}

/// How a change went.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is done.
    Done {
        /// The machine after it.
        applied: Box<Applied>,
        /// What is known of a disk that came.
        facts: Option<VolumeFacts>,
    },
    /// Claims have to be bound first.
    Unbound(Vec<String>),
    /// It failed.
    Failed(NotApplied),
}

impl Runner {
    /// Begins the next change, if there is one and none is under way.
    pub(super) async fn follow_changes(&mut self) {
        // What is about to move stays as it was described to the other side.
        if self.changing.is_some()
            || matches!(role(&self.object, &self.context.node), Role::Source(_))
            || self.sending.is_some()
            || self.killing.is_some()
            || self.vmi.metadata.deletion_timestamp.is_some()
        {
            return;
        }
        let Life::Running(running) = &self.life else {
            return;
        };
        let Some(built) = self.home.record.built.clone() else {
            return;
        };
        if self.facts.is_none() {
            self.facts = self.context.host.facts().await.ok();
        }
        if self.settings.is_none() {
            self.settings = crate::settings::of(&self.context.clients, &self.key.workspace)
                .await
                .ok();
        }
        let (Some(facts), Some(settings)) = (&self.facts, &self.settings) else {
            return;
        };
        let wanted = planned(&self.key, &self.vmi, &self.capabilities(facts), settings);
        let present = Present {
            plan: &built.plan,
            sockets: running.live.sockets,
            started_memory: built.started_memory,
            memory: built.memory,
        };
        let all = changes(present, &wanted);
        self.volumes
            .retain(|name, _| built.plan.disk(name).is_some() || wanted.disk(name).is_some());
        // What is no longer wanted has not failed.
        self.failed.retain(|it| all.contains(&it.change));
        self.unbound.retain(|name| {
            all.iter()
                .any(|it| matches!(it, Change::PlugDisk(disk) if claim_of(&disk.source) == Some(name)))
        });
        let now = Instant::now();
        let next = all.into_iter().find(|change| {
            let waits = self
                .failed
                .iter()
                .any(|it| it.change == *change && it.again_at > now);
            let unbound = match change {
                Change::PlugDisk(disk) => {
                    claim_of(&disk.source).is_some_and(|it| self.unbound.iter().any(|name| name == it))
                }
                _ => false,
            };
            !waits && !unbound
        });
        let Some(change) = next else {
            return;
        };
        tracing::debug!(key = %self.key, change = change.name(), "changing a running machine");
        let (machine, context, listener) =
            (running.machine.clone(), self.context.clone(), self.sender.clone());
        self.say(&change, None);
        self.changing = Some(change.clone());
        self.stirred.look();
        let (key, vmi, directory) = (self.key.clone(), self.vmi.clone(), self.home.path().to_owned());
        let name = confining::name(&directory);
        let confinement = context.isolation.of(&name);
        // Room is made before it is used, and taken back when it is not any more.
        if let Change::Memory(bytes) = &change {
            self.limit_memory((*bytes).max(built.memory));
        }
        self.tasks.spawn(async move {
            let mut backing = None;
            let mut facts = None;
            if let Change::PlugDisk(disk) = &change {
                let api = context.api(&key);
                let preparing = Preparing {
                    api: &api,
                    images: &*context.disks,
                    key: &key,
                    vmi: &vmi,
                    plan: &wanted,
                    layout: &built.layout,
                    directory: &directory,
                    host_disks: false,
                };
                match preparing.single(disk).await {
                    Ok(mut prepared) => {
                        backing = prepared.backings.remove(&disk.name);
                        let below = prepared.below.get(&disk.name);
                        let given = backing
                            .as_ref()
                            .map(|it| confining::disk_of(&confinement, &directory, disk, it, below));
                        if let Some(Err(why)) = given {
                            let outcome = Outcome::Failed(NotApplied::NotNow(why));
                            let _ = listener.send(Input::Changed(Box::new(outcome))).await;
                            return;
                        }
                        facts = Some(VolumeFacts {
                            size: prepared.sizes.get(&disk.name).copied(),
                            claim: prepared.claims.get(&disk.name).map(claim_info),
                            hotplug: Some(Hotplug::Ready),
                            limits: DiskLimits::default(),
                        });
                    }
                    Err(not_ready) => {
                        let outcome = match not_ready {
                            NotReady::Unbound(claims) => Outcome::Unbound(claims),
                            NotReady::Obstacle(obstacle) => {
                                Outcome::Failed(NotApplied::NotNow(super::disks::sentence(&obstacle)))
                            }
                        };
                        let _ = listener.send(Input::Changed(Box::new(outcome))).await;
                        return;
                    }
                }
            }
            let (before, cpu) = (built.sockets, built.plan.cpu.clone());
            if let Change::Sockets(sockets) = &change
                && let Some(wanted) = Wanted::of(&cpu, *sockets)
            {
                // Who shares makes room before anything of the guest runs there.
                if let Err(too_few) = context.processors.claim(&name, wanted) {
                    let outcome = Outcome::Failed(NotApplied::NotNow(too_few.to_string()));
                    let _ = listener.send(Input::Changed(Box::new(outcome))).await;
                    return;
                }
                context.processors.tell_all().await;
            }
            let done = apply(
                &machine,
                built.plan,
                built.layout,
                &change,
                backing.as_ref(),
                built.started_memory,
            )
            .await;
            if let (Change::Sockets(_), Some(wanted)) = (&change, Wanted::of(&cpu, before)) {
                if done.is_err() {
                    // It had as many before.
                    let _ = context.processors.claim(&name, wanted);
                }
                context.processors.tell_all().await;
            }
            let outcome = match done {
                Ok(applied) => Outcome::Done {
                    applied: Box::new(applied),
                    facts,
                },
                Err(why) => Outcome::Failed(why),
            };
            let _ = listener.send(Input::Changed(Box::new(outcome))).await;
        });
    }

    /// A change has come to an end.
    pub(super) async fn changed(&mut self, outcome: Outcome) {
        let Some(change) = self.changing.take() else {
            return;
        };
        let meanwhile = self.stirred.over();
        match outcome {
            Outcome::Done { applied, facts } => self.changed_well(&change, *applied, facts).await,
            Outcome::Unbound(claims) => {
                // Otherwise the change is begun anew.
                if let Some(claims) = meanwhile.waits_for(claims) {
                    self.unbound.extend(claims);
                }
                self.say(&change, Some(Hotplug::Pending));
            }
            Outcome::Failed(why) => {
                let (NotApplied::NeedsRestart(sentence) | NotApplied::NotNow(sentence)) = &why;
                let sentence = sentence.clone();
                self.say(&change, Some(Hotplug::Bound(sentence.clone())));
                let times = self
                    .failed
                    .iter()
                    .find(|it| it.change == change)
                    .map_or(0, |it| it.times);
                self.failed.retain(|it| it.change != change);
                let wait = AGAIN.saturating_mul(1 << times.min(8)).min(AGAIN_MOST);
                if times == 0 {
                    let reason = match &change {
                        Change::PlugCard(_) | Change::UnplugCard(_) | Change::Link { .. } => "NicHotplug",
                        _ => "HotplugFailed",
                    };
                    let message = format!("{}: {sentence}", change.name());
                    self.tell(Severity::Warning, reason, message).await;
                }
                self.failed.push(Failed {
                    change,
                    times: times + 1,
                    again_at: Instant::now() + wait,
                    why,
                });
            }
        }
    }

    async fn changed_well(&mut self, change: &Change, applied: Applied, facts: Option<VolumeFacts>) {
        self.failed.retain(|it| it.change != *change);
        self.plan = applied.plan.clone();
        match change {
            Change::PlugDisk(disk) => {
                self.volumes.insert(disk.name.clone(), facts.unwrap_or_default());
                let message = format!("Successfully attach hotplugged volume {} to VM", disk.name);
                self.tell(Severity::Normal, "VolumeReady", message).await;
                if let Some(claim) = claim_of(&disk.source) {
                    self.claim_of_running_changed(claim);
                }
            }
            Change::UnplugDisk(name) => {
                self.volumes.remove(name);
                let message = format!("Volume {name} has been unplugged");
                self.tell(Severity::Normal, "VolumeUnplugged", message).await;
            }
            Change::PlugCard(_) | Change::UnplugCard(_) => {
                let cards = running::cards(&self.plan, self.home.path());
                self.context
                    .registry
                    .set_cards(&self.key, running::addresses(&self.plan));
                self.context.cables.plug(&self.key, &self.plan.hostname, cards);
                if let (Change::PlugCard(card), true) = (change, self.context.data_path.is_kernel()) {
                    let message = format!(
                        "interface {} is carried by the switch, not by the kernel, until the machine starts anew or moves",
                        card.name
                    );
                    self.tell(Severity::Normal, "NicHotplug", message).await;
                }
            }
            Change::Sockets(_) | Change::Memory(_) | Change::Link { .. } => {}
        }
        if let (Change::Sockets(sockets), Life::Running(running)) = (change, &mut self.life) {
            running.live.sockets = *sockets;
        }
        if let Change::Sockets(_) = change {
            self.home.record.processors = self.own_processors();
        }
        if let Some(built) = &mut self.home.record.built {
            built.plan = applied.plan;
            built.layout = applied.layout;
            built.volumes = self.volumes.clone();
            match change {
                Change::Sockets(sockets) => built.sockets = *sockets,
                Change::Memory(bytes) => built.memory = *bytes,
                _ => {}
            }
        }
        if let Err(error) = self.home.save() {
            tracing::warn!(key = %self.key, %error, "a change of a machine is not written down");
        }
        if let Change::Memory(bytes) = change {
            // Less memory is a wish: the guest may keep what it has.
            self.limit_memory(*bytes);
            self.memory_changed();
        }
    }

    /// Lets the machine's processes have what a guest of so much memory needs.
    fn limit_memory(&self, guest: u64) {
        let (Some(facts), Life::Running(running)) = (&self.facts, &self.life) else {
            return;
        };
        let guest = guest.max(running.live.memory);
        let limits = confining::limits(&self.plan, &self.vmi, facts, guest);
        let name = confining::name(self.home.path());
        if let Err(error) = self.context.isolation.limit(&name, &limits) {
            tracing::warn!(key = %self.key, %error, "the limits of a machine cannot be changed");
        }
    }

    /// How far a disk is that comes or goes.
    fn say(&mut self, change: &Change, hotplug: Option<Hotplug>) {
        match change {
            Change::PlugDisk(disk) => {
                let facts = self.volumes.entry(disk.name.clone()).or_default();
                if let Some(hotplug) = hotplug {
                    facts.hotplug = Some(hotplug);
                } else if facts.hotplug.is_none() {
                    facts.hotplug = Some(Hotplug::Pending);
                }
            }
            Change::UnplugDisk(name) => {
                let facts = self.volumes.entry(name.clone()).or_default();
                facts.hotplug = Some(Hotplug::Detaching);
            }
            _ => {}
        }
    }

    /// Conditions about changes that are under way, or failed.
    pub(super) fn change_conditions(&self) -> Vec<Condition> {
        let Life::Running(running) = &self.life else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let failed = |is: fn(&Change) -> bool| self.failed.iter().find(|it| is(&it.change));
        match (&self.changing, failed(|it| matches!(it, Change::Sockets(_)))) {
            (Some(Change::Sockets(_)), _) => found.push(Condition::holds("HotVCPUChange", "", "")),
            (_, Some(failed)) => {
                let message = format!("vCPU hotplug failed: {}", failed.why());
                found.push(Condition::fails("HotVCPUChange", "vCPU Hotplug Failed", message));
            }
            _ => {}
        }
        let unused = match self.memory_since {
            Some(since) if since.elapsed() >= TAKES_MEMORY => Some(format!(
                "the guest has {} of {} bytes: its system does not take more (it needs the driver virtio_mem)",
                running.live.memory,
                self.wanted_memory().unwrap_or_default(),
            )),
            _ => None,
        };
        let failure = failed(|it| matches!(it, Change::Memory(_))).map(|it| it.why().to_owned());
        let is_changing = matches!(self.changing, Some(Change::Memory(_))) || self.memory_since.is_some();
        match failure.or(unused) {
            Some(why) => {
                let message = format!("memory hotplug failed, the VM configuration is not supported: {why}");
                found.push(Condition::fails(
                    "HotMemoryChange",
                    "Memory Hotplug Failed",
                    message,
                ));
            }
            None if is_changing => found.push(Condition::holds("HotMemoryChange", "", "")),
            None => {}
        }
        let hopeless = self.failed.iter().find(|it| {
            let is_device = !matches!(it.change, Change::Sockets(_) | Change::Memory(_));
            is_device && matches!(it.why, NotApplied::NeedsRestart(_))
        });
        if let Some(hopeless) = hopeless {
            let message = format!("{}: {}", hopeless.change.name(), hopeless.why());
            found.push(Condition::holds(HOTPLUG_FAILED, "RestartRequired", message));
        }
        found
    }

    /// Bytes that the machine was last told to have.
    fn wanted_memory(&self) -> Option<u64> {
        self.home.record.built.as_ref().map(|it| it.memory)
    }

    /// The guest has more memory than before, or less, or all that it should.
    pub(super) fn memory_changed(&mut self) {
        let Life::Running(running) = &self.life else {
            return;
        };
        let is_as_wanted = self.wanted_memory().is_none_or(|it| it == running.live.memory);
        self.memory_since = (!is_as_wanted).then(Instant::now);
    }

    /// When a change that failed is due.
    pub(super) fn change_due(&self) -> Option<Instant> {
        let unused = self.memory_since.map(|it| it + TAKES_MEMORY);
        let unused = unused.filter(|it| *it > Instant::now());
        let failed = self.failed.iter().map(|it| it.again_at);
        let failed = failed.filter(|_| self.changing.is_none());
        failed.chain(unused).min()
    }

    /// A claim has changed: one that a change waits for, or whose disk is to grow.
    pub(super) fn claim_of_running_changed(&mut self, name: &str) {
        self.unbound.retain(|it| it != name);
        for failed in &mut self.failed {
            if let Change::PlugDisk(disk) = &failed.change
                && claim_of(&disk.source) == Some(name)
            {
                failed.again_at = Instant::now();
            }
        }
        let Life::Running(running) = &self.life else {
            return;
        };
        let concerned = |disk: &&DiskPlan| claim_of(&disk.source) == Some(name);
        for disk in self.plan.disks.iter().filter(concerned) {
            let grows = !disk.source.is_ephemeral() && !disk.read_only;
            let (machine, context, listener) =
                (running.machine.clone(), self.context.clone(), self.sender.clone());
            let (key, uid) = (self.key.clone(), self.uid.clone());
            let (claim, disk) = (name.to_owned(), disk.clone());
            let known = self.volumes.get(&disk.name).cloned().unwrap_or_default();
            self.tasks.spawn(async move {
                let Ok(Some(found)) =
                    claims::find(&context.api(&key), &key, &claim, &context.directory).await
                else {
                    return;
                };
                let capacity = found.place.as_ref().and_then(|it| it.capacity).unwrap_or(0);
                let mut size = known.size.unwrap_or(0);
                if grows && capacity > size {
                    match machine.grow_disk(&argv::top_node(&disk), capacity).await {
                        Ok(()) => size = capacity,
                        Err(error) => {
                            let message = format!(
                                "the disk {} does not grow to {capacity} bytes: {error}",
                                disk.name
                            );
                            context
                                .tell(&key, &uid, Severity::Warning, "VolumeResizeFailed", message)
                                .await;
                        }
                    }
                }
                let mut limits = found.place.as_ref().map(|it| it.limits).unwrap_or_default();
                // Those that it has had may be no more; those that it has may be of a QEMU on another node.
                if (limits.any() || known.limits.any())
                    && let Err(error) = machine
                        .limit_disk(&argv::disk_id(&disk.name), &throttle(&limits))
                        .await
                {
                    let message = format!("the disk {} cannot be limited: {error}", disk.name);
                    context
                        .tell(&key, &uid, Severity::Warning, "VolumeModifyFailed", message)
                        .await;
                    limits = known.limits;
                }
                let facts = VolumeFacts {
                    size: Some(size).filter(|it| *it > 0),
                    claim: Some(claim_info(&found.object)),
                    hotplug: None,
                    limits,
                };
                let _ = listener
                    .send(Input::Volume(disk.name.clone(), Box::new(facts)))
                    .await;
            });
        }
    }

    /// Something new is known of a disk.
    pub(super) fn volume_changed(&mut self, name: &str, facts: VolumeFacts) {
        if let Some(known) = self.volumes.get_mut(name) {
            let hotplug = known.hotplug.take();
            *known = VolumeFacts { hotplug, ..facts };
        }
        if let Some(built) = &mut self.home.record.built
            && built.volumes != self.volumes
        {
            built.volumes = self.volumes.clone();
            if let Err(error) = self.home.save() {
                tracing::warn!(key = %self.key, %error, "what is known of a disk is not written down");
            }
        }
    }
}

/// Limits as QEMU takes them.
fn throttle(limits: &DiskLimits) -> Throttle {
    Throttle {
        bytes: Rate {
            both: limits.bytes_per_second,
            reads: limits.read_bytes_per_second,
            writes: limits.write_bytes_per_second,
        },
        operations: Rate {
            both: limits.iops,
            reads: limits.iops_read,
            writes: limits.iops_write,
        },
    }
}
