//! redb: a copy-on-write B-tree. Leases and compaction marks are left out of the comparison.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use fairway_kernel_store::engine::{Batch, Engine, EngineReader, Loaded, Record, RecordHeader, RecordId};
use fairway_kernel_store::{Revision, StoreError};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::record::{failed, header, pack, record, value};

const RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("record");

#[derive(Clone)]
pub(crate) struct RedbEngine {
    database: Arc<Database>,
}

impl RedbEngine {
    pub(crate) fn open(directory: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(directory).map_err(failed)?;
        // Its default cache is a gigabyte; this is near what the others get.
        let database = Database::builder()
            .set_cache_size(16 * 1024 * 1024)
            .create(directory.join("store.redb"))
            .map_err(failed)?;
        let write = database.begin_write().map_err(failed)?;
        write.open_table(RECORDS).map_err(failed)?;
        write.commit().map_err(failed)?;
        Ok(Self {
            database: Arc::new(database),
        })
    }
}

fn number(id: RecordId) -> u64 {
    id.to_i64().cast_unsigned()
}

impl EngineReader for RedbEngine {
    fn value(&mut self, id: RecordId) -> Result<Option<Bytes>, StoreError> {
        let read = self.database.begin_read().map_err(failed)?;
        let table = read.open_table(RECORDS).map_err(failed)?;
        let found = table.get(number(id)).map_err(failed)?;
        Ok(found.and_then(|packed| value(number(id), packed.value())))
    }

    fn scan(
        &mut self,
        from: RecordId,
        below: RecordId,
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let read = self.database.begin_read().map_err(failed)?;
        let table = read.open_table(RECORDS).map_err(failed)?;
        for entry in table.range(number(from)..number(below)).map_err(failed)? {
            let (key, packed) = entry.map_err(failed)?;
            if record(key.value(), packed.value()).is_some_and(|record| visit(record).is_break()) {
                break;
            }
        }
        Ok(())
    }
}

impl Engine for RedbEngine {
    fn load(&mut self, visit: &mut dyn FnMut(Revision, RecordHeader<'_>)) -> Result<Loaded, StoreError> {
        let read = self.database.begin_read().map_err(failed)?;
        let table = read.open_table(RECORDS).map_err(failed)?;
        for entry in table.iter().map_err(failed)? {
            let (key, packed) = entry.map_err(failed)?;
            if let Some((header, _)) = header(key.value(), packed.value()) {
                visit(Revision::default(), header);
            }
        }
        Ok(Loaded::default())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let write = self.database.begin_write().map_err(failed)?;
        {
            let mut table = write.open_table(RECORDS).map_err(failed)?;
            for commit in &batch.commits {
                for (sequence, event) in commit.events.iter().enumerate() {
                    let id = number(RecordId::new(commit.revision, sequence));
                    table.insert(id, &pack(&event.kv)[..]).map_err(failed)?;
                }
            }
            for id in &batch.erased {
                table.remove(number(*id)).map_err(failed)?;
            }
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
