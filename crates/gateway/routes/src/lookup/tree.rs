//! Prefixes of paths, by segment.

use std::collections::HashMap;

#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Entries whose prefix ends here, in order.
    here: Vec<u32>,
    below: HashMap<Box<str>, Tree>,
}

impl Tree {
    pub(super) fn insert(&mut self, prefix: &str, entry: u32) {
        let mut node = self;
        if prefix != "/" {
            for segment in prefix.strip_prefix('/').unwrap_or(prefix).split('/') {
                // Not by `entry`: that would allocate for a segment that is there.
                if !node.below.contains_key(segment) {
                    node.below.insert(segment.into(), Self::default());
                }
                let Some(next) = node.below.get_mut(segment) else {
                    return;
                };
                node = next;
            }
        }
        node.here.push(entry);
    }

    /// Shows the entries of every prefix of the path, the shortest first. Ends where no longer prefix exists, so the length of
    /// a stranger's path costs nothing.
    pub(super) fn walk<'a>(&'a self, path: &str, mut show: impl FnMut(&'a [u32])) {
        let mut found: [&[u32]; DEEP] = [&[]; DEEP];
        let mut count = 0;
        let mut keep = |list: &'a [u32], show: &mut dyn FnMut(&'a [u32])| {
            if list.is_empty() {
            } else if let Some(place) = found.get_mut(count) {
                *place = list;
                count += 1;
            } else {
                show(list);
            }
        };
        keep(&self.here, &mut show);
        if let Some(rest) = path.strip_prefix('/') {
            let mut node = self;
            for segment in rest.split('/') {
                let Some(next) = node.below.get(segment) else {
                    break;
                };
                node = next;
                keep(&node.here, &mut show);
            }
        }
        // The longest first: in a table that is in order it wins, and the others are not looked at.
        for list in found.iter().take(count).rev() {
            show(list);
        }
    }
}

/// So many nested prefixes are kept in the order that is fastest; more are shown as they come.
const DEEP: usize = 16;
