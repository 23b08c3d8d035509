//! Whether machines can run on the processor itself.
//!
//! A device file for KVM proves nothing: there are hosts on which it can be opened and no guest ever runs. So a guest is
//! booted: firmware, then a boot sector of a few bytes, which ends QEMU with a code of its own. Only if that happens within
//! seconds machines get KVM; otherwise their processors are emulated, which works everywhere.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// How long the guest may take. It needs less than a second.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the boot sector writes to the port, and with what code QEMU ends then.
const WORD: u8 = 0x10;
const CODE: i32 = (WORD as i32) << 1 | 1;

/// How machines run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acceleration {
    /// On the processor.
    Kvm,
    /// Emulated; why.
    Emulated(String),
}

impl Acceleration {
    /// QEMU's word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Emulated(_) => "tcg",
        }
    }
}

/// Finds out how machines run on this host.
pub async fn probe(program: &Path) -> Acceleration {
    if let Err(error) = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm")
    {
        return Acceleration::Emulated(format!("/dev/kvm cannot be used: {error}"));
    }
    match boots(program, &["-accel", "kvm", "-cpu", "host"]).await {
        Ok(()) => Acceleration::Kvm,
        Err(why) => Acceleration::Emulated(format!("a guest does not boot with KVM: {why}")),
    }
}

/// Boots a guest of a few bytes.
async fn boots(program: &Path, how: &[&str]) -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let disk = directory.path().join("boot.raw");
    std::fs::write(&disk, boot_sector()).map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args([
            "-M",
            "q35",
            "-m",
            "16",
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
        ])
        .args(how)
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"])
        .arg("-drive")
        .arg(format!("file={},format=raw,if=virtio", disk.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
    let complaint = child.stderr.take();
    let ended = tokio::time::timeout(PATIENCE, child.wait()).await;
    let Ok(ended) = ended else {
        let _ = child.kill().await;
        return Err(format!("nothing happens within {} s", PATIENCE.as_secs()));
    };
    let status = ended.map_err(|error| error.to_string())?;
    if status.code() == Some(CODE) {
        return Ok(());
    }
    let mut text = Vec::new();
    if let Some(complaint) = complaint {
        use tokio::io::AsyncReadExt as _;
        let _ = complaint.take(4096).read_to_end(&mut text).await;
    }
    let text = String::from_utf8_lossy(&text);
    Err(match text.lines().last() {
        Some(line) => format!("QEMU ended with {status}: {line}"),
        None => format!("QEMU ended with {status}"),
    })
}

/// `mov dx, 0xf4; mov al, WORD; out dx, al`, and then nothing for ever.
fn boot_sector() -> Vec<u8> {
    let mut sector = vec![0; 1 << 20];
    sector[..9].copy_from_slice(&[0xba, 0xf4, 0x00, 0xb0, WORD, 0xee, 0xf4, 0xeb, 0xfd]);
    sector[510..512].copy_from_slice(&[0x55, 0xaa]);
    sector
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probe itself: where emulation is, the little guest must boot.
    #[tokio::test]
    async fn the_little_guest_boots() {
        let program = Path::new("qemu-system-x86_64");
        if std::process::Command::new(program)
            .arg("--version")
            .output()
            .is_err()
        {
            fairway_machines_required::skipped("qemu-system-x86_64 is not installed (scripts/tools.sh qemu)");
            return;
        }
        boots(program, &["-accel", "tcg"]).await.unwrap();
        // Whatever the host is, the answer has a reason.
        if let Acceleration::Emulated(why) = probe(program).await {
            assert!(!why.is_empty());
        }
    }

    #[tokio::test]
    async fn a_program_that_is_no_qemu_boots_nothing() {
        let why = boots(Path::new("/bin/false"), &[]).await.unwrap_err();
        assert!(why.contains("ended"), "{why}");
        assert!(boots(Path::new("/no/such/qemu"), &[]).await.is_err());
    }
}
