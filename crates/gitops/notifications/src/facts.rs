//! What conditions and templates may ask of the world: the time, and commits. Whoever decides does not fetch anything, so what is
//! not known is noted, and the caller finds it out and decides again.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// How many commits an Application may ask about.
const MAX_ASKED: usize = 8;

/// What a person should know of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commit {
    /// What it is for.
    pub message: String,
    /// Who wrote it.
    pub author: String,
    /// When, in seconds since 1970.
    pub date: i64,
    /// The tags on it.
    pub tags: Vec<String>,
}

/// What is known.
#[derive(Debug, Default)]
pub struct Facts {
    /// Nanoseconds since 1970.
    pub now: i128,
    /// By their hashes; or why one is not known.
    pub commits: BTreeMap<String, Result<Commit, String>>,
    asked: RefCell<BTreeSet<String>>,
}

impl Facts {
    /// The time, and nothing else.
    pub fn at(now: i128) -> Self {
        Self {
            now,
            ..Self::default()
        }
    }

    /// The commits that were asked about and are not known. They are forgotten by being read.
    pub fn asked(&self) -> BTreeSet<String> {
        self.asked.take()
    }

    pub(crate) fn commit(&self, hash: &str) -> Result<&Commit, String> {
        match self.commits.get(hash) {
            Some(known) => known.as_ref().map_err(Clone::clone),
            None if self.commits.len() + self.asked.borrow().len() >= MAX_ASKED => {
                Err(format!("more than {MAX_ASKED} commits are asked about"))
            }
            None => {
                self.asked.borrow_mut().insert(hash.to_owned());
                Err(format!("the commit {hash} is not known yet"))
            }
        }
    }
}
