//! An index made at a start, from records in the order of time.
//!
//! What has been compacted needs no note of when it came to be, so a start remembers only what is as young as history. There
//! is no map or list of everything on the way: where the allocator gets back one large piece, it keeps the like of it in
//! each of its arenas ever after.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::tally::Tally;
use super::{History, Index, Key, Version};
use crate::api::Revision;
use crate::engine::{RecordHeader, RecordId};

/// The index as far as it has been read.
#[derive(Debug, Default)]
pub(crate) struct Loading {
    keys: BTreeMap<Key, History>,
    revision: Revision,
    superseding: VecDeque<(RecordId, Bytes)>,
    births: VecDeque<(RecordId, Bytes)>,
}

impl Loading {
    /// Takes up a record that is newer than all before it. Nothing before `compacted` can be asked for.
    pub(crate) fn take(&mut self, compacted: Revision, record: &RecordHeader<'_>) {
        self.revision = self.revision.max(record.id.revision());
        let newest = Version::of(record);
        if let Some(history) = self.keys.get_mut(record.key) {
            history.push(newest);
            self.note_superseding(record);
            return;
        }
        if newest.is_deleted() {
            self.note_superseding(record);
        } else if record.id.revision() > compacted {
            let key = Bytes::copy_from_slice(record.key);
            self.births.push_back((record.id, key));
        }
        self.keys.insert(record.key.into(), History::new(newest));
    }

    fn note_superseding(&mut self, record: &RecordHeader<'_>) {
        let key = Bytes::copy_from_slice(record.key);
        self.superseding.push_back((record.id, key));
    }

    /// The index.
    pub(crate) fn finish(self, compacted: Revision) -> Index {
        let existing = self.keys.iter().filter(|(_, it)| !it.newest.is_deleted());
        let tally = Tally::of(existing.map(|(key, _)| &key[..]));
        let mut index = Index {
            keys: self.keys,
            revision: self.revision,
            superseding: self.superseding,
            births: self.births,
            tally,
            ..Index::default()
        };
        index.forget_before(compacted);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::Loading;
    use crate::api::{KeyRange, Revision};
    use crate::engine::{RecordHeader, RecordId};
    use crate::index::Index;

    /// Both ways of making an index must end in the same answers.
    #[test]
    fn it_answers_like_an_index_that_saw_every_record() {
        let (mut loading, mut grown) = (Loading::default(), Index::default());
        let compacted = Revision(700);
        for step in 1..=2_000_u64 {
            let key = format!("/k/{:04}", step * 7_919 % 1_300);
            let exists = grown.get(key.as_bytes()).is_some();
            let header = RecordHeader {
                id: RecordId::new(Revision(step), 0),
                key: key.as_bytes(),
                create_revision: Revision(step),
                version: u64::from(!exists || step % 3 > 0),
                lease: None,
            };
            loading.take(compacted, &header);
            grown.apply(&header);
        }
        grown.forget_before(compacted);
        let mut loaded = loading.finish(compacted);
        for trimmed in [false, true] {
            if trimmed {
                assert_eq!(loaded.trim(usize::MAX), grown.trim(usize::MAX));
            }
            assert_eq!(loaded.births, grown.births);
            assert_eq!(loaded.superseding, grown.superseding);
            for (prefix, at) in [
                ("/k/", 2_000),
                ("/k/0", 1_500),
                ("/k/12", 700),
                ("/k/1299", 1_999),
            ] {
                for limit in [0, 1, 100] {
                    let keys = KeyRange::prefix(prefix.as_bytes());
                    let of = |index: &Index| {
                        let selection = index.select(&keys, Revision(at), limit);
                        (selection.found, selection.count)
                    };
                    assert_eq!(of(&loaded), of(&grown), "{prefix} at {at}, {limit}, {trimmed}");
                }
            }
        }
    }
}
