//! A picture of a store that goes on changing: everything is read as of one revision, a little at a time.
//!
//! The store keeps history, so nobody has to wait: first the keys as of the revision, which are in memory, then their values
//! in small groups. Memory: the keys, and one group of values.

use anyhow::Context;
use bytes::Bytes;
use fairway_kernel_backup::{Entry, Header, Writer};
use fairway_kernel_store::{KeyRange, Range, Revision, Store, StoreError};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::is_sealed;

/// Keys whose values are read at once. A value may have 1.5 MiB.
const GROUP: usize = 16;

/// Sends a backup without keys. If it cannot be completed, whoever reads it is told why.
pub(crate) async fn send(
    store: &dyn Store,
    created: String,
    out: &mut (impl AsyncWrite + Unpin),
) -> anyhow::Result<()> {
    // Every write that was acknowledged before now is in it, and none that began later.
    let revision = store
        .revision()
        .await
        .context("the store's revision is not known")?;
    let header = Header {
        revision: revision.0,
        created,
        fairway: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut writer = Writer::new(Vec::new(), &header)?;
    let filled = fill(store, revision, &mut writer, out).await;
    let rest = match &filled {
        Ok(()) => writer.finish()?.0,
        Err(error) => writer.give_up(&format!("{error:#}"))?,
    };
    out.write_all(&rest)
        .await
        .context("the picture could not be sent")?;
    out.flush().await.context("the picture could not be sent")?;
    filled
}

async fn fill(
    store: &dyn Store,
    revision: Revision,
    writer: &mut Writer<Vec<u8>>,
    out: &mut (impl AsyncWrite + Unpin),
) -> anyhow::Result<()> {
    let at = |keys: KeyRange, keys_only: bool| Range {
        keys,
        revision: Some(revision),
        limit: 0,
        keys_only,
        count_only: false,
    };
    let all = at(KeyRange::prefix(b""), true);
    let keys: Vec<Bytes> = read(store, all).await?.map(|kv| kv.key).collect();
    for group in keys.chunks(GROUP) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let keys = KeyRange {
            start: first.clone(),
            end: KeyRange::single(last).end,
        };
        for kv in read(store, at(keys, false)).await? {
            if kv.lease.is_some() {
                writer.left_out(1);
                continue;
            }
            let sealed = is_sealed(&kv.key, &kv.value);
            let entry = Entry {
                key: kv.key,
                value: kv.value,
                create_revision: kv.create_revision.0,
                mod_revision: kv.mod_revision.0,
                version: kv.version,
            };
            writer.entry(&entry, sealed)?;
        }
        let ready = std::mem::take(writer.get_mut());
        if !ready.is_empty() {
            out.write_all(&ready)
                .await
                .context("the picture could not be sent")?;
        }
    }
    Ok(())
}

async fn read(
    store: &dyn Store,
    range: Range,
) -> anyhow::Result<impl Iterator<Item = fairway_kernel_store::KeyValue>> {
    match store.range(range).await {
        Ok(response) => Ok(response.kvs.into_iter()),
        Err(error @ StoreError::Compacted { .. }) => Err(error).context(
            "reading took longer than history is kept; try again when there is less to do, or after `fairway down`",
        ),
        Err(error) => Err(error).context("the store could not be read"),
    }
}
