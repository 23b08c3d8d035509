//! A new database from a picture of an old one, as a restore writes it.
//!
//! Every key keeps its value and its revisions. The store's revision is then raised far above the picture's, and history
//! before that is marked as compacted: whoever remembers a revision of the old store, even one that the picture does not
//! know of, is told to read everything again, and no revision is ever given out twice.

use std::path::Path;

use rusqlite::{OptionalExtension, params};

use super::{CHECKPOINT_PAGES, DATABASE, SqliteEngine, failed, pages, set_fact};
use crate::api::{Event, EventKind, KeyValue, Revision, StoreError};
use crate::engine::{Batch, Commit, Engine, MAX_CHANGES, RecordId};
use crate::limits;

/// A store that is being filled. It cannot be used before [`Import::finish`] has returned.
#[derive(Debug)]
pub struct Import {
    engine: SqliteEngine,
}

impl Import {
    /// Begins one in a directory that has no store yet.
    pub fn create(directory: &Path) -> Result<Self, StoreError> {
        let database = directory.join(DATABASE);
        if database.exists() {
            return Err(StoreError::Unusable(format!(
                "{} exists already",
                database.display()
            )));
        }
        let engine = SqliteEngine::open(directory)?;
        Ok(Self { engine })
    }

    /// Adds keys, each once, in any order. Leases do not survive: who held them is gone.
    pub fn put(&mut self, keys: &[KeyValue]) -> Result<(), StoreError> {
        for kv in keys {
            limits::check_pair(&kv.key, &kv.value)?;
        }
        self.insert(keys)
            .map_err(|error| failed("write to the database", &error))?;
        self.engine.wal_pages += pages_of(keys);
        if self.engine.wal_pages >= CHECKPOINT_PAGES {
            self.engine.checkpoint("PASSIVE")?;
        }
        Ok(())
    }

    fn insert(&self, keys: &[KeyValue]) -> rusqlite::Result<()> {
        let connection = self.engine.connection();
        let transaction = connection.unchecked_transaction()?;
        {
            // Keys of one transaction share their revision; they get its places in the order in which they come.
            let mut last =
                connection.prepare_cached("SELECT max(id) FROM record WHERE id >= ? AND id < ?")?;
            let mut insert = connection.prepare_cached(
                "INSERT INTO record (id, create_revision, version, lease, key, value) VALUES (?, ?, ?, NULL, ?, ?)",
            )?;
            for kv in keys {
                let first = RecordId::first_of(kv.mod_revision);
                let below = RecordId::first_of(Revision(kv.mod_revision.0 + 1));
                let taken: Option<Option<i64>> = last
                    .query_row([first.to_i64(), below.to_i64()], |row| row.get(0))
                    .optional()?;
                let sequence = taken
                    .flatten()
                    .map_or(0, |id| RecordId::from_i64(id).sequence() + 1);
                if sequence >= MAX_CHANGES {
                    return Err(rusqlite::Error::InvalidQuery);
                }
                insert.execute(params![
                    RecordId::new(kv.mod_revision, sequence).to_i64(),
                    kv.create_revision.0.cast_signed(),
                    kv.version.cast_signed(),
                    &kv.key[..],
                    &kv.value[..],
                ])?;
            }
        }
        transaction.commit()
    }

    /// Writes a last key at `revision`, which must be above all others, and makes it the oldest that can be read. When
    /// this returns, the store is whole and on disk.
    pub fn finish(mut self, revision: Revision, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let highest: i64 = self
            .engine
            .connection()
            .query_row("SELECT coalesce(max(id), 0) FROM record", [], |row| row.get(0))
            .map_err(|error| failed("read the database", &error))?;
        if RecordId::from_i64(highest).revision() >= revision {
            return Err(StoreError::Unusable(format!(
                "revision {} is not above those of its keys",
                revision.0
            )));
        }
        let kv = KeyValue {
            key: bytes::Bytes::copy_from_slice(key),
            value: bytes::Bytes::copy_from_slice(value),
            create_revision: revision,
            mod_revision: revision,
            version: 1,
            lease: None,
        };
        let event = Event {
            kind: EventKind::Put,
            kv,
            prev: None,
        };
        let commit = Commit {
            revision,
            events: vec![event],
        };
        self.engine.commit(&Batch {
            commits: vec![std::sync::Arc::new(commit)],
            compacted: Some(revision),
            ..Batch::default()
        })?;
        set_fact(self.engine.connection(), "last_lease", 0)
            .map_err(|error| failed("write to the database", &error))?;
        self.engine.close()
    }
}

fn pages_of(keys: &[KeyValue]) -> u64 {
    let bytes: usize = keys.iter().map(|kv| kv.key.len() + kv.value.len() + 32).sum();
    // Revisions are in no order here, so each key touches a page of its own.
    pages(&Batch::default()) + bytes as u64 / super::PAGE_BYTES + keys.len() as u64
}
