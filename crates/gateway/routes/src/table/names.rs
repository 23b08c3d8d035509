//! Things by host name: exact ones, `*.suffix`, and whatever remains.
//!
//! A look-up costs the number of labels in the name, however many names there are.

use std::collections::HashMap;

/// A host name as manifests write it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostPattern {
    /// In lower case.
    Exact(String),
    /// `*.example.com` is kept as `example.com`, and does not match that name itself.
    Wildcard(String),
    Any,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names<T> {
    exact: HashMap<String, T>,
    wildcard: HashMap<String, T>,
    any: Option<T>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self {
            exact: HashMap::new(),
            wildcard: HashMap::new(),
            any: None,
        }
    }
}

impl<T> Names<T> {
    /// What stood there before comes back.
    pub fn insert(&mut self, pattern: HostPattern, value: T) -> Option<T> {
        match pattern {
            HostPattern::Exact(name) => self.exact.insert(name, value),
            HostPattern::Wildcard(suffix) => self.wildcard.insert(suffix, value),
            HostPattern::Any => self.any.replace(value),
        }
    }

    pub fn get(&self, pattern: &HostPattern) -> Option<&T> {
        match pattern {
            HostPattern::Exact(name) => self.exact.get(name),
            HostPattern::Wildcard(suffix) => self.wildcard.get(suffix),
            HostPattern::Any => self.any.as_ref(),
        }
    }

    /// All that fit `host` (in lower case, without port), the most specific first.
    pub fn candidates<'a, 'h>(&'a self, host: &'h str) -> impl Iterator<Item = &'a T> + use<'a, 'h, T> {
        let suffixes = host.match_indices('.').map(|(at, _)| &host[at + 1..]);
        self.exact
            .get(host)
            .into_iter()
            .chain(suffixes.filter_map(|suffix| self.wildcard.get(suffix)))
            .chain(self.any.as_ref())
    }

    pub fn iter(&self) -> impl Iterator<Item = (HostPattern, &T)> {
        self.exact
            .iter()
            .map(|(name, value)| (HostPattern::Exact(name.clone()), value))
            .chain(
                self.wildcard
                    .iter()
                    .map(|(suffix, value)| (HostPattern::Wildcard(suffix.clone()), value)),
            )
            .chain(self.any.iter().map(|value| (HostPattern::Any, value)))
    }

    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.wildcard.is_empty() && self.any.is_none()
    }
}
