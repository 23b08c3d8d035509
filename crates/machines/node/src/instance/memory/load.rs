//! Memory is brought back: into a machine that was started and has not run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fairway_machines_image::sealed;
use fairway_machines_qemu::{Confinement, Machine, MachineError, MemoryFile};
use fairway_machines_volumes::moment::{self, MEMORY_KEY};

use super::Resume;

/// How long memory may take: some gigabytes in a second where nothing else is done, much less on a busy disk.
const LOADING: Duration = Duration::from_secs(1800);
/// The copy that QEMU is given, which it writes to, in the machine's directory.
const COPY: &str = "memory.luks";

/// Why a machine that was to go on does not.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// Its memory cannot be used: it starts from its disks.
    Memory(String),
    /// It cannot be started at all.
    Start(MachineError),
}

impl Resume {
    /// Brings memory back and lets the guest go on, unless it is to wait. `machines` is where this node has what belongs to machines, and
    /// `volumes` are the directories of the machine's disks: when the guest runs, they are of no moment any more.
    pub(crate) async fn load(
        &self,
        machine: &Machine,
        confinement: &Confinement,
        machines: &Path,
        volumes: &[PathBuf],
    ) -> Result<(), LoadError> {
        let copy = machine.directory().join(COPY);
        let loaded = self.load_from(machine, confinement, machines, &copy).await;
        let _ = std::fs::remove_file(&copy);
        let unmarked = volumes.iter().try_for_each(|it| moment::unmark(it));
        if let Err(why) = loaded {
            let _ = machine.stop(Duration::ZERO).await;
            return Err(LoadError::Memory(why));
        }
        let resumed = match unmarked {
            Err(error) => Err(error.to_string()),
            Ok(()) if self.built.plan.start_paused => Ok(()),
            Ok(()) => machine.resume().await.map_err(|error| error.to_string()),
        };
        if let Err(why) = resumed {
            let _ = machine.stop(Duration::ZERO).await;
            return Err(LoadError::Start(MachineError::Failed(format!(
                "a machine that went on from its memory could not be let run: {why}"
            ))));
        }
        Ok(())
    }

    async fn load_from(
        &self,
        machine: &Machine,
        confinement: &Confinement,
        machines: &Path,
        copy: &Path,
    ) -> Result<(), String> {
        let cpu = &self.built.plan.cpu;
        let count = self
            .built
            .sockets
            .saturating_mul(cpu.cores)
            .saturating_mul(cpu.threads);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let processors = machine.set_processors(count).await;
        processors.map_err(|error| error.to_string())?;
        let (from, to, key) = (self.memory.clone(), copy.to_owned(), machines.join(MEMORY_KEY));
        let prepared = tokio::task::spawn_blocking(move || {
            sealed::copy(&from, &to)?;
            sealed::key(&key)
        });
        let prepared = prepared.await.map_err(|error| error.to_string())?;
        let key = prepared.map_err(|error| format!("{error}: {}", source(&error)))?;
        confinement
            .give(copy)
            .map_err(|error| format!("{} cannot be given to the machine: {error}", copy.display()))?;
        let file = MemoryFile {
            path: Path::new(COPY),
            key: &key,
        };
        let loaded = machine.load_memory(file, LOADING).await;
        loaded.map_err(|error| error.to_string())
    }
}

fn source(error: &dyn std::error::Error) -> String {
    error.source().map(ToString::to_string).unwrap_or_default()
}
