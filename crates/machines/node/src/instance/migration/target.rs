//! The side that a machine comes to.

use std::path::Path;
use std::time::Duration;

use fairway_controller::events::Severity;
use fairway_machines_image::overlay;
use fairway_machines_plan::argv::{self, Backing, Format, Host};
use fairway_machines_plan::compatibility::{self, RunsOn};
use fairway_machines_plan::machine::{DiskPlan, DiskSource};
use fairway_machines_plan::node::NODE_LABEL;
use fairway_machines_qemu::meeting::{self, Meeting, Side};
use fairway_machines_qemu::{Confinement, Machine, migrate, mirror, start};
use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use super::hung_up::was_hung_up;
use super::source::now;
use super::{FromSource, FromTarget, SOURCE, State, TARGET, Way, mark, secrecy};
use crate::claims::{self, Place};
use crate::host::Facts;
use crate::instance::disks::{NotReady, Prepared, Preparing, claim_of, file_name, sentence, with_source};
use crate::instance::home::Built;
use crate::instance::input::Input;
use crate::instance::launch::{launch, sockets, supervised};
use crate::instance::runner::{Life, Runner};
use crate::instance::running;
use crate::instance::status::quantity;
use crate::instance::{confining, firmware};

/// Sockets in the machine's directory.
const MEMORY_SOCKET: &str = "live/migration.sock";
const DISKS_SOCKET: &str = "live/disks.sock";
/// The longest path of a socket.
const MAX_PATH: usize = 107;
/// How long a source may take to end a migration that is cancelled.
const SOURCE_ENDS: Duration = Duration::from_secs(30);
/// How long a source that has hung up may take to say why.
const SOURCE_SAYS: Duration = Duration::from_secs(5);
/// How soon something is written again that must be.
const AGAIN: Duration = Duration::from_millis(500);
/// How long the guest may take to run once everything is here.
const RUNS: Duration = Duration::from_secs(30);

/// The target waits for the machine.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) machine: Machine,
    pub(crate) said: FromTarget,
}

/// How far the target is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Arriving {
    /// QEMU is being started.
    Preparing,
    /// It waits, and the source has to be told where.
    Ready(Box<FromTarget>),
    /// It waits.
    Listening,
    /// Everything is here, and the guest is let run.
    Waking,
    /// The guest runs here, and everybody has to be told.
    Awake,
    /// The guest does not run although everything is here, and why: everybody has to be told.
    Lost(String),
}

impl Arriving {
    /// Whether the guest is no longer the source's.
    fn has_come(&self) -> bool {
        matches!(self, Self::Waking | Self::Awake | Self::Lost(_))
    }
}

impl Runner {
    /// The next step of the target.
    pub(crate) async fn step_target(&mut self, state: &State) {
        // A source that is there ends it and says so. If nobody does, it is no more, and nothing of it will come; once everything is
        // here, the guest runs here.
        if state.is_to_end && !self.arriving.as_ref().is_some_and(Arriving::has_come) {
            let at = *self.end_at.get_or_insert_with(|| Instant::now() + SOURCE_ENDS);
            if at <= Instant::now() {
                let why = "the migration was cancelled before everything had come";
                return self.migration_failed(why, true).await;
            }
        }
        match (&self.life, self.arriving.clone()) {
            (Life::None, None) => {
                if let Some(from) = state.from_source.clone() {
                    self.prepare_target(from, state.wants_tls).await;
                }
            }
            // Another Fairway has prepared it.
            (Life::Running(running), None) => match (state.is_listening, running.state.as_str()) {
                (true, "inmigrate") => self.arriving = Some(Arriving::Listening),
                (true, "running" | "paused" | "prelaunch") => self.wake(),
                _ => {
                    self.migration_failed("Fairway was restarted at the target before it was ready", false)
                        .await;
                }
            },
            (Life::Ended(ended), _) => {
                if was_hung_up(&ended.message) {
                    let at = *self.end_at.get_or_insert_with(|| Instant::now() + SOURCE_SAYS);
                    if at > Instant::now() {
                        return;
                    }
                }
                let why = format!("QEMU ended at the target: {}", ended.message);
                self.migration_failed(&why, false).await;
            }
            // It went before anybody had it in hand.
            (Life::None, Some(Arriving::Ready(_) | Arriving::Listening)) => {
                self.migration_failed("QEMU ended at the target before the machine came", false)
                    .await;
            }
            (Life::Running(_), Some(Arriving::Ready(said))) => self.say_listening(&said).await,
            // That everything is here was missed.
            (Life::Running(running), Some(Arriving::Listening))
                if matches!(running.state.as_str(), "running" | "paused") =>
            {
                self.wake();
            }
            (Life::Running(_), Some(Arriving::Awake)) => self.take_over().await,
            (_, Some(Arriving::Lost(why))) => self.migration_failed(&why, false).await,
            _ => {}
        }
    }

