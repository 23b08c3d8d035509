//! The kernel's share of the work, where cards are devices of its own (`fairway-machines-tap`): a thread in the network namespace that has them.
//!
//! Everything that runs a program or may wait happens there: joining a card's two devices, telling the kernel of connections that it may
//! carry, and having it forget them. Orders are carried out in the order in which they come, so that what was offered under an older
//! picture of the world is forgotten with it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairway_machines_frames::PortId;
use fairway_machines_frames::decide::Offer;
use fairway_machines_tap::{Carried, Inside, Missing, Space, guest_device, switch_device};
use tokio::sync::{mpsc, oneshot};

use crate::state::Core;

/// Orders that wait. Offers beyond it are dropped: the switch carries on, and offers again.
const WAITING: usize = 256;
/// Connections that are told with one program.
const AT_ONCE: usize = 512;
/// How often a card's device is looked for.
const LOOK: Duration = Duration::from_secs(1);

enum Order {
    Join(PathBuf, oneshot::Sender<Result<Option<Joined>, Missing>>),
    /// Whether the device is still the one that was joined.
    Look(Place, oneshot::Sender<bool>),
    Part(Place),
    Carry(Vec<Carried>),
    Forget(oneshot::Sender<()>),
}

/// A device that was joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) device: String,
    /// The switch's own.
    switch: String,
    index: u32,
    /// How often all rules had to be thrown away before.
    epoch: u64,
}

/// The switch's end of a card.
pub(crate) struct Joined {
    pub(crate) file: OwnedFd,
    pub(crate) place: Place,
}

/// The thread, as others hold it. It ends when nobody does.
#[derive(Clone)]
pub(crate) struct Kernel(mpsc::Sender<Order>);

impl Kernel {
    pub(crate) fn start(space: Space) -> std::io::Result<Self> {
        let (orders, received) = mpsc::channel(WAITING);
        std::thread::Builder::new()
            .name("taps".into())
            .spawn(move || match space.enter() {
                Ok(inside) => Worker::new(inside).run(received),
                Err(error) => tracing::error!(%error, "machines with devices of the kernel have no network"),
            })?;
        Ok(Self(orders))
    }

    /// Joins a card to the switch, if its device is there.
    pub(crate) async fn join(&self, card: &Path) -> Result<Option<Joined>, Missing> {
        let (done, joined) = oneshot::channel();
        let _ = self.0.send(Order::Join(card.to_owned(), done)).await;
        joined.await.unwrap_or(Ok(None))
    }

    /// Waits until a device that was joined is gone, or another.
    pub(crate) async fn until_gone(&self, place: &Place) {
        loop {
            tokio::time::sleep(LOOK).await;
            let (done, answer) = oneshot::channel();
            let _ = self.0.send(Order::Look(place.clone(), done)).await;
            if !answer.await.unwrap_or(false) {
                return;
            }
        }
    }

    /// A card is no longer the switch's business.
    pub(crate) fn part(&self, place: Place) {
        // What is left over is replaced when the card is joined again.
        let _ = self.0.try_send(Order::Part(place));
    }

    /// Has the kernel carry what it can of what is offered.
    pub(crate) fn carry(&self, offers: Vec<Carried>) {
        if !offers.is_empty() {
            let _ = self.0.try_send(Order::Carry(offers));
        }
    }

    /// Has the kernel carry nothing by itself any more; `done` when that is so.
    pub(crate) async fn forget(&self, done: oneshot::Sender<()>) {
        // If the thread is gone, so are its devices.
        let _ = self.0.send(Order::Forget(done)).await;
    }
}

impl Core {
    /// A port that was a device of the kernel is none any more.
    pub(crate) fn part_device(&mut self, port: PortId) {
        if let (Some(place), Some(kernel)) = (self.devices.remove(&port), &self.kernel) {
            kernel.part(place);
        }
    }

    /// Tells the kernel of busy connections between its own devices.
    pub(crate) fn pass_on_offers(&mut self) {
        let Some(kernel) = &self.kernel else {
            return;
        };
        let offers = self.switch.take_offers();
        let carried = offers.into_iter().filter_map(|offer| {
            let Offer {
                from,
                to,
                from_mac,
                to_mac,
                tuple,
            } = offer;
            Some(Carried {
                from: self.devices.get(&from)?.device.clone(),
                to: self.devices.get(&to)?.device.clone(),
                from_mac: from_mac.0,
                to_mac: to_mac.0,
                protocol: tuple.protocol,
                source: (tuple.src, tuple.sport),
                destination: (tuple.dst, tuple.dport),
            })
        });
        kernel.carry(carried.collect());
    }
}

struct Worker {
    inside: Inside,
    epoch: u64,
    /// Whether the kernel carries anything.
    carries: bool,
}

impl Worker {
    fn new(inside: Inside) -> Self {
        Self {
            inside,
            epoch: 0,
            carries: false,
        }
    }

    fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        // What an earlier switch allowed is not allowed by this one yet.
        self.carries = true;
        self.forget();
        let mut next = None;
        while let Some(order) = next.take().or_else(|| orders.blocking_recv()) {
            match order {
                Order::Join(card, done) => {
                    let _ = done.send(self.join(&card));
                }
                Order::Look(place, done) => {
                    let is_same = place.epoch == self.epoch;
                    let _ = done.send(is_same && self.inside.index(&place.device) == Some(place.index));
                }
                Order::Part(place) => self.inside.part(&place.device, &place.switch),
                Order::Carry(mut all) => {
                    while all.len() < AT_ONCE {
                        match orders.try_recv() {
                            Ok(Order::Carry(more)) => all.extend(more),
                            Ok(other) => {
                                next = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    self.carry(&all);
                }
                Order::Forget(done) => {
                    self.forget();
                    let _ = done.send(());
                }
            }
        }
        self.forget();
    }

    fn join(&self, card: &Path) -> Result<Option<Joined>, Missing> {
        let (device, switch) = (guest_device(card), switch_device(card));
        let Some(index) = self.inside.index(&device) else {
            return Ok(None);
        };
        let file = self.inside.join(&device, &switch)?;
        let place = Place {
            device,
            switch,
            index,
            epoch: self.epoch,
        };
        Ok(Some(Joined { file, place }))
    }

    fn carry(&mut self, all: &[Carried]) {
        self.carries = true;
        // A device that has just gone takes the others with it; they are offered again.
        if let Err(error) = self.inside.carry(all) {
            tracing::debug!(%error, "the switch carries connections that the kernel was to carry");
        }
    }

    fn forget(&mut self) {
        if !std::mem::take(&mut self.carries) {
            return;
        }
        if let Err(error) = self.inside.forget() {
            // Without rules nothing passes, which is safe; cards are joined again.
            self.epoch += 1;
            tracing::warn!(%error, "the kernel's rules were made anew, because it did not forget connections");
        }
    }
}
