//! fjall: a log-structured merge tree. Leases and compaction marks are left out of the comparison.

use std::ops::ControlFlow;
use std::path::Path;

use bytes::Bytes;
use fairway_kernel_store::engine::{Batch, Engine, EngineReader, Loaded, Record, RecordHeader, RecordId};
use fairway_kernel_store::{Revision, StoreError};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::record::{failed, header, pack, record, value};

#[derive(Clone)]
pub(crate) struct FjallEngine {
    database: Database,
    records: Keyspace,
}

impl FjallEngine {
    pub(crate) fn open(directory: &Path) -> Result<Self, StoreError> {
        let database = Database::builder(directory).open().map_err(failed)?;
        let records = database
            .keyspace("record", KeyspaceCreateOptions::default)
            .map_err(failed)?;
        Ok(Self { database, records })
    }
}

fn number(key: &[u8]) -> u64 {
    key.try_into().map_or(0, u64::from_be_bytes)
}

fn place(id: RecordId) -> [u8; 8] {
    id.to_i64().to_be_bytes()
}

impl EngineReader for FjallEngine {
    fn value(&mut self, id: RecordId) -> Result<Option<Bytes>, StoreError> {
        let found = self.records.get(place(id)).map_err(failed)?;
        Ok(found.and_then(|packed| value(id.to_i64().cast_unsigned(), &packed)))
    }

    fn scan(
        &mut self,
        from: RecordId,
        below: RecordId,
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        for guard in self.records.range(place(from)..place(below)) {
            let (key, packed) = guard.into_inner().map_err(failed)?;
            if record(number(&key), &packed).is_some_and(|record| visit(record).is_break()) {
                break;
            }
        }
        Ok(())
    }
}

impl Engine for FjallEngine {
    fn load(&mut self, visit: &mut dyn FnMut(Revision, RecordHeader<'_>)) -> Result<Loaded, StoreError> {
        for guard in self.records.iter() {
            let (key, packed) = guard.into_inner().map_err(failed)?;
            if let Some((header, _)) = header(number(&key), &packed) {
                visit(Revision::default(), header);
            }
        }
        Ok(Loaded::default())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let mut write = self.database.batch().durability(Some(PersistMode::SyncData));
        for commit in &batch.commits {
            for (sequence, event) in commit.events.iter().enumerate() {
                write.insert(
                    &self.records,
                    place(RecordId::new(commit.revision, sequence)),
                    pack(&event.kv),
                );
            }
        }
        for id in &batch.erased {
            write.remove(&self.records, place(*id));
        }
        write.commit().map_err(failed)
    }

    fn reader(&self) -> Result<Box<dyn EngineReader>, StoreError> {
        Ok(Box::new(self.clone()))
    }

    fn reads_block(&self) -> bool {
        true
    }
}