    async fn prepare_target(&mut self, from: FromSource, wants_tls: bool) {
        // The disks of a machine that comes are made with the rights of this node, and then given to it.
        if let Err(error) = self.home.make() {
            return self.migration_failed(&error.to_string(), false).await;
        }
        let Ok(facts) = self.context.host.facts().await else {
            return self
                .migration_failed("the target cannot run machines", false)
                .await;
        };
        if let Some(why) = misfit(&from.built, &facts) {
            return self.migration_failed(&why, false).await;
        }
        if let Err(too_few) = self.claim_processors(&from.built) {
            return self.migration_failed(&too_few.to_string(), false).await;
        }
        let name = confining::name(self.home.path());
        let memory = from.built.memory.max(from.built.started_memory);
        let limits = confining::limits(&from.built.plan, &self.vmi, &facts, memory);
        let context = &self.context;
        let confinement = match context.isolation.admit(&name, &limits) {
            Ok(confinement) => confinement,
            Err(error) => return self.migration_failed(&error.to_string(), false).await,
        };
        let is_confined = confinement.user.is_some() || from.user.is_some();
        let way = match Way::of(
            &from.host,
            &context.host_id,
            is_confined,
            context.address,
            wants_tls,
        ) {
            Ok(way) => way,
            Err(why) => return self.migration_failed(&why, false).await,
        };
        let (context, key, vmi) = (self.context.clone(), self.key.clone(), self.vmi.clone());
        let (directory, listener) = (self.home.path().to_owned(), self.sender.clone());
        let mut built = from.built.clone();
        // It goes on as it is now, not as it once began; processors that came later are plugged in again.
        built.plan.memory.guest = built.started_memory;
        built.plan.memory.grown = built.memory.saturating_sub(built.started_memory);
        if !from.machine_type.is_empty() {
            built.plan.board.machine_type = from.machine_type.clone();
        }
        self.plan = built.plan.clone();
        self.volumes = built.volumes.clone();
        self.home.record.built = Some(built.clone());
        self.home.record.ended = None;
        self.home.record.processors = self.own_processors();
        if let Err(error) = self.home.save() {
            return self.migration_failed(&error.to_string(), false).await;
        }
        self.arriving = Some(Arriving::Preparing);
        self.life = Life::Starting;
        let (program, fencing) = (context.host.program().to_owned(), context.fencing.clone());
        self.tasks.spawn(async move {
            let outcome = async {
                let api = context.api(&key);
                let preparing = Preparing {
                    api: &api,
                    images: &*context.disks,
                    key: &key,
                    vmi: &vmi,
                    plan: &built.plan,
                    layout: &built.layout,
                    directory: &directory,
                    host_disks: false,
                };
                let (mut prepared, copied) =
                    disks(&preparing, &built, &from.migration, &context.node).await?;
                prepared.firmware = firmware::prepare(&built.plan, &facts, &directory)?;
                let host = Host {
                    sockets: sockets(),
                    accelerator: facts.accelerator(),
                    taps: context.data_path.files(&built.plan),
                    backings: prepared.backings.clone(),
                    firmware: prepared.firmware.clone(),
                    kernel: None,
                    now: Timestamp::now(),
                    incoming: true,
                    // The guest runs when everything is in order here, not a moment before.
                    stopped: true,
                };
                let mut launch = launch(&program, &directory, &built.plan, &host, &built.layout)
                    .map_err(|error| error.to_string())?;
                supervised(&mut launch, fencing.as_ref(), &context.directory);
                launch.starter.splice(0..0, context.processors.starter());
                if built.plan.cpu.dedicated {
                    // Who shares makes room first.
                    context.processors.tell_all().await;
                }
                context.data_path.equip(&mut launch, &built.plan, &directory);
                confining::admit(&confinement, &directory, &built.plan, &prepared)?;
                launch.confinement = confinement.clone();
                if let Some(tpm) = firmware::Tpm::of(&built.plan, &facts, &directory, &confinement) {
                    tpm.start().await.map_err(|error| with_source(&error))?;
                }
                let machine = start(&launch).await.map_err(|error| with_source(&error))?;
                let cpu = &built.plan.cpu;
                let count = usize::try_from(built.sockets * cpu.cores * cpu.threads).unwrap_or(usize::MAX);
                if let Err(error) = machine.set_processors(count).await {
                    let _ = machine.stop(Duration::ZERO).await;
                    return Err(error.to_string());
                }
                let said = match listen(&machine, &from, way, copied, &confinement).await {
                    Ok(said) => said,
                    Err(why) => {
                        let _ = machine.stop(Duration::ZERO).await;
                        return Err(why);
                    }
                };
                Ok(Listening { machine, said })
            };
            let outcome: Result<Listening, String> = outcome.await;
            let _ = listener.send(Input::Listening(Box::new(outcome))).await;
        });
    }

