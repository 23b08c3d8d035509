//! The default engine: one SQLite database in WAL mode.
//!
//! # Format 1
//!
//! `store.db` has `application_id` 0x46575259 ("FWRY") and the format number in `user_version`. Its tables:
//!
//! * `record (id, create_revision, version, lease, key, value)`: history. `id` is `revision << 20 | sequence`, so the
//!   table is in order of time and every write appends to its right edge. `version` 0 is a deletion. There is no index
//!   on `key`: the store keeps one in memory and builds it in one scan when it opens. The value stands last, so that
//!   this scan does not follow the overflow pages of large values.
//! * `lease (id, ttl_seconds)`: the leases that are alive.
//! * `fact (name, value)`: `compacted`, the oldest revision that can be read, `last_lease`, and `settled`, once the first
//!   filling of the store was complete.
//!
//! # Commit
//!
//! A batch is one transaction. With `synchronous = FULL` SQLite appends its pages to the write-ahead log and syncs it
//! before `COMMIT` returns: one `fdatasync`, whatever the size of the batch. After a crash, frames without a valid
//! checksum or without a commit mark behind them are ignored. The log is copied into the database after the answers
//! have been sent, once it has more than a thousand pages; it is then written again from its start.
//!
//! A new database is at first written with `synchronous = NORMAL`: the log is not synced at a commit, so a crash
//! of the machine may cut off its end, never its middle. Whoever fills it waits for one sync at the end instead of one
//! for each of its first objects, and nobody else has seen any of them.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, ffi, params};

use super::{Batch, Engine, EngineReader, LeaseChange, Loaded, Record, RecordHeader, RecordId};
use crate::api::{KeyValue, LeaseId, Revision, StoreError};

mod files;
pub mod import;

/// The format that this code writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// "FWRY": tells a store from any other SQLite database.
const APPLICATION_ID: u32 = 0x4657_5259;

/// Pages in the write-ahead log from which it is copied into the database.
const CHECKPOINT_PAGES: u64 = 1000;

/// Pages from which the writer waits for readers, so that the log can start again from its beginning.
const FORCED_CHECKPOINT_PAGES: u64 = 16 * CHECKPOINT_PAGES;

/// Values that are read in one transaction.
const READ_TOGETHER: usize = 1000;

const PAGE_BYTES: u64 = 4096;

/// What remains of the write-ahead log's file after it had to grow, and how far it is extended ahead.
const WAL_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// The log is extended by this much when less than a quarter of it is left.
const WAL_STEP_BYTES: u64 = 1024 * 1024;

/// A page in the log, with its header.
const WAL_FRAME_BYTES: u64 = PAGE_BYTES + 24;

const DATABASE: &str = "store.db";
const DATABASE_NEW: &str = "store.db.new";
const DATABASE_WAL: &str = "store.db-wal";

