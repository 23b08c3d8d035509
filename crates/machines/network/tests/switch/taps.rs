//! Cards that are devices of the kernel: the same switch, and what it lets the kernel carry. Needs root, ip and nft; without them nothing is tried.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use fairway_machines_network::Space;
use fairway_machines_network::frames::Mac;
use fairway_machines_network::frames::build::{self, Route};
use fairway_machines_network::frames::packet::{Ipv4, Transport};
use fairway_machines_tap::guest_device;
use serde_json::json;

use crate::world::{World, ip};

const PATIENCE: Duration = Duration::from_secs(20);

/// What is removed at the end, however it comes.
struct Namespace(Space);

impl Drop for Namespace {
    fn drop(&mut self) {
        self.0.remove_unless_used();
    }
}

/// A card of a guest without a guest: frames go in and come out.
struct Card {
    number: u8,
    file: OwnedFd,
}

impl Card {
    fn send(&self, to: u8, text: &[u8]) {
        let mac = |number| Mac([2, 0, 0, 0, 0, number]);
        let route = Route::new(mac(self.number), mac(to), ip(self.number), ip(to));
        let frame = build::udp(route, 5000 + u16::from(self.number), 5000 + u16::from(to), text);
        rustix::io::write(&self.file, &frame).unwrap();
    }

    /// The texts of datagrams that are there.
    fn heard(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut frame = [0; 2048];
        while let Ok(length) = rustix::io::read(&self.file, &mut frame) {
            if let Ok(packet) = Ipv4::read(&frame[..length])
                && packet.transport == Transport::Udp
            {
                all.push(packet.segment(&frame[..length])[8..].to_vec());
            }
        }
        all
    }
}

fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends until it is heard, and says whether it was without the switch.
fn exchange(world: &World, from: &Card, to: &Card, text: &[u8]) -> bool {
    eventually("a datagram arrives", || {
        let before = world.counters().frames;
        from.send(to.number, text);
        let heard = eventually("something arrives, or nothing", || {
            let heard = to.heard();
            (!heard.is_empty() || world.counters().frames > before).then_some(heard)
        });
        let late = if heard.is_empty() { to.heard() } else { heard };
        late.iter()
            .any(|it| it == text)
            .then(|| world.counters().frames == before)
    })
}

#[test]
fn the_kernel_carries_what_the_switch_has_allowed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let space = match Space::open(folder.path()) {
        Ok(space) => Namespace(space),
        Err(missing) => return println!("not tried: {missing}"),
    };
    let mut world = World::new(&[(2, "shop"), (3, "shop"), (4, "bank")]);
    world.network = None;
    world.space = Some(space.0.clone());
    // Nobody listens on the sockets that cards are called by.
    let paths: Vec<_> = world.guests.iter().map(|guest| guest.path.clone()).collect();
    for path in &paths {
        std::fs::remove_file(path).unwrap();
    }
    let made = std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            let inside = space.0.enter().unwrap();
            let make = |path: &std::path::PathBuf| inside.make(&guest_device(path)).unwrap();
            paths.iter().map(make).collect::<Vec<_>>()
        });
        inside.join().unwrap()
    });
    let cards: Vec<Card> = (2..)
        .zip(made)
        .map(|(number, file)| Card { number, file })
        .collect();
    let [one, two, stranger] = cards.as_slice() else {
        panic!();
    };
    world.start();
    eventually("all are connected", || {
        (world.counters().connected_ports == 3).then_some(())
    });

    // Both speak, and as they do so often, the kernel takes over.
    eventually("the kernel carries it", || {
        let there = exchange(&world, one, two, b"question");
        let back = exchange(&world, two, one, b"answer");
        (there && back).then_some(())
    });
    // In the name of the other, from the wrong card: the switch sees it, and drops it.
    let before = world.counters();
    let forged = Card {
        number: 2,
        file: stranger.file.try_clone().unwrap(),
    };
    forged.send(3, b"forged");
    eventually("it came to the switch", || {
        (world.counters().frames > before.frames).then_some(())
    });
    assert!(!two.heard().contains(&b"forged".to_vec()));
    stranger.send(3, b"of another tenant");
    assert!(!two.heard().contains(&b"of another tenant".to_vec()));

    // A policy takes hold at once, also of what the kernel carried.
    world.policies = vec![json!({"podSelector": {"matchLabels": {"vm": "3"}}, "policyTypes": ["Ingress"]})];
    world.apply();
    let before = world.counters().frames;
    for _ in 0..50 {
        one.send(3, b"after the policy");
    }
    eventually("the switch sees every one", || {
        (world.counters().frames >= before + 50).then_some(())
    });
    assert_eq!(two.heard(), Vec::<Vec<u8>>::new());
    world.policies.clear();
    world.apply();
    exchange(&world, one, two, b"allowed again");

    // A new switch finds the cards again.
    world.network = None;
    world.start();
    eventually("all are connected again", || {
        (world.counters().connected_ports == 3).then_some(())
    });
    exchange(&world, one, two, b"to the new switch");
    // Nothing is left when the cards are gone.
    drop(forged);
    drop(cards);
    world.network = None;
    let path = space.0.path();
    eventually("the namespace can be removed", || {
        space.0.remove_unless_used();
        (!path.exists()).then_some(())
    });
}