    /// The target waits, or could not get so far.
    pub(crate) async fn listening(&mut self, outcome: Result<Listening, String>) {
        match outcome {
            Ok(listening) => {
                self.hold(listening.machine).await;
                // Said by the next step, which follows at once.
                self.arriving = Some(Arriving::Ready(Box::new(listening.said)));
            }
            Err(why) => {
                self.arriving = None;
                self.life = Life::None;
                let _ = self.home.tidy();
                self.migration_failed(&why, false).await;
            }
        }
    }

    /// Tells the source where this side waits for it. If somebody else has written meanwhile, the next step says it again.
    async fn say_listening(&mut self, said: &FromTarget) {
        let address = self
            .context
            .address
            .map_or_else(|| self.context.node.clone(), |it| it.to_string());
        let text = serde_json::to_string(said).unwrap_or_default();
        let mut state = json!({"targetNodeAddress": address, "targetNodeDomainDetected": true});
        if let Meeting::Tcp { port, .. } = said.memory {
            state["targetDirectMigrationNodePorts"] = json!({port.to_string(): 0});
        }
        let patch = json!({
            "metadata": {"annotations": {TARGET: text}},
            "status": {"migrationState": state},
        });
        if self.write(patch).await {
            self.arriving = Some(Arriving::Listening);
            let message = "VirtualMachineInstance Migration Target Prepared.";
            self.tell(Severity::Normal, "PreparingTarget", message).await;
        }
    }

    /// QEMU has everything: the guest may run.
    pub(crate) fn arrived(&mut self) {
        if matches!(self.arriving, Some(Arriving::Ready(_) | Arriving::Listening)) {
            self.wake();
        }
    }

    fn wake(&mut self) {
        let Life::Running(running) = &self.life else {
            return;
        };
        self.arriving = Some(Arriving::Waking);
        // Its cards are connected when it begins to talk.
        let cards = running::cards(&self.plan, self.home.path());
        self.context.cables.plug(&self.key, &self.plan.hostname, cards);
        let said = self.object["metadata"]["annotations"][SOURCE].as_str();
        let from: Option<FromSource> = said.and_then(|it| serde_json::from_str(it).ok());
        let is_paused = from.is_some_and(|it| it.is_paused);
        let (machine, listener) = (running.machine.clone(), self.sender.clone());
        self.tasks.spawn(async move {
            let outcome = async {
                mirror::stop_serving(&machine).await?;
                let _ = meeting::disarm(&machine).await;
                if !is_paused {
                    machine.resume().await?;
                    migrate::finish(&machine, RUNS).await?;
                }
                Ok(())
            };
            let outcome: Result<(), fairway_machines_qemu::MachineError> = outcome.await;
            let outcome = outcome.map_err(|error| error.to_string());
            let _ = listener.send(Input::Awake(outcome)).await;
        });
    }

    /// The guest runs here, or does not: the next step says so.
    pub(crate) async fn awake(&mut self, outcome: Result<(), String>) {
        self.arriving = Some(match outcome {
            Ok(()) => Arriving::Awake,
            // The source has let go of it: nobody else can run it.
            Err(why) => Arriving::Lost(why),
        });
        if let Life::Running(running) = &mut self.life {
            let _ = running.look().await;
        }
        secrecy::forget(self.home.path());
    }

