//! A disk with a cache that a loss of power empties, sector by sector, as chance has it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SECTOR_BYTES: usize = 512;

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskError {
    /// Power has failed; nothing works until [`SimulatedDisk::restart`].
    NoPower,
    /// There is no space.
    Full,
}

/// A disk of one file. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// What survives.
    media: Vec<u8>,
    /// What readers see.
    cached: Vec<u8>,
    /// Sectors that differ between the two, as (offset, length) of each write since the last sync.
    unsynced: Vec<(usize, usize)>,
    powered: bool,
    /// Writes and syncs until power fails.
    left: Option<u64>,
    capacity: usize,
    lies: bool,
    chance: u64,
}

impl SimulatedDisk {
    /// An empty disk. The seed decides what a loss of power leaves.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            media: Vec::new(),
            cached: Vec::new(),
            unsynced: Vec::new(),
            powered: true,
            left: None,
            capacity: usize::MAX,
            lies: false,
            chance: seed,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets power fail in the middle of a write or sync, after this many more have been completed.
    pub fn fail_after(&self, operations: u64) {
        self.state().left = Some(operations);
    }

    /// Takes away the power now.
    pub fn cut_power(&self) {
        self.state().lose_power();
    }

    /// Power returns; what was lost is lost.
    pub fn restart(&self) {
        let mut state = self.state();
        if state.powered {
            state.lose_power();
        }
        state.cached = state.media.clone();
        state.powered = true;
        state.left = None;
    }

    /// Limits its size.
    pub fn set_capacity(&self, bytes: usize) {
        self.state().capacity = bytes;
    }

    /// From now on it says that it has synced, and has not: to see that a test notices.
    pub fn lie_about_syncing(&self) {
        self.state().lies = true;
    }

    /// Bytes that survive a loss of power.
    #[must_use]
    pub fn durable_bytes(&self) -> usize {
        self.state().media.len()
    }

    pub(super) fn read(&self, offset: usize, length: usize) -> Result<Vec<u8>, DiskError> {
        let state = self.state();
        if !state.powered {
            return Err(DiskError::NoPower);
        }
        let end = offset.saturating_add(length).min(state.cached.len());
        Ok(state.cached.get(offset..end).unwrap_or_default().to_vec())
    }

    pub(super) fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), DiskError> {
        let mut state = self.state();
        let end = offset + bytes.len();
        if end > state.capacity {
            return Err(DiskError::Full);
        }
        let fails = state.spend()?;
        if state.cached.len() < end {
            state.cached.resize(end, 0);
        }
        state.cached[offset..end].copy_from_slice(bytes);
        state.unsynced.push((offset, bytes.len()));
        if fails { Err(state.lose_power()) } else { Ok(()) }
    }

    pub(super) fn sync(&self) -> Result<(), DiskError> {
        let mut state = self.state();
        if state.spend()? {
            return Err(state.lose_power());
        }
        if !state.lies {
            state.media = state.cached.clone();
            state.unsynced.clear();
        }
        Ok(())
    }
}

impl State {
    /// Counts an operation; true if it is the one during which power fails.
    fn spend(&mut self) -> Result<bool, DiskError> {
        if !self.powered {
            return Err(DiskError::NoPower);
        }
        match &mut self.left {
            Some(0) => Ok(true),
            Some(left) => {
                *left -= 1;
                Ok(false)
            }
            None => Ok(false),
        }
    }

    /// Every sector that was not synced arrives whole, in part, or not at all.
    fn lose_power(&mut self) -> DiskError {
        self.powered = false;
        for (offset, length) in std::mem::take(&mut self.unsynced) {
            let mut start = offset;
            while start < offset + length {
                let end = ((start / SECTOR_BYTES + 1) * SECTOR_BYTES).min(offset + length);
                let arrived = match self.random() % 4 {
                    0 => 0,
                    1 => self.random() as usize % (end - start + 1),
                    _ => end - start,
                };
                if arrived > 0 {
                    if self.media.len() < start + arrived {
                        self.media.resize(start + arrived, 0);
                    }
                    self.media[start..start + arrived].copy_from_slice(&self.cached[start..start + arrived]);
                }
                start = end;
            }
        }
        DiskError::NoPower
    }

    /// splitmix64.
    fn random(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.chance ^ (self.chance >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
