//! A map for few entries: a sorted list without room to spare.
//!
//! There is one index of bindings for each workspace, and most hold a single binding. A tree would be mostly empty nodes,
//! and ten thousand of them tens of megabytes. Entries are small, so moving them aside for a new one is cheap even where
//! there are many, and objects are loaded in the order of their names.

/// Values by name.
#[derive(Debug, Clone)]
pub(crate) struct Sorted<V>(Vec<(Box<str>, V)>);

impl<V> Default for Sorted<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> Sorted<V> {
    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| (**other).cmp(name))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&V> {
        self.find(name).ok().map(|at| &self.0[at].1)
    }

    /// Puts a value in its place, unless there is one.
    pub(crate) fn add(&mut self, name: &str, value: V) {
        if let Err(at) = self.find(name) {
            // The first few come without room to spare.
            if self.0.len() < 4 {
                self.0.reserve_exact(1);
            }
            self.0.insert(at, (name.into(), value));
        }
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<V> {
        self.find(name).ok().map(|at| self.0.remove(at).1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Everything, in the order of names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// The names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::Sorted;

    #[test]
    fn it_is_a_map_in_order() {
        let mut map = Sorted::default();
        for (name, value) in [("b", 1), ("a", 2), ("c", 3), ("a", 4)] {
            map.add(name, value);
        }
        assert_eq!(map.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!((map.get("a"), map.get("d")), (Some(&2), None), "the first stays");
        assert_eq!((map.remove("b"), map.remove("b")), (Some(1), None));
        assert_eq!(map.names().collect::<Vec<_>>(), ["a", "c"]);
        assert!(!map.is_empty());
    }
}