    /// From now on the machine is this node's. As long as nobody knows, nobody reaches it: what cannot be written is written again.
    async fn take_over(&mut self) {
        let node = self.context.node.clone();
        if let Err(why) = self.take_volumes().await {
            tracing::warn!(key = %self.key, why, "it is not written down that a volume has come; trying again");
            self.write_at = Some(Instant::now() + AGAIN);
            return;
        }
        let patch = json!({
            "metadata": {"labels": {NODE_LABEL: node}, "annotations": {SOURCE: null, TARGET: null}},
            "status": {
                "nodeName": node, "evacuationNodeName": null,
                "migrationState": {
                    "targetNodeDomainReadyTimestamp": now(), "completed": true, "endTimestamp": now(),
                },
            },
        });
        if !self.write(patch).await {
            return;
        }
        self.arriving = None;
        self.announce();
        let message = format!("The VirtualMachineInstance migrated to node {node}.");
        self.tell(Severity::Normal, "Migrated", message).await;
    }
}

impl Runner {
    /// Volumes whose disks were copied belong to this node now. If that is not written, the machine would start where its disk is no more.
    async fn take_volumes(&self) -> Result<(), String> {
        let said = self.object["metadata"]["annotations"][TARGET].as_str();
        let said: Option<FromTarget> = said.and_then(|it| serde_json::from_str(it).ok());
        let (context, api) = (&self.context, self.context.api(&self.key));
        for name in said.iter().flat_map(|it| &it.disks) {
            let Some(claim) = self.plan.disk(name).and_then(|it| claim_of(&it.source)) else {
                continue;
            };
            let found = claims::find(&api, &self.key, claim, &context.directory).await;
            let found = found.map_err(|error| format!("PVC {claim}: {error}"))?;
            if let Some(place) = found.and_then(|it| it.place) {
                let moved = claims::moved(&api, &self.key, claim, &place.volume, &context.node).await;
                moved.map_err(|failure| format!("PVC {claim}: {}", failure.sentence()))?;
            }
        }
        Ok(())
    }
}

/// Files behind disks: those that both sides see are shared, what the guest writes elsewhere is copied, and what is read only is made
/// anew. Returns the names of those that are copied.
async fn disks(
    preparing: &Preparing<'_>,
    built: &Built,
    migration: &str,
    node: &str,
) -> Result<(Prepared, Vec<String>), String> {
    let mut prepared = Prepared::default();
    let mut copied = Vec::new();
    for disk in &built.plan.disks {
        match &disk.source {
            DiskSource::Claim { .. } | DiskSource::DataVolume { .. } => {
                let name = claim_of(&disk.source).unwrap_or_default();
                let place = place(preparing, name).await?;
                if !mark(&place.directory, migration).exists() {
                    if place.nodes.iter().any(|it| it == node) {
                        return Err(format!(
                            "PVC {name} is said to be on this node, and its disk is not the one that the machine uses"
                        ));
                    }
                    let size = size_of(built, disk)?;
                    blank_volume(&place.directory, size).await?;
                    copied.push(disk.name.clone());
                }
                let single = preparing.single(disk).await.map_err(|it| why(&it))?;
                prepared.backings.extend(single.backings);
                prepared.below.extend(single.below);
            }
            _ if disk.read_only || matches!(disk.source, DiskSource::Seed(_) | DiskSource::Files { .. }) => {
                let single = preparing.single(disk).await.map_err(|it| why(&it))?;
                prepared.backings.extend(single.backings);
            }
            _ => {
                let size = size_of(built, disk)?;
                prepared
                    .backings
                    .insert(disk.name.clone(), blank(preparing.directory, disk, size).await?);
                copied.push(disk.name.clone());
            }
        }
    }
    Ok((prepared, copied))
}

/// Why the guest cannot go on here: the scheduler may not have known what this node has.
fn misfit(built: &Built, facts: &Facts) -> Option<String> {
    // An earlier Fairway has not written it down.
    let guest: RunsOn = built.runs_on.parse().ok()?;
    let here = facts.runs_on();
    let why = compatibility::misfit(&guest, &built.plan.cpu.model, &here)?;
    Some(format!(
        "the target {why}: the guest has run on {guest} since it started, the target has {here}"
    ))
}

fn size_of(built: &Built, disk: &DiskPlan) -> Result<u64, String> {
    let size = built.volumes.get(&disk.name).and_then(|it| it.size);
    size.ok_or_else(|| format!("the size of disk {} is not known", disk.name))
}

/// Where the disk of a claim is, or will be.
async fn place(preparing: &Preparing<'_>, claim: &str) -> Result<Place, String> {
    let found = claims::find(preparing.api, preparing.key, claim, preparing.machines()).await;
    let found = found.map_err(|error| error.to_string())?;
    found
        .and_then(|it| it.place)
        .ok_or_else(|| format!("PVC {claim} is not bound"))
}

