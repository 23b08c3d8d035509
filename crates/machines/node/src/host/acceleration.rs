//! Whether guests run on the processor, remembered for as long as nothing changes: the program, its version, and the start of
//! the host.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use fairway_machines_qemu::accel::{self, Acceleration};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::HostError;

/// What was found.
const FILE: &str = "host.json";

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Known {
    /// Which QEMU, and which start of the host, it holds for.
    #[serde(flatten)]
    holds_for: HoldsFor,
    /// What QEMU says of its version.
    version: String,
    /// Why guests are emulated; nothing if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    emulated: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HoldsFor {
    program: String,
    /// Inode, size and time of change of the program: an update is another file.
    file: Option<(u64, u64, i64)>,
    boot_id: String,
}

impl HoldsFor {
    fn now(program: &Path) -> Self {
        let found = super::on_path(&program.display().to_string()).unwrap_or_else(|| program.to_owned());
        let file = std::fs::metadata(&found).ok();
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self {
            program: found.display().to_string(),
            file: file.map(|it| (it.ino(), it.size(), it.mtime())),
            boot_id: boot_id.trim().to_owned(),
        }
    }
}

/// QEMU's version and how guests run. `emulated`: why they cannot run on the processor, if that is known already.
pub(super) async fn find(
    program: &Path,
    directory: &Path,
    emulated: Option<String>,
) -> Result<(String, Acceleration), HostError> {
    if let Some(why) = emulated {
        return Ok((version(program).await?, Acceleration::Emulated(why)));
    }
    let holds_for = HoldsFor::now(program);
    if let Some(known) = read(directory).filter(|it| it.holds_for == holds_for && it.holds_for.file.is_some())
    {
        return Ok((known.version, acceleration(known.emulated)));
    }
    let version = version(program).await?;
    let acceleration = accel::probe(program).await;
    let known = Known {
        holds_for,
        version: version.clone(),
        emulated: match &acceleration {
            Acceleration::Kvm => None,
            Acceleration::Emulated(why) => Some(why.clone()),
        },
    };
    if let Err(error) = write(directory, &known) {
        // It is only found out again.
        tracing::debug!(%error, directory = %directory.display(), "what the host can do is not remembered");
    }
    Ok((version, acceleration))
}

fn acceleration(emulated: Option<String>) -> Acceleration {
    emulated.map_or(Acceleration::Kvm, Acceleration::Emulated)
}

async fn version(program: &Path) -> Result<String, HostError> {
    let failed = |why: String| HostError::NoQemu {
        program: program.display().to_string(),
        why,
    };
    let output = Command::new(program).arg("--version").output().await;
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!("it ended with {}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn read(directory: &Path) -> Option<Known> {
    let text = std::fs::read(directory.join(FILE)).ok()?;
    serde_json::from_slice(&text).ok()
}

fn write(directory: &Path, known: &Known) -> std::io::Result<()> {
    let draft = directory.join(format!(".{FILE}"));
    std::fs::create_dir_all(directory)?;
    std::fs::write(&draft, serde_json::to_vec_pretty(known)?)?;
    std::fs::rename(&draft, directory.join(FILE))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A program that says what version it is, and counts how often it was asked.
    fn program(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("qemu");
        let script = "#!/bin/sh\necho asked >>\"$0.asked\"\necho QEMU emulator version 7.2.0\n";
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[tokio::test]
    async fn it_is_found_out_once() {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path());
        let asked = || {
            let text = std::fs::read_to_string(folder.path().join("qemu.asked")).unwrap_or_default();
            text.lines().count()
        };
        let (version, first) = find(&program, folder.path(), None).await.unwrap();
        assert_eq!(version, "QEMU emulator version 7.2.0");
        // It is no QEMU, so nothing boots.
        assert!(matches!(first, Acceleration::Emulated(_)));
        let after_first = asked();
        assert_eq!(find(&program, folder.path(), None).await.unwrap().1, first);
        assert_eq!(asked(), after_first, "nobody was asked again");

        // Another start of the host, or another QEMU: everything may be different.
        let mut known = read(folder.path()).unwrap();
        known.holds_for.boot_id = "another".to_owned();
        write(folder.path(), &known).unwrap();
        find(&program, folder.path(), None).await.unwrap();
        assert!(asked() > after_first);
        std::fs::write(folder.path().join(FILE), "damaged").unwrap();
        find(&program, folder.path(), None).await.unwrap();

        // What was remembered does not count for machines that may not use it.
        let known = Known {
            emulated: None,
            ..read(folder.path()).unwrap()
        };
        write(folder.path(), &known).unwrap();
        let found = find(&program, folder.path(), None).await.unwrap().1;
        assert_eq!(found, Acceleration::Kvm);
        let refused = find(&program, folder.path(), Some("closed".to_owned())).await;
        assert_eq!(refused.unwrap().1, Acceleration::Emulated("closed".to_owned()));
    }
}
