//! What QEMU itself says to the arguments: it starts, says hello on its monitor, and is told to go.

use std::process::Command;

use super::*;

const QEMU: &str = "qemu-system-x86_64";

fn has_qemu() -> bool {
    let is_there = Command::new(QEMU).arg("--version").output().is_ok();
    if !is_there {
        fairway_machines_required::skipped("qemu-system-x86_64 is not installed");
    }
    is_there
}

/// QEMU itself takes the arguments: it starts, says hello on its monitor, and is told to go.
#[test]
fn qemu_takes_them() {
    if !has_qemu() {
        return;
    }
    for (name, spec) in [("plain", PLAIN), ("rich", RICH)] {
        let mut plan = planned(spec);
        if let crate::machine::Loader::Efi { secure, .. } = &mut plan.firmware.loader {
            // That is the next test.
            *secure = false;
        }
        if let Err(why) = run_qemu(plan, ("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd")) {
            panic!("{name}: {why}");
        }
    }
}

/// Firmware that only starts what is signed, and keeps its variables where only system management gets at them.
#[test]
fn qemu_takes_secure_boot() {
    let files = ("OVMF_CODE_4M.ms.fd", "OVMF_VARS_4M.ms.fd");
    if !has_qemu() {
        return;
    }
    if !std::path::Path::new(FIRMWARE).join(files.0).exists() {
        fairway_machines_required::skipped("the firmware for secure boot is not installed (ovmf)");
        return;
    }
    let plan = planned(RICH);
    let secure = crate::machine::Loader::Efi {
        secure: true,
        persistent: true,
    };
    assert_eq!(plan.firmware.loader, secure);
    assert!(plan.board.smm, "the lock is of no use without it");
    run_qemu(plan, files).unwrap();
}

/// Where the host keeps large pages, QEMU gets them; where it has none, QEMU understands what is wanted and says that there is no memory, and the
/// instance would have been told before.
#[test]
fn qemu_takes_large_pages() {
    if !has_qemu() {
        return;
    }
    let spec = PLAIN.replace(
        "memory: {guest: 512Mi}",
        "memory: {guest: 64Mi, hugepages: {pageSize: 2Mi}}",
    );
    let without = planned(&spec);
    assert_eq!(without.memory.hugepages, None);
    let told = without
        .unsupported
        .iter()
        .find(|it| it.field == "domain.memory.hugepages");
    let told = told.map(ToString::to_string).unwrap_or_default();
    assert!(told.contains("keeps no pages of 2Mi ready"), "{told}");

    let capable = Capabilities {
        hugepages: [2 << 20].into(),
        ..Capabilities::default()
    };
    let vmi = crate::plan::tests::instance(&spec);
    let plan = plan(&vmi, Origin::default(), &capable, &Settings::default());
    assert_eq!(plan.memory.hugepages, Some(2 << 20));
    let free = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    let free: u64 = free.ok().and_then(|it| it.trim().parse().ok()).unwrap_or(0);
    match (free >= 32, run_qemu(plan, ("", ""))) {
        (true, result) => result.unwrap(),
        (false, Ok(())) => panic!("there are {free} large pages, and QEMU has 32 of them"),
        (false, Err(why)) => {
            let is_memory =
                why.contains("Cannot allocate memory") || why.contains("unable to map backing store");
            assert!(is_memory, "{why}");
        }
    }
}

const FIRMWARE: &str = "/usr/share/OVMF";

/// Runs a machine that does nothing with files of firmware; why not, in QEMU's words.
fn run_qemu(mut plan: MachinePlan, (code, variables): (&str, &str)) -> Result<(), String> {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap().to_owned();
    // A TPM needs its emulator, which is another program.
    plan.devices.tpm = None;
    let layout = Layout::of(&plan).unwrap();
    let mut host = host(&plan, &path);
    host.stopped = true;
    std::fs::create_dir(directory.path().join("disks")).unwrap();
    for backing in host.backings.values_mut() {
        std::fs::write(&backing.file, vec![0; 1 << 20]).unwrap();
        backing.format = Format::Raw;
        // Not every file system of a test has it.
        backing.direct = false;
    }
    for disk in &mut plan.disks {
        disk.cache = crate::machine::Cache::WriteBack;
        disk.native_io = false;
    }
    if matches!(plan.firmware.loader, crate::machine::Loader::Efi { .. }) {
        let code = format!("{FIRMWARE}/{code}");
        if std::fs::metadata(&code).is_err() {
            plan.firmware.loader = crate::machine::Loader::Bios { on_serial: false };
        } else {
            std::fs::copy(format!("{FIRMWARE}/{variables}"), format!("{path}/vars.fd")).unwrap();
            host.firmware.as_mut().unwrap().code = code;
        }
    }
    let arguments = argv(&plan, &host, &layout).unwrap();
    std::fs::create_dir(format!("{path}/{LIVE}")).unwrap();
    // What whoever starts QEMU adds, as far as it matters here.
    let held = "-no-user-config -nodefaults -qmp unix:qmp.sock,server=on,wait=off";
    let mut child = Command::new(QEMU)
        .args(&arguments)
        .args(held.split(' '))
        .current_dir(directory.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let stream = loop {
        if let Ok(stream) = UnixStream::connect(directory.path().join("qmp.sock")) {
            break stream;
        }
        if let Some(status) = child.try_wait().unwrap() {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("QEMU ended ({status}): {said}"));
        }
        assert!(Instant::now() < deadline, "QEMU does not answer");
        std::thread::sleep(Duration::from_millis(50));
    };
    let ended = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("QEMU ended ({}): {said}", output.status)),
        }
    };
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    // The socket is there before memory is.
    match lines.next() {
        Some(Ok(greeting)) => assert!(greeting.contains("QMP")),
        _ => return ended(child),
    }
    let mut stream = stream;
    let told = stream.write_all(b"{\"execute\":\"qmp_capabilities\"}{\"execute\":\"quit\"}");
    drop(told);
    ended(child)
}
