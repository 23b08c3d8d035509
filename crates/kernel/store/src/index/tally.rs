//! How many keys exist between two keys, without looking at each.
//!
//! A page of a long list says how long the list is, and must not cost as much as the list. The key space is cut into
//! sections of some hundred keys, and each section knows how many of its keys exist; a count adds up whole sections and
//! looks at keys only in the two where the range begins and ends. It takes a few bytes for a hundred keys.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

/// A section with more keys is cut in two.
const LARGEST: usize = 512;

/// The sections, by the key that each begins with.
#[derive(Debug)]
pub(super) struct Tally {
    sections: BTreeMap<Bytes, usize>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            sections: [(Bytes::new(), 0)].into(),
        }
    }
}

/// A section that has grown too large: where it begins and ends (empty: with the last key), and how many keys its first half shall have.
pub(super) struct Overflow {
    pub(super) start: Bytes,
    pub(super) end: Bytes,
    pub(super) half: usize,
}

impl Tally {
    /// Of keys that exist, in order.
    pub(super) fn of<'a>(keys: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut sections = Vec::from([(Bytes::new(), 0)]);
        for key in keys {
            // Half full: room for keys to come.
            match sections.last_mut() {
                Some((_, count)) if *count < LARGEST / 2 => *count += 1,
                _ => sections.push((Bytes::copy_from_slice(key), 1)),
            }
        }
        Self {
            sections: sections.into_iter().collect(),
        }
    }

    /// A key has come to exist.
    pub(super) fn add(&mut self, key: &[u8]) -> Option<Overflow> {
        let (start, count) = self.section_mut(key)?;
        *count += 1;
        if *count <= LARGEST {
            return None;
        }
        let half = *count / 2;
        let end = Bytes::copy_from_slice(self.end_of(&start));
        Some(Overflow { start, end, half })
    }

    /// A key has ceased to exist.
    pub(super) fn remove(&mut self, key: &[u8]) {
        let Some((start, count)) = self.section_mut(key) else {
            return;
        };
        *count = count.saturating_sub(1);
        // The section before takes over what an empty one covered; the first one stays.
        if *count == 0 && !start.is_empty() {
            self.sections.remove(&start);
        }
    }

    /// Cuts a section in two: its first half ends before `at`.
    pub(super) fn cut(&mut self, overflow: &Overflow, at: Bytes) {
        if let Some(count) = self.sections.get_mut(&overflow.start) {
            let rest = *count - overflow.half;
            *count = overflow.half;
            self.sections.insert(at, rest);
        }
    }

    /// How many keys exist from `start` to before `end` (empty: to the last), where `look` counts the keys between two
    /// keys one by one.
    pub(super) fn count(&self, start: &[u8], end: &[u8], look: impl Fn(&[u8], &[u8]) -> usize) -> usize {
        if !end.is_empty() && end <= start {
            return 0;
        }
        let from = (Bound::Included(start), Bound::Unbounded);
        let mut inside = self
            .sections
            .range::<[u8], _>(from)
            .take_while(|(key, _)| end.is_empty() || key[..] < *end)
            .peekable();
        let Some((first, _)) = inside.peek() else {
            return look(start, end);
        };
        let mut total = if first[..] == *start {
            0
        } else {
            look(start, first)
        };
        while let Some((key, count)) = inside.next() {
            let whole = inside.peek().is_some() || self.end_of(key) == end;
            total += if whole { *count } else { look(key, end) };
        }
        total
    }

    /// Where a section ends; empty: with the last key.
    fn end_of(&self, start: &[u8]) -> &[u8] {
        let after = (Bound::Excluded(start), Bound::Unbounded);
        let next = self.sections.range::<[u8], _>(after).next();
        next.map_or(&[], |(key, _)| &key[..])
    }

    fn section_mut(&mut self, key: &[u8]) -> Option<(Bytes, &mut usize)> {
        let up_to = (Bound::Unbounded, Bound::Included(key));
        let (start, count) = self.sections.range_mut::<[u8], _>(up_to).next_back()?;
        Some((start.clone(), count))
    }
}
