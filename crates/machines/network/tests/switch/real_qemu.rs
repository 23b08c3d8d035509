//! The same with a real QEMU, where there is one: its network boot ROM is a guest that asks for an address.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::world::World;

struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A machine without a disk, which boots from the network. `None`: there is no QEMU, or no ROM to boot.
fn start(socket: &Path, monitor: &Path) -> Option<Machine> {
    let has_rom = [
        "/usr/lib/ipxe/qemu/pxe-virtio.rom",
        "/usr/share/qemu/pxe-virtio.rom",
    ]
    .iter()
    .any(|path| Path::new(path).exists());
    if !has_rom {
        return None;
    }
    let child = Command::new("qemu-system-x86_64")
        .args([
            "-M",
            "q35",
            "-accel",
            "tcg",
            "-m",
            "64",
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
        ])
        .arg("-qmp")
        .arg(format!("unix:{},server=on,wait=off", monitor.display()))
        .arg("-netdev")
        .arg(format!(
            "stream,id=n0,server=on,addr.type=unix,addr.path={}",
            socket.display()
        ))
        .args([
            "-device",
            "virtio-net-pci,netdev=n0,mac=02:00:00:00:00:02,bootindex=0",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    Some(Machine(child))
}

fn reset(monitor: &Path) {
    let mut socket = UnixStream::connect(monitor).unwrap();
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
    lines.next().unwrap().unwrap();
    for command in ["qmp_capabilities", "system_reset"] {
        socket
            .write_all(format!("{{\"execute\":\"{command}\"}}\n").as_bytes())
            .unwrap();
        while !lines.next().unwrap().unwrap().contains("\"return\"") {}
    }
}

/// Waits for an offer and an acknowledgement.
fn wait_for_lease(world: &World, what: &str) {
    let start = Instant::now();
    while world.counters().answered < 2 {
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "waited in vain: {what}: {:?}",
            world.counters()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_real_machine_asks_for_its_address_again_after_the_switch_was_killed() {
    let mut world = World::new(&[(2, "shop")]);
    // QEMU takes the guest's place at its socket.
    let path = world.guests[0].path.clone();
    world.guests[0].leave();
    let monitor = path.with_extension("qmp");
    let Some(_machine) = start(&path, &monitor) else {
        fairway_machines_required::skipped(
            "qemu-system-x86_64 and its boot ROM for virtio are not installed (scripts/tools.sh qemu)",
        );
        return;
    };
    wait_for_lease(&world, "the first lease");
    assert_eq!(world.counters().connected_ports, 1);
    world.network = None;
    world.start();
    reset(&monitor);
    wait_for_lease(&world, "a lease from the new switch");
}
