//! The look-up told step by step, by the plain loop that the fast one must agree with.

use super::{Found, Matcher, Miss, Request};
use crate::table::{Entry, HostPattern};

/// What was tried, in order, up to the entry that fits.
#[derive(Debug)]
pub struct Explanation<'a> {
    /// Entries whose path fits; the last one is the one found, if any is.
    pub tried: Vec<Tried<'a>>,
    /// How many were passed over because of their path.
    pub other_paths: usize,
    pub found: Option<Found<'a>>,
}

#[derive(Debug)]
pub struct Tried<'a> {
    /// The host name under which the entry stands.
    pub host: &'a HostPattern,
    pub entry: &'a Entry,
    pub miss: Option<Miss>,
}

impl Matcher {
    pub fn explain(&self, host: &str, request: &Request<'_>) -> Explanation<'_> {
        let mut told = Explanation {
            tried: Vec::new(),
            other_paths: 0,
            found: None,
        };
        for host in self.hosts.candidates(host) {
            for (at, entry) in host.entries.iter().enumerate() {
                let miss = request.miss(&entry.matches);
                if miss == Some(Miss::Path) {
                    told.other_paths += 1;
                    continue;
                }
                let fits = miss.is_none();
                told.tried.push(Tried {
                    host: &host.pattern,
                    entry,
                    miss,
                });
                if fits {
                    told.found = Some(Found {
                        entry,
                        position: host.offset + at,
                    });
                    return told;
                }
            }
        }
        told
    }
}
