//! Takes care that no two tasks work on the same object at once, where one controller calls another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairway_controller::{ObjectKey, Queue};

/// Who is being worked on. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Turns {
    /// `true`: somebody else wanted a turn meanwhile.
    taken: Arc<Mutex<HashMap<ObjectKey, bool>>>,
    queue: Queue<ObjectKey>,
}

/// A turn on an object. At its end the object is queued if somebody was turned away.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    key: ObjectKey,
}

impl Turns {
    pub(super) fn new(queue: &Queue<ObjectKey>) -> Self {
        Self {
            taken: Arc::default(),
            queue: queue.clone(),
        }
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<ObjectKey, bool>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn, unless somebody has it.
    pub(super) fn take(&self, key: &ObjectKey) -> Option<Turn<'_>> {
        let mut taken = self.taken();
        if let Some(wanted) = taken.get_mut(key) {
            *wanted = true;
            return None;
        }
        taken.insert(key.clone(), false);
        Some(Turn {
            turns: self,
            key: key.clone(),
        })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let wanted = self.turns.taken().remove(&self.key);
        if wanted == Some(true) {
            self.turns.queue.add(self.key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use fairway_controller::{ObjectKey, Queue, WorkspaceId};

    use super::Turns;

    #[test]
    fn who_is_turned_away_is_not_forgotten() {
        let queue = Queue::default();
        let turns = Turns::new(&queue);
        let key = ObjectKey::new(&WorkspaceId::root(), "", "a");
        drop(turns.take(&key).unwrap());
        assert_eq!(queue.depth(), 0, "nobody was");
        let turn = turns.take(&key).unwrap();
        assert!(turns.take(&key).is_none());
        assert!(
            turns
                .take(&ObjectKey::new(&WorkspaceId::root(), "", "b"))
                .is_some()
        );
        drop(turn);
        assert_eq!(queue.depth(), 1);
        assert!(turns.take(&key).is_some());
    }
}
