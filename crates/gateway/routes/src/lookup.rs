//! Which rule a request belongs to: the first entry, in the table's order, that fits it.
//!
//! A [`Matcher`] answers as fast among ten thousand routes as among ten. Exact paths are found by hash, prefixes by a walk down
//! a tree of segments that is no deeper than the longest prefix, and only expressions are tried one after the other. Whatever
//! the order of the entries, the answer is that of the plain loop ([`Matcher::explain`] is one); `tests` prove it.

mod explain;
mod fit;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::HashMap;
use std::sync::Arc;

pub use explain::{Explanation, Tried};
pub use fit::{Miss, Request};
use tree::Tree;

use crate::table::{Entry, HostPattern, Listener, Names, PathMatch};

/// What a listener serves, made for looking up.
#[derive(Debug, Default)]
pub struct Matcher {
    hosts: Names<Host>,
    entries: usize,
}

/// The entries of one host name.
#[derive(Debug)]
struct Host {
    pattern: HostPattern,
    entries: Arc<Vec<Entry>>,
    /// Of the first entry, among all of the listener.
    offset: usize,
    exact: HashMap<Box<str>, Vec<u32>>,
    prefixes: Tree,
    expressions: Vec<u32>,
}

/// An entry that fits.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    pub entry: &'a Entry,
    /// Its place among all entries of the listener, as [`Matcher::entries`] goes: for what a data plane keeps beside each.
    pub position: usize,
}

impl Matcher {
    pub fn new(listener: &Listener) -> Self {
        let mut hosts: Vec<(HostPattern, Arc<Vec<Entry>>)> = listener
            .routes
            .iter()
            .map(|(pattern, entries)| (pattern, Arc::clone(entries)))
            .collect();
        hosts.sort_by(|one, two| one.0.cmp(&two.0));
        let mut matcher = Self::default();
        for (pattern, entries) in hosts {
            let offset = matcher.entries;
            matcher.entries += entries.len();
            matcher
                .hosts
                .insert(pattern.clone(), Host::new(pattern, &entries, offset));
        }
        matcher
    }

    /// `host` is in lower case and without port. Of the host names that fit, the most specific that has a fitting entry.
    pub fn find(&self, host: &str, request: &Request<'_>) -> Option<Found<'_>> {
        self.hosts.candidates(host).find_map(|host| host.find(request))
    }

    /// All entries, in the order of their positions.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        let mut hosts: Vec<&Host> = self.hosts.iter().map(|(_, host)| host).collect();
        hosts.sort_by_key(|host| host.offset);
        hosts.into_iter().flat_map(|host| host.entries.iter())
    }

    pub fn len(&self) -> usize {
        self.entries
    }

    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }
}

impl Host {
    fn new(pattern: HostPattern, entries: &Arc<Vec<Entry>>, offset: usize) -> Self {
        let mut host = Self {
            pattern,
            offset,
            exact: HashMap::new(),
            prefixes: Tree::default(),
            expressions: Vec::new(),
            entries: Arc::clone(entries),
        };
        // More entries than that do not fit into a store; if they did, those behind would not be found.
        for (entry, at) in entries.iter().zip(0..u32::MAX) {
            match &entry.matches.path {
                PathMatch::Exact(path) => match host.exact.get_mut(path.as_str()) {
                    Some(list) => list.push(at),
                    None => drop(host.exact.insert(path.as_str().into(), vec![at])),
                },
                PathMatch::Prefix(prefix) => host.prefixes.insert(prefix, at),
                PathMatch::Regex(_) => host.expressions.push(at),
            }
        }
        host
    }

    fn find(&self, request: &Request<'_>) -> Option<Found<'_>> {
        let mut best: Option<u32> = None;
        if let Some(list) = self.exact.get(request.path) {
            self.first(list, request, false, &mut best);
        }
        self.first(&self.expressions, request, true, &mut best);
        self.prefixes
            .walk(request.path, |list| self.first(list, request, false, &mut best));
        let at = best? as usize;
        Some(Found {
            entry: self.entries.get(at)?,
            position: self.offset + at,
        })
    }

    /// The first of a list (which is in order) that fits, if it comes before the best so far.
    fn first(&self, list: &[u32], request: &Request<'_>, ask_path: bool, best: &mut Option<u32>) {
        for &at in list {
            if best.is_some_and(|best| best < at) {
                return;
            }
            let Some(entry) = self.entries.get(at as usize) else {
                return;
            };
            let path = !ask_path || request.fits_path(&entry.matches.path);
            if path && request.miss_but_path(&entry.matches).is_none() {
                *best = Some(at);
                return;
            }
        }
    }
}
