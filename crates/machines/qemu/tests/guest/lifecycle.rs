//! A guest that boots from its disk alone, as anybody's image does, and ends when it is asked to; and machines that do not.

use std::time::Duration;

use fairway_machines_qemu::launch::Adopted;
use fairway_machines_qemu::{Console, Launch, Stopped, adopt, start};

use super::bench::{Boot, PATIENCE, QEMU, bench, shows, words};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_boots_from_its_disk_and_switches_itself_off() {
    let Some(bench) = bench("a_guest_boots_from_its_disk_and_switches_itself_off").await else {
        return;
    };
    let directory = bench.machine("vm");
    let screen = words("-device VGA -vnc unix:live/vnc.sock");
    let line = bench.arguments(&Boot::Disk, &directory.join("root.qcow2"), None, &screen);
    let machine = start(&Launch::new(QEMU, &directory, line)).await.unwrap();
    let console = Console::open(&directory).unwrap();
    shows(&mut console.reader(), "tiny login:").await;
    let picture = machine.screendump().await.unwrap();
    assert!(picture.starts_with(b"\x89PNG"), "{} bytes", picture.len());
    let mut vnc = machine.dial(fairway_machines_qemu::names::VNC).await.unwrap();
    let mut greeting = [0; 4];
    tokio::io::AsyncReadExt::read_exact(&mut vnc, &mut greeting)
        .await
        .unwrap();
    assert_eq!(&greeting, b"RFB ");
    assert_eq!(machine.stop(PATIENCE).await.unwrap(), Stopped::ByGuest);
    let exit = machine.exit().unwrap();
    assert_eq!(exit.reason.as_deref(), Some("guest-shutdown"));
    assert!(exit.by_guest && !exit.is_crash(), "{exit:?}");
    assert!(exit.status.is_some_and(|status| status.success()), "{exit:?}");
    assert!(matches!(adopt(&directory).await.unwrap(), Adopted::Gone));
}

/// The same disk by UEFI. The firmware takes twice the time of everything else, so it is not part of every run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: cargo test -p fairway-machines-qemu --test guest -- --ignored uefi"]
async fn a_guest_boots_by_uefi() {
    let Some(bench) = bench("a_guest_boots_by_uefi").await else {
        return;
    };
    let firmware = "/usr/share/OVMF/OVMF_CODE_4M.fd";
    let directory = bench.machine("vm");
    if std::fs::copy("/usr/share/OVMF/OVMF_VARS_4M.fd", directory.join("vars.fd")).is_err() {
        fairway_machines_required::skipped(
            "a_guest_boots_by_uefi: ovmf is not installed (scripts/tools.sh qemu)",
        );
        return;
    }
    let uefi = words(&format!(
        "-drive if=pflash,format=raw,readonly=on,file={firmware} -drive if=pflash,format=raw,file=vars.fd"
    ));
    let line = bench.arguments(&Boot::Disk, &directory.join("root.qcow2"), None, &uefi);
    let machine = start(&Launch::new(QEMU, &directory, line)).await.unwrap();
    let console = Console::open(&directory).unwrap();
    shows(&mut console.reader(), "tiny login:").await;
    let agent = fairway_machines_qemu::Agent::new(&directory);
    super::bench::eventually("the agent", || agent.ping()).await;
    let look = ["-d".to_owned(), "/sys/firmware/efi".to_owned()];
    let looked = agent
        .execute("/usr/bin/test", &look, None, PATIENCE)
        .await
        .unwrap();
    assert_eq!(looked.code, Some(0), "it was not UEFI that booted");
    assert_eq!(machine.stop(PATIENCE).await.unwrap(), Stopped::ByGuest);
}

/// A machine without a system, which hears no button.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_does_not_listen_is_stopped_nevertheless() {
    let Some(bench) = bench("a_guest_that_does_not_listen_is_stopped_nevertheless").await else {
        return;
    };
    let line = words("-M q35 -accel tcg -m 16 -display none -S");
    let directory = bench.path("deaf");
    let machine = start(&Launch::new(QEMU, &directory, line.clone())).await.unwrap();
    assert_eq!(machine.state().await.unwrap(), "prelaunch");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&directory).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
    // Whoever has it, has it alone.
    match adopt(&directory).await.unwrap() {
        Adopted::Silent(orphan) => assert_eq!(orphan.pid(), machine.pid()),
        other => panic!("{other:?}"),
    }
    let second = start(&Launch::new(QEMU, &directory, line.clone()))
        .await
        .unwrap_err();
    assert!(second.to_string().contains("already"), "{second}");
    assert_eq!(machine.stop(Duration::from_secs(1)).await.unwrap(), Stopped::Quit);
    assert_eq!(machine.exit().unwrap().reason.as_deref(), Some("host-qmp-quit"));

    // Stopped by a signal, it does not even hear QEMU's own protocol.
    let machine = start(&Launch::new(QEMU, &directory, line)).await.unwrap();
    let frozen = std::process::Command::new("kill")
        .args(["-STOP", &machine.pid().to_string()])
        .status();
    assert!(frozen.unwrap().success());
    assert_eq!(machine.stop(Duration::ZERO).await.unwrap(), Stopped::Killed);
    assert!(machine.exit().unwrap().is_crash());

    let wrong = words("-M q35 -accel tcg -display none -device no-such-device");
    let error = start(&Launch::new(QEMU, &directory, wrong))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("no-such-device"), "{error}");
    assert!(matches!(adopt(&directory).await.unwrap(), Adopted::Gone));
}
