//! UEFI variables and the TPM of a machine: files of its own, and the TPM's emulator.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use fairway_machines_plan::argv::FirmwareFiles;
use fairway_machines_plan::machine::{Loader, MachinePlan};
use fairway_machines_qemu::{Confinement, MachineError, names};
use tokio::process::Command;

use crate::host::Facts;

/// The machine's own variables.
const VARIABLES: &str = "vars.fd";
/// What the TPM holds.
const TPM_STATE: &str = "live/tpm";
/// How long the emulator may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes the machine's own variables, if it starts by UEFI. What is there stays.
pub(crate) fn prepare(
    plan: &MachinePlan,
    facts: &Facts,
    directory: &Path,
) -> Result<Option<FirmwareFiles>, String> {
    let Loader::Efi { secure, .. } = plan.firmware.loader else {
        return Ok(None);
    };
    let files = match secure {
        true => facts.firmware.secure.as_ref(),
        false => facts.firmware.plain.as_ref(),
    };
    let Some(files) = files else {
        return Err("this node has no UEFI firmware; install OVMF on it".to_owned());
    };
    let own = directory.join(VARIABLES);
    if !own.exists() {
        let draft = directory.join(format!(".{VARIABLES}"));
        std::fs::copy(&files.variables, &draft)
            .and_then(|_| std::fs::rename(&draft, &own))
            .map_err(|error| {
                format!(
                    "could not copy {} to {}: {error}",
                    files.variables.display(),
                    own.display()
                )
            })?;
    }
    Ok(Some(FirmwareFiles {
        code: files.code.display().to_string(),
        variables: VARIABLES.to_owned(),
    }))
}

/// The emulator of a TPM. It ends with the connection that QEMU holds to it.
#[derive(Debug)]
pub(super) struct Tpm {
    program: PathBuf,
    directory: PathBuf,
    confinement: Confinement,
}

impl Tpm {
    /// The TPM of a machine, if it has one.
    pub(super) fn of(
        plan: &MachinePlan,
        facts: &Facts,
        directory: &Path,
        confinement: &Confinement,
    ) -> Option<Self> {
        plan.devices.tpm?;
        Some(Self {
            program: facts.swtpm.clone()?,
            directory: directory.to_owned(),
            confinement: confinement.clone(),
        })
    }

    /// Starts it, and waits until it listens.
    pub(super) async fn start(&self) -> Result<(), MachineError> {
        let failed = |why: String| MachineError::Start(format!("the TPM's emulator: {why}"));
        let state = self.directory.join(TPM_STATE);
        let made = self.confinement.make(&self.directory);
        let made = made.and_then(|()| self.confinement.make_within(&state));
        made.map_err(|error| failed(error.to_string()))?;
        let socket = self.directory.join(names::TPM);
        let _ = std::fs::remove_file(&socket);
        let line = self.confinement.around(&["setsid".to_owned()], false);
        let mut child = Command::new(&line[0])
            .args(&line[1..])
            .arg(&self.program)
            .args(["socket", "--tpm2", "--tpmstate"])
            .arg(format!("dir={TPM_STATE}"))
            .arg("--ctrl")
            .arg(format!("type=unixio,path={}", names::TPM))
            .args(["--flags", "startup-clear", "--terminate"])
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let listening = async {
            while !socket.exists() {
                if let Ok(Some(status)) = child.try_wait() {
                    return Err(failed(format!("it ended with {status}")));
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok(())
        };
        let outcome = tokio::time::timeout(PATIENCE, listening).await;
        let outcome = outcome.unwrap_or_else(|_| Err(failed("it does not listen".to_owned())));
        if outcome.is_err() {
            let _ = child.kill().await;
        } else {
            // It outlives Fairway as QEMU does; whoever is there when it ends takes notice.
            tokio::spawn(async move { child.wait().await });
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::PermissionsExt as _;

    use fairway_machines_qemu::accel::Acceleration;

    use super::*;
    use crate::host::{Firmware, FirmwareOfHost};

    fn facts(folder: &Path) -> Facts {
        let files = |name: &str| FirmwareOfHost {
            code: folder.join(format!("{name}.code")),
            variables: folder.join(format!("{name}.vars")),
        };
        for name in ["plain", "secure"] {
            std::fs::write(folder.join(format!("{name}.vars")), name).unwrap();
        }
        Facts {
            qemu: (7, 2),
            qemu_text: String::new(),
            acceleration: Acceleration::Emulated(String::new()),
            firmware: Firmware {
                plain: Some(files("plain")),
                secure: Some(files("secure")),
            },
            swtpm: Some(folder.join("swtpm")),
            hugepages: BTreeSet::new(),
            processor: None,
        }
    }

    fn planned(spec: &serde_json::Value) -> MachinePlan {
        use fairway_machines_plan::{plan, settings, view};
        let object = serde_json::json!({"metadata": {"name": "a", "namespace": "n"}, "spec": spec});
        let vmi = view::read("VirtualMachineInstance", &object).unwrap();
        let host = plan::Capabilities {
            tpm: true,
            uefi: true,
            secure_boot: true,
            ..plan::Capabilities::default()
        };
        plan::plan(
            &vmi,
            plan::Origin::default(),
            &host,
            &settings::Settings::default(),
        )
    }

    #[test]
    fn variables_are_the_machines_own_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let facts = facts(folder.path());
        let bios = planned(&serde_json::json!({"domain": {"devices": {}}}));
        assert_eq!(prepare(&bios, &facts, folder.path()), Ok(None));
        let secure =
            planned(&serde_json::json!({"domain": {"devices": {}, "firmware": {"bootloader": {"efi": {}}}}}));
        let files = prepare(&secure, &facts, folder.path()).unwrap().unwrap();
        assert!(files.code.ends_with("secure.code"), "{files:?}");
        let own = folder.path().join(VARIABLES);
        assert_eq!(std::fs::read_to_string(&own).unwrap(), "secure");
        std::fs::write(&own, "changed by the guest").unwrap();
        prepare(&secure, &facts, folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&own).unwrap(), "changed by the guest");
    }

    #[tokio::test]
    async fn the_emulator_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let facts = facts(folder.path());
        let plan = planned(&serde_json::json!({"domain": {"devices": {"tpm": {}}}}));
        let tpm = Tpm::of(&plan, &facts, folder.path(), &Confinement::default()).unwrap();
        let program = |script: &str| {
            let path = folder.path().join("swtpm");
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        program("exit 3");
        let error = tpm.start().await.unwrap_err().to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        program("touch live/tpm.sock");
        tpm.start().await.unwrap();
        let none = planned(&serde_json::json!({"domain": {"devices": {}}}));
        assert!(Tpm::of(&none, &facts, folder.path(), &Confinement::default()).is_none());
    }
}