/// A volume's directory with an empty disk. What is there is of an earlier attempt: the volume is another node's.
async fn blank_volume(directory: &Path, size: u64) -> Result<(), String> {
    let directory = directory.to_owned();
    let made = tokio::task::spawn_blocking(move || {
        let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        std::fs::create_dir_all(&directory).map_err(failed)?;
        let disk = fairway_machines_volumes::disk_path(&directory);
        let name = disk.file_stem().unwrap_or_default().to_string_lossy();
        overlay::blank(&directory, &name, size).map_err(|error| with_source(&error))
    });
    made.await.map_err(|error| error.to_string())?
}

fn why(not_ready: &NotReady) -> String {
    match not_ready {
        NotReady::Unbound(claims) => format!("claims are not bound: {}", claims.join(", ")),
        NotReady::Obstacle(obstacle) => sentence(obstacle),
    }
}

async fn blank(directory: &Path, disk: &DiskPlan, size: u64) -> Result<Backing, String> {
    let (place, name) = (directory.to_owned(), file_name(&disk.name));
    let file = format!("{name}.qcow2");
    let made = tokio::task::spawn_blocking(move || overlay::blank(&place, &name, size)).await;
    let made = made.map_err(|error| error.to_string())?;
    made.map_err(|error| format!("{size} bytes ({}): {}", quantity(size), with_source(&error)))?;
    Ok(Backing {
        file,
        format: Format::Qcow2,
        block_device: false,
        direct: false,
    })
}

/// Lets QEMU wait for the machine and its disks.
async fn listen(
    machine: &Machine,
    from: &FromSource,
    way: Way,
    copied: Vec<String>,
    confinement: &Confinement,
) -> Result<FromTarget, String> {
    let failed = |error: fairway_machines_qemu::MachineError| with_source(&error);
    let mut authority = None;
    if let Way::Network { is_tls: true, .. } = way {
        let own = secrecy::make(machine.directory(), Side::Server, confinement)?;
        secrecy::trust(machine.directory(), &own, &from.authority, confinement)?;
        meeting::arm(machine, Side::Server).await.map_err(failed)?;
        authority = Some(own);
    }
    let is_tls = authority.is_some();
    // Where it listens, and where the other one finds that.
    let (memory, memory_seen) = meeting_at(machine, way, MEMORY_SOCKET)?;
    let (disks, disks_at) = meeting_at(machine, way, DISKS_SOCKET)?;
    if !copied.is_empty() {
        let served: Vec<(String, String)> = copied
            .iter()
            .map(|name| (name.clone(), argv::node_name("d", name)))
            .collect();
        mirror::serve(machine, &disks, is_tls, &served)
            .await
            .map_err(failed)?;
    }
    let options = migrate::Options {
        is_tls,
        ..migrate::Options::default()
    };
    migrate::prepare(machine, &memory.uri(), &options)
        .await
        .map_err(failed)?;
    Ok(FromTarget {
        migration: from.migration.clone(),
        memory: memory_seen,
        disks_at,
        disks: copied,
        authority,
    })
}

/// A place to listen at, and how it is called elsewhere.
fn meeting_at(machine: &Machine, way: Way, socket: &str) -> Result<(Meeting, Meeting), String> {
    match way {
        Way::Here => Ok((
            Meeting::Unix(socket.to_owned()),
            Meeting::Unix(reachable(machine, socket)),
        )),
        Way::Network { address, .. } => {
            let failed = |error: std::io::Error| format!("no port is free at {address}: {error}");
            // QEMU takes it a moment later; should somebody be quicker, the migration fails and is tried again.
            let listener = std::net::TcpListener::bind((address, 0)).map_err(failed)?;
            let port = listener.local_addr().map_err(failed)?.port();
            let host = address.to_string();
            let at = Meeting::Tcp { host, port };
            Ok((at.clone(), at))
        }
    }
}

/// A path by which another process of this host reaches a socket of a machine, however deep its directory lies.
fn reachable(machine: &Machine, name: &str) -> String {
    let whole = machine.directory().join(name).display().to_string();
    match whole.len() <= MAX_PATH {
        true => whole,
        // QEMU runs in the directory.
        false => format!("/proc/{}/cwd/{name}", machine.pid()),
    }
}
