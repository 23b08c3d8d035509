//! What this host has for machines: QEMU and its version, whether guests run on the processor, firmware, a TPM's emulator.
//!
//! It is found out when the first machine needs it, once, as booting a guest for the probe takes up to ten seconds on a host whose
//! KVM is broken; what was found is kept in a file and holds until QEMU or the host is another.

mod acceleration;
mod cgroups;
mod firmware;
mod isolation;
mod processors;
mod users;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairway_machines_plan::argv::Accelerator;
use fairway_machines_plan::compatibility::{self, RunsOn};
use fairway_machines_plan::plan::Capabilities;
use fairway_machines_qemu::accel::Acceleration;
use tokio::sync::{Notify, OnceCell};

pub use firmware::{Files as FirmwareOfHost, Firmware};
pub(crate) use isolation::Isolation;
pub(crate) use processors::Processors;

/// Why no machine can run here.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HostError {
    /// There is no QEMU.
    #[error(
        "{program} cannot be run: {why}; install QEMU on this node (on Debian: apt-get install qemu-system-x86 qemu-utils)"
    )]
    NoQemu {
        /// What was tried.
        program: String,
        /// What the system says.
        why: String,
    },
}

/// Which start of which host this is, and which part of its files one sees here.
pub fn identity() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let files = std::fs::read_link("/proc/self/ns/mnt").unwrap_or_default();
    format!("{} {}", boot.trim(), files.display())
}

/// What the host has.
#[derive(Debug, Clone)]
pub struct Facts {
    /// QEMU's version.
    pub qemu: (u32, u32),
    /// The same with everything that belongs to it, for people.
    pub qemu_text: String,
    /// How guests run.
    pub acceleration: Acceleration,
    /// UEFI.
    pub firmware: Firmware,
    /// The emulator of TPMs.
    pub swtpm: Option<PathBuf>,
    /// Sizes of large pages that are kept ready, in bytes.
    pub hugepages: BTreeSet<u64>,
    /// The processor, if it can be told from others.
    pub processor: Option<String>,
}

impl Facts {
    /// What machines can ask for.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            kvm: self.acceleration == Acceleration::Kvm,
            hugepages: self.hugepages.clone(),
            // Who knows is `Processors`.
            dedicated_cpus: false,
            tpm: self.swtpm.is_some(),
            uefi: self.firmware.plain.is_some(),
            secure_boot: self.firmware.secure.is_some(),
            qemu: self.qemu,
        }
    }

    /// QEMU's version alone, such as `7.2.22`.
    pub(crate) fn qemu_version(&self) -> &str {
        let is_version = |word: &&str| word.contains('.') && word.starts_with(|it: char| it.is_ascii_digit());
        let mut words = self.qemu_text.split_ascii_whitespace();
        words.find(is_version).unwrap_or_default()
    }

    /// What guests run on, for those that move.
    pub(crate) fn runs_on(&self) -> RunsOn {
        RunsOn::new(self.accelerator(), self.processor.as_deref())
    }

    /// How guests run, for QEMU's arguments.
    pub fn accelerator(&self) -> Accelerator {
        match self.acceleration {
            Acceleration::Kvm => Accelerator::Kvm,
            Acceleration::Emulated(_) => Accelerator::Tcg,
        }
    }
}

/// The host.
#[derive(Debug)]
pub struct Host {
    program: PathBuf,
    directory: PathBuf,
    /// Why machines must be emulated, if they must.
    emulated: Option<String>,
    facts: OnceCell<Arc<Facts>>,
    found: Notify,
}

impl Host {
    /// A host whose machines are run by this QEMU; what is found out is kept in the directory. `emulated`: why they cannot run on the
    /// processor, if that is known already.
    pub fn new(program: impl Into<PathBuf>, directory: impl Into<PathBuf>, emulated: Option<String>) -> Self {
        Self {
            program: program.into(),
            directory: directory.into(),
            emulated,
            facts: OnceCell::new(),
            found: Notify::new(),
        }
    }

    /// QEMU.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// What the host has. Whoever asks first waits for it; a failure is not kept, as somebody may install what is missing.
    pub async fn facts(&self) -> Result<Arc<Facts>, HostError> {
        let found = self.facts.get_or_try_init(|| async {
            let facts = self.look().await?;
            self.found.notify_one();
            Ok(facts)
        });
        found.await.cloned()
    }

    /// Waits until something is found out.
    pub(crate) async fn news(&self) {
        self.found.notified().await;
    }

    /// Whether there is a QEMU, which costs nothing to ask.
    pub(crate) fn has_program(&self) -> bool {
        self.program.is_file() || on_path(&self.program.display().to_string()).is_some()
    }

    /// What the host has, if somebody has asked before.
    pub fn known(&self) -> Option<Arc<Facts>> {
        self.facts.get().cloned()
    }

    async fn look(&self) -> Result<Arc<Facts>, HostError> {
        let (qemu_text, acceleration) =
            acceleration::find(&self.program, &self.directory, self.emulated.clone()).await?;
        Ok(Arc::new(Facts {
            qemu: version(&qemu_text),
            qemu_text,
            acceleration,
            firmware: firmware::find(Path::new("/")),
            swtpm: on_path("swtpm"),
            hugepages: hugepages(Path::new(HUGEPAGES)).into_keys().collect(),
            processor: processor(),
        }))
    }
}

/// Major and minor of `QEMU emulator version 7.2.22 (Debian ...)`.
fn version(text: &str) -> (u32, u32) {
    let numbers = text.split_ascii_whitespace().find_map(|word| {
        let mut parts = word.split('.').map(str::parse::<u32>);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    });
    numbers.unwrap_or_default()
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|it| it.is_file())
}

/// The name of this host's processor.
pub(crate) fn processor() -> Option<String> {
    let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    compatibility::processor(&told)
}

/// Where the kernel says which large pages it keeps.
pub(crate) const HUGEPAGES: &str = "/sys/kernel/mm/hugepages";

/// Bytes that the host keeps ready in large pages, by the size of a page.
pub(crate) fn hugepages(folder: &Path) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let size = name.to_str().and_then(|it| {
            it.strip_prefix("hugepages-")?
                .strip_suffix("kB")?
                .parse::<u64>()
                .ok()
        });
        let count = std::fs::read_to_string(entry.path().join("nr_hugepages")).unwrap_or_default();
        let count = count.trim().parse::<u64>().unwrap_or(0);
        if let Some(size) = size.filter(|_| count > 0) {
            found.insert(size << 10, count.saturating_mul(size << 10));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        for (text, expected) in [
            ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)", (7, 2)),
            ("QEMU emulator version 10.0.0", (10, 0)),
            ("something else", (0, 0)),
        ] {
            assert_eq!(version(text), expected, "{text}");
        }
    }

    #[test]
    fn only_pages_that_are_there_count() {
        let folder = tempfile::tempdir().unwrap();
        for (size, count) in [
            ("hugepages-2048kB", "4\n"),
            ("hugepages-1048576kB", "0\n"),
            ("other", "1\n"),
        ] {
            let path = folder.path().join(size);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("nr_hugepages"), count).unwrap();
        }
        assert_eq!(hugepages(folder.path()), BTreeMap::from([(2 << 20, 8 << 20)]));
        assert!(hugepages(&folder.path().join("none")).is_empty());
    }

    #[tokio::test]
    async fn without_qemu_the_next_step_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::new("/no/such/qemu", folder.path(), None);
        let error = host.facts().await.unwrap_err().to_string();
        assert!(error.contains("apt-get install qemu-system-x86"), "{error}");
        assert!(host.known().is_none());
    }
}
