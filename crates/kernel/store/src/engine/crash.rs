//! The crash-test engine: an append-only log on a simulated disk that loses and tears whatever was not synced.
//!
//! It exists to prove that the rest of the store keeps its promise on any engine that keeps the contract of
//! [`Engine::commit`]: the disk can lose power in the middle of any write or sync, and what is left on it is an
//! arbitrary part of what was under way.
//!
//! The log is a sequence of frames, `length (4) | checksum (8) | payload`, one per batch. The checksum covers the
//! checksum before it, so a frame counts only behind the very frame that it was written behind; the log ends at the
//! first frame that does not fit. A commit is: write the frame, sync, and only then take it into memory.

use std::ops::ControlFlow;

use bytes::Bytes;
use ring::digest::{Context, SHA256};

use self::codec::{decode, encode};
pub use self::disk::{DiskError, SimulatedDisk};
use super::memory::MemoryEngine;
use super::{Batch, Engine, EngineReader, LeaseChange, Loaded, Record, RecordHeader, RecordId};
use crate::api::{Revision, StoreError};

mod codec;
mod disk;

const HEADER_BYTES: usize = 12;

type Checksum = [u8; 8];

/// Writes are handed to the disk in pieces, so that power can fail between them.
const PIECE_BYTES: usize = 1024;

/// A log on a simulated disk.
#[derive(Debug)]
pub struct CrashEngine {
    disk: SimulatedDisk,
    memory: MemoryEngine,
    /// Where the next frame goes.
    end: usize,
    /// Checksum of the last frame.
    chain: Checksum,
}

impl CrashEngine {
    /// An engine on a disk, which may hold the log of an earlier one.
    #[must_use]
    pub fn new(disk: SimulatedDisk) -> Self {
        Self {
            disk,
            memory: MemoryEngine::default(),
            end: 0,
            chain: [0; 8],
        }
    }

    /// The next frame of the log, if there is a valid one.
    fn next_frame(&self) -> Result<Option<(Vec<u8>, Checksum)>, StoreError> {
        let header = self.disk.read(self.end, HEADER_BYTES).map_err(failed)?;
        let Some((length, rest)) = header.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let Some((checksum, _)) = rest.split_first_chunk::<8>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        let payload = self.disk.read(self.end + HEADER_BYTES, length).map_err(failed)?;
        let valid = length > 0 && payload.len() == length && chained(&self.chain, &payload) == *checksum;
        Ok(valid.then_some((payload, *checksum)))
    }

    fn append(&self, frame: &[u8]) -> Result<(), DiskError> {
        for (number, piece) in frame.chunks(PIECE_BYTES).enumerate() {
            self.disk.write(self.end + number * PIECE_BYTES, piece)?;
        }
        self.disk.sync()
    }
}

fn chained(before: &Checksum, payload: &[u8]) -> Checksum {
    let mut context = Context::new(&SHA256);
    context.update(before);
    context.update(payload);
    let digest = context.finish();
    let mut checksum = [0; 8];
    checksum.copy_from_slice(&digest.as_ref()[..8]);
    checksum
}

fn failed(error: DiskError) -> StoreError {
    match error {
        DiskError::Full => StoreError::DiskFull("the simulated disk has no space left".to_owned()),
        DiskError::NoPower => StoreError::Io {
            attempted: "use the simulated disk",
            cause: "it has no power".to_owned(),
        },
    }
}

impl Engine for CrashEngine {
    fn load(&mut self, visit: &mut dyn FnMut(Revision, RecordHeader<'_>)) -> Result<Loaded, StoreError> {
        let mut loaded = Loaded::default();
        while let Some((payload, checksum)) = self.next_frame()? {
            let batch = decode(&payload)
                .ok_or_else(|| StoreError::Unusable("a frame of the log makes no sense".to_owned()))?;
            self.memory.commit(&batch)?;
            loaded.compacted = loaded.compacted.max(batch.compacted.unwrap_or_default());
            for change in batch.leases {
                match change {
                    LeaseChange::Granted { lease, ttl_seconds } => {
                        loaded.last_lease = lease.0;
                        loaded.leases.push((lease, ttl_seconds));
                    }
                    LeaseChange::Ended(ended) => loaded.leases.retain(|(lease, _)| *lease != ended),
                }
            }
            self.end += HEADER_BYTES + payload.len();
            self.chain = checksum;
        }
        let end = RecordId::first_of(Revision(u64::MAX >> 21));
        self.memory
            .scan(RecordId::first_of(Revision(0)), end, &mut |record| {
                let header = RecordHeader {
                    id: record.id,
                    key: &record.kv.key,
                    create_revision: record.kv.create_revision,
                    version: record.kv.version,
                    lease: record.kv.lease,
                };
                visit(loaded.compacted, header);
                ControlFlow::Continue(())
            })?;
        Ok(loaded)
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let payload = encode(batch);
        let checksum = chained(&self.chain, &payload);
        let length = u32::try_from(payload.len()).map_err(|_| failed(DiskError::Full))?;
        let frame = [&length.to_be_bytes()[..], &checksum, &payload].concat();
        self.append(&frame).map_err(failed)?;
        self.end += frame.len();
        self.chain = checksum;
        self.memory.commit(batch)
    }

    fn reader(&self) -> Result<Box<dyn EngineReader>, StoreError> {
        self.memory.reader()
    }

    fn reads_block(&self) -> bool {
        false
    }
}

impl EngineReader for CrashEngine {
    fn value(&mut self, id: RecordId) -> Result<Option<Bytes>, StoreError> {
        self.memory.value(id)
    }

    fn scan(
        &mut self,
        from: RecordId,
        below: RecordId,
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.memory.scan(from, below, visit)
    }
}