const TABLES: &str = "
    CREATE TABLE record (
        id INTEGER PRIMARY KEY,
        create_revision INTEGER NOT NULL,
        version INTEGER NOT NULL,
        lease INTEGER,
        key BLOB NOT NULL,
        value BLOB NOT NULL
    ) STRICT;
    CREATE TABLE lease (id INTEGER PRIMARY KEY, ttl_seconds INTEGER NOT NULL) STRICT;
    CREATE TABLE fact (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
";

/// The writing side.
#[derive(Debug)]
pub struct SqliteEngine {
    reader: SqliteReader,
    directory: PathBuf,
    /// Pages in the write-ahead log that are not in the database, roughly.
    wal_pages: u64,
    /// Size of the log's file, as far as it is known.
    wal_file_bytes: u64,
    /// Whether commits need not be durable yet.
    unsettled: bool,
    // Held for its lock.
    _lock: File,
}

/// A connection that only reads.
#[derive(Debug)]
pub struct SqliteReader {
    connection: Connection,
}

impl SqliteEngine {
    /// Opens the database of a directory, and creates both if they are not there.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let mut engine = Self::open_unsettled(directory)?;
        engine.settle()?;
        Ok(engine)
    }

    /// As [`SqliteEngine::open`], but what is written into a database that was not there is durable only after
    /// [`Engine::settle`].
    pub fn open_unsettled(directory: &Path) -> Result<Self, StoreError> {
        files::create_directory(directory)?;
        let lock = files::lock(directory)?;
        let path = directory.join(DATABASE);
        let unsettled = !files::has_content(&path);
        if unsettled {
            create(directory, &path)?;
        }
        files::protect(&path)?;
        let mut connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        prepare_schema(&mut connection, &path)?;
        if unsettled {
            set_durability(&connection, "NORMAL")?;
        }
        let reader = SqliteReader { connection };
        // Whatever a crash left in the log is copied at the first occasion.
        let wal_pages = if unsettled { 0 } else { CHECKPOINT_PAGES };
        Ok(Self {
            reader,
            directory: directory.to_owned(),
            wal_pages,
            wal_file_bytes: 0,
            unsettled,
            _lock: lock,
        })
    }

    fn connection(&self) -> &Connection {
        &self.reader.connection
    }

    /// One transaction. Its beginning and end are cached statements too, which `Connection::transaction` does not offer.
    fn write(&self, batch: &Batch) -> rusqlite::Result<()> {
        let connection = self.connection();
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let written = self
            .insert(batch)
            .and_then(|()| connection.prepare_cached("COMMIT")?.execute([]).map(|_| ()));
        // Some errors have already rolled it back.
        if written.is_err() && !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK")?;
        }
        written
    }

    fn insert(&self, batch: &Batch) -> rusqlite::Result<()> {
        let connection = self.connection();
        if !batch.commits.is_empty() {
            let mut insert = connection.prepare_cached(
                "INSERT INTO record (id, create_revision, version, lease, key, value) VALUES (?, ?, ?, ?, ?, ?)",
            )?;
            for commit in &batch.commits {
                for (sequence, event) in commit.events.iter().enumerate() {
                    let kv = &event.kv;
                    insert.execute(params![
                        RecordId::new(commit.revision, sequence).to_i64(),
                        kv.create_revision.0.cast_signed(),
                        kv.version.cast_signed(),
                        kv.lease.map(|lease| lease.0),
                        &kv.key[..],
                        &kv.value[..],
                    ])?;
                }
            }
        }
        for change in &batch.leases {
            match change {
                LeaseChange::Granted { lease, ttl_seconds } => {
                    connection
                        .prepare_cached("INSERT INTO lease (id, ttl_seconds) VALUES (?, ?)")?
                        .execute(params![lease.0, ttl_seconds.cast_signed()])?;
                    set_fact(connection, "last_lease", lease.0)?;
                }
                LeaseChange::Ended(lease) => {
                    connection
                        .prepare_cached("DELETE FROM lease WHERE id = ?")?
                        .execute([lease.0])?;
                }
            }
        }
        if let Some(compacted) = batch.compacted {
            set_fact(connection, "compacted", compacted.0.cast_signed())?;
        }
        if !batch.erased.is_empty() {
            let mut erase = connection.prepare_cached("DELETE FROM record WHERE id = ?")?;
            for id in &batch.erased {
                erase.execute([id.to_i64()])?;
            }
        }
        Ok(())
    }

    /// Copies the log into the database as far as readers allow.
    fn checkpoint(&mut self, mode: &str) -> Result<(), StoreError> {
        let (in_log, copied) = self
            .connection()
            .query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
                Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
            })
            .map_err(|error| failed("copy the write-ahead log into the database", &error))?;
        self.wal_pages = u64::try_from(in_log - copied).unwrap_or(0);
        Ok(())
    }

    /// Grows the file of the log before it is needed: a sync that also has to record a new file size makes the file
    /// system commit its own journal, which takes longer than the write. SQLite takes the zeros for the end of its log.
    /// It may fail, if the disk is full; then the log grows as it always would.
    fn extend_log(&mut self) {
        let used = self.wal_pages.saturating_mul(WAL_FRAME_BYTES);
        if used + WAL_STEP_BYTES / 4 < self.wal_file_bytes || self.wal_file_bytes >= WAL_FILE_BYTES {
            return;
        }
        match files::extend(&self.directory.join(DATABASE_WAL), WAL_STEP_BYTES) {
            Ok(bytes) => self.wal_file_bytes = bytes,
            Err(error) => {
                tracing::debug!(%error, "the write-ahead log could not be extended ahead");
                // Not again before the next start: it is only a matter of speed.
                self.wal_file_bytes = WAL_FILE_BYTES;
            }
        }
    }

    fn not_written(&self, error: &rusqlite::Error) -> StoreError {
        if self.lacks_space(error) {
            StoreError::DiskFull(error.to_string())
        } else {
            failed("write to the database", error)
        }
    }

    /// Whether an error means that there is no space, although SQLite does not say so.
    fn lacks_space(&self, error: &rusqlite::Error) -> bool {
        let code = error.sqlite_error().map_or(0, |error| error.extended_code);
        matches!(
            code,
            ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE | ffi::SQLITE_IOERR_TRUNCATE
        ) && files::is_full(&self.directory, &[DATABASE, DATABASE_WAL])
    }
}

