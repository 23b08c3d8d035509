//! An engine that keeps its records in memory: nothing survives the process, everything else is as on disk.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use super::{Batch, Engine, EngineReader, Loaded, Record, RecordHeader, RecordId};
use crate::api::{KeyValue, Revision, StoreError};

/// Records in a map that all readers share.
#[derive(Clone, Debug, Default)]
pub struct MemoryEngine {
    records: Arc<RwLock<BTreeMap<RecordId, KeyValue>>>,
}

impl EngineReader for MemoryEngine {
    fn value(&mut self, id: RecordId) -> Result<Option<Bytes>, StoreError> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        Ok(records.get(&id).map(|kv| kv.value.clone()))
    }

    fn scan(
        &mut self,
        from: RecordId,
        below: RecordId,
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        for (id, kv) in records.range(from..below.max(from)) {
            if visit(Record {
                id: *id,
                kv: kv.clone(),
            })
            .is_break()
            {
                break;
            }
        }
        Ok(())
    }
}

impl Engine for MemoryEngine {
    fn load(&mut self, _visit: &mut dyn FnMut(Revision, RecordHeader<'_>)) -> Result<Loaded, StoreError> {
        Ok(Loaded::default())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        for commit in &batch.commits {
            for (sequence, event) in commit.events.iter().enumerate() {
                records.insert(RecordId::new(commit.revision, sequence), event.kv.clone());
            }
        }
        for id in &batch.erased {
            records.remove(id);
        }
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn EngineReader>, StoreError> {
        Ok(Box::new(self.clone()))
    }

    fn reads_block(&self) -> bool {
        false
    }
}
