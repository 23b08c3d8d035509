//! A bounded memory of what can be made again, in two generations: what is in use, and what was until lately.
//!
//! When the young have grown too heavy they become the old, and the old go. What is asked for among the old is young again, so
//! nothing goes that is in use, and there is no order of use to be kept.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// What is remembered, by its key.
pub(crate) struct Generations<K, V> {
    young: HashMap<K, Arc<V>>,
    young_weight: usize,
    old: HashMap<K, Arc<V>>,
}

impl<K, V> Default for Generations<K, V> {
    fn default() -> Self {
        Self {
            young: HashMap::new(),
            young_weight: 0,
            old: HashMap::new(),
        }
    }
}

/// How heavy a generation may be, and what weighs how much.
pub(crate) struct Bound<V> {
    /// The most that the young may weigh.
    pub(crate) keep: usize,
    /// What one weighs.
    pub(crate) weigh: fn(&V) -> usize,
}

impl<K: Eq + Hash + Copy, V> Generations<K, V> {
    /// What is remembered of a key.
    pub(crate) fn get(&mut self, key: K, bound: &Bound<V>) -> Option<Arc<V>> {
        if let Some(value) = self.young.get(&key) {
            return Some(Arc::clone(value));
        }
        let value = self.old.remove(&key)?;
        self.add(key, &value, bound);
        Some(value)
    }

    /// Remembers.
    pub(crate) fn add(&mut self, key: K, value: &Arc<V>, bound: &Bound<V>) {
        self.young_weight += (bound.weigh)(value);
        self.young.insert(key, Arc::clone(value));
        if self.young_weight > bound.keep {
            // What nobody asked for during a whole generation goes.
            self.old = std::mem::take(&mut self.young);
            self.young_weight = 0;
        }
    }

    /// How many are remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}