impl Engine for SqliteEngine {
    fn load(&mut self, visit: &mut dyn FnMut(Revision, RecordHeader<'_>)) -> Result<Loaded, StoreError> {
        load(self.connection(), visit).map_err(|error| failed("read the database", &error))
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        match self.write(batch) {
            Ok(()) => {
                self.wal_pages += pages(batch);
                Ok(())
            }
            Err(error) => Err(self.not_written(&error)),
        }
    }

    fn settle(&mut self) -> Result<(), StoreError> {
        if self.unsettled {
            set_durability(self.connection(), "FULL")?;
            // A commit syncs the whole log, and so all commits before it.
            set_fact(self.connection(), "settled", 1).map_err(|error| self.not_written(&error))?;
            self.unsettled = false;
        }
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn EngineReader>, StoreError> {
        let connection = connect(&self.directory.join(DATABASE), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        Ok(Box::new(SqliteReader { connection }))
    }

    fn reads_block(&self) -> bool {
        true
    }

    fn tidy(&mut self) -> Result<(), StoreError> {
        match self.wal_pages {
            0..CHECKPOINT_PAGES => {}
            CHECKPOINT_PAGES..FORCED_CHECKPOINT_PAGES => self.checkpoint("PASSIVE")?,
            _ => self.checkpoint("RESTART")?,
        }
        if !self.unsettled {
            self.extend_log();
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        match self.checkpoint("TRUNCATE") {
            // Everything is safe in the log, which the next start copies.
            Err(StoreError::DiskFull(_)) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl EngineReader for SqliteEngine {
    fn value(&mut self, id: RecordId) -> Result<Option<Bytes>, StoreError> {
        self.reader.value(id)
    }

    fn values(&mut self, ids: &[RecordId]) -> Result<Option<Vec<Bytes>>, StoreError> {
        self.reader.values(ids)
    }

    fn scan(
        &mut self,
        from: RecordId,
        below: RecordId,
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.reader.scan(from, below, visit)
    }
}

impl SqliteReader {
    fn read(&self, id: RecordId) -> rusqlite::Result<Option<Bytes>> {
        self.connection
            .prepare_cached("SELECT value FROM record WHERE id = ?")?
            .query_row([id.to_i64()], |row| {
                Ok(Bytes::copy_from_slice(row.get_ref(0)?.as_blob()?))
            })
            .optional()
    }
}

impl EngineReader for SqliteReader {
    fn value(&mut self, id: RecordId) -> Result<Option<Bytes>, StoreError> {
        self.read(id).map_err(|error| failed("read a value", &error))
    }

    /// In transactions, because each takes and releases locks on the file; in short ones, because a checkpoint may have to
    /// wait for them.
    fn values(&mut self, ids: &[RecordId]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let read = || {
            let mut values = Vec::with_capacity(ids.len());
            for some in ids.chunks(READ_TOGETHER) {
                let transaction = self.connection.unchecked_transaction()?;
                for id in some {
                    let Some(value) = self.read(*id)? else {
                        return Ok(None);
                    };
                    values.push(value);
                }
                transaction.commit()?;
            }
            Ok(Some(values))
        };
        read().map_err(|error| failed("read values", &error))
    }

    fn scan(
        &mut self,
        from: RecordId,
        below: RecordId,
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut read = || {
            let mut select = self.connection.prepare_cached(
                "SELECT id, create_revision, version, lease, key, value FROM record
                 WHERE id >= ? AND id < ? ORDER BY id",
            )?;
            let mut rows = select.query([from.to_i64(), below.to_i64()])?;
            while let Some(row) = rows.next()? {
                if visit(record(row)?).is_break() {
                    break;
                }
            }
            Ok(())
        };
        read().map_err(|error| failed("read history", &error))
    }
}

/// How many pages a batch adds to the log, roughly: its bytes, the right edge of the table, and its parent.
fn pages(batch: &Batch) -> u64 {
    let sizes = batch
        .commits
        .iter()
        .flat_map(|commit| &commit.events)
        .map(|e| e.kv.key.len() + e.kv.value.len() + 32);
    sizes.sum::<usize>() as u64 / PAGE_BYTES + batch.erased.len() as u64 + 2
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let header = header(row)?;
    let kv = KeyValue {
        key: Bytes::copy_from_slice(header.key),
        value: Bytes::copy_from_slice(row.get_ref(5)?.as_blob()?),
        create_revision: header.create_revision,
        mod_revision: header.id.revision(),
        version: header.version,
        lease: header.lease,
    };
    Ok(Record { id: header.id, kv })
}

fn header<'a>(row: &'a Row<'_>) -> rusqlite::Result<RecordHeader<'a>> {
    Ok(RecordHeader {
        id: RecordId::from_i64(row.get(0)?),
        create_revision: Revision(row.get::<_, i64>(1)?.cast_unsigned()),
        version: row.get::<_, i64>(2)?.cast_unsigned(),
        lease: row.get::<_, Option<i64>>(3)?.map(LeaseId),
        key: row.get_ref(4)?.as_blob()?,
    })
}

fn load(
    connection: &Connection,
    visit: &mut dyn FnMut(Revision, RecordHeader<'_>),
) -> rusqlite::Result<Loaded> {
    let compacted = Revision(fact(connection, "compacted")?.cast_unsigned());
    let mut select =
        connection.prepare("SELECT id, create_revision, version, lease, key FROM record ORDER BY id")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        visit(compacted, header(row)?);
    }
    let leases = connection
        .prepare("SELECT id, ttl_seconds FROM lease")?
        .query_map([], |row| {
            Ok((LeaseId(row.get(0)?), row.get::<_, i64>(1)?.cast_unsigned()))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(Loaded {
        compacted,
        leases,
        last_lease: fact(connection, "last_lease")?,
    })
}

fn fact(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection
        .query_row("SELECT value FROM fact WHERE name = ?", [name], |row| row.get(0))
        .optional()
        .map(Option::unwrap_or_default)
}

fn set_fact(connection: &Connection, name: &str, value: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO fact (name, value) VALUES (?, ?)")?
        .execute(params![name, value])
        .map(|_| ())
}

fn set_durability(connection: &Connection, synchronous: &str) -> Result<(), StoreError> {
    connection
        .pragma_update(None, "synchronous", synchronous)
        .map_err(|error| failed("open the database", &error))
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    let open = || {
        let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        // Checkpoints are taken in `tidy`, when nobody waits.
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "journal_size_limit", WAL_FILE_BYTES.cast_signed())?;
        // In KiB. The operating system caches the file as well, and hot values are in the event ring.
        connection.pragma_update(None, "cache_size", -1024)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        Ok(connection)
    };
    open().map_err(|error| failed("open the database", &error))
}

/// Makes a database under another name, syncs it once, and gives it its own: a crash leaves all of it or nothing, and the
/// disk is not waited for at every step.
fn create(directory: &Path, path: &Path) -> Result<(), StoreError> {
    let fresh = directory.join(DATABASE_NEW);
    files::remove(&fresh)?;
    files::create(&fresh)?;
    let fill = || {
        let mut connection = Connection::open_with_flags(&fresh, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))?;
        lay_out(&mut connection)?;
        connection.close().map_err(|(_, error)| error)
    };
    fill().map_err(|error| failed("create the database", &error))?;
    files::put_in_place(&fresh, path)?;
    files::sync_directory(directory)
}

/// Tables, format and write-ahead log in an empty database.
fn lay_out(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
}

fn prepare_schema(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let number = |connection: &Connection, pragma: &str| {
        connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, u32>(0))
    };
    let mut prepare = || {
        let application = number(connection, "application_id")?;
        let format = number(connection, "user_version")?;
        let tables: u32 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        let file = path.display();
        if tables == 0 && application == 0 && format == 0 {
            lay_out(connection)?;
            return Ok(Ok(()));
        }
        if application != APPLICATION_ID {
            return Ok(Err(format!(
                "{file} is an SQLite database, but not a Fairway store"
            )));
        }
        if format > FORMAT {
            return Ok(Err(format!(
                "{file} has format {format}, and this version of Fairway reads formats up to {FORMAT}; \
                 start it with the newer version that wrote it"
            )));
        }
        if format == 0 {
            return Ok(Err(format!(
                "{file} says that it is a Fairway store, but has no format number"
            )));
        }
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        Ok(Ok(()))
    };
    match prepare() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(unusable)) => Err(StoreError::Unusable(unusable)),
        Err(error) => Err(failed("read the database", &error)),
    }
}

/// What an error of SQLite means to a caller of the store.
fn failed(attempted: &'static str, error: &rusqlite::Error) -> StoreError {
    let cause = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::DiskFull(cause),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Unusable(cause),
        _ => StoreError::Io { attempted, cause },
    }
}
