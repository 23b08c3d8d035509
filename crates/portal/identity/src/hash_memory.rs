//! The memory that password hashes are computed in, kept for the next one.
//!
//! A hash wants 19 MiB. Whoever takes them afresh each time has the kernel find and clear five thousand pages, which costs as much as the
//! hash itself. So what one hash has used lies ready for the next, at most as much as are computed at once, and goes back to the system
//! once nobody has signed in for a few seconds.
//!
//! It is not wiped in between, which would cost as much as a tenth of a hash. The second pass has overwritten every block with what
//! depends on all others, so that whoever could read this memory would judge a guess after the first pass instead of the second, and
//! would still pay for that; whoever can read our memory finds the hashes as well.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argon2::Block;
use tokio::time::Instant;

/// How long memory that nobody uses is kept.
const IDLE: Duration = Duration::from_secs(5);

/// Memory of hashes of one size.
#[derive(Debug)]
pub(crate) struct HashMemory {
    /// In KiB, each of them a block.
    size: usize,
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    kept: Vec<Kept>,
    /// Whether somebody looks after what lies here too long.
    watched: bool,
}

#[derive(Debug)]
struct Kept {
    blocks: Vec<Block>,
    since: Instant,
}

impl HashMemory {
    pub(crate) fn new(size: u32) -> Arc<Self> {
        Arc::new(Self {
            size: usize::try_from(size).unwrap_or(0),
            shelf: Mutex::default(),
        })
    }

    fn shelf<T>(&self, act: impl FnOnce(&mut Shelf) -> T) -> T {
        act(&mut self.shelf.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Does something with memory of this size. Each who does so at the same time has his own, so their number must be bounded.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut [Block]) -> T) -> T {
        // What was used last is likelier to be in a cache.
        let kept = self.shelf(|shelf| shelf.kept.pop());
        let mut blocks = kept.map_or_else(|| vec![Block::new(); self.size], |kept| kept.blocks);
        let found = act(&mut blocks);
        let since = Instant::now();
        self.shelf(|shelf| shelf.kept.push(Kept { blocks, since }));
        found
    }

    /// Sees to it that memory is given back some time; to be called from within the runtime, each time after some was used.
    pub(crate) fn watch(self: &Arc<Self>) {
        let is_new = self.shelf(|shelf| !std::mem::replace(&mut shelf.watched, true));
        if is_new {
            let memory = Arc::clone(self);
            tokio::spawn(async move {
                while !memory.tidy() {
                    tokio::time::sleep(IDLE).await;
                }
            });
        }
    }

    /// Gives back what was not used for some time; whether nothing is left to look after.
    fn tidy(&self) -> bool {
        let now = Instant::now();
        self.shelf(|shelf| {
            shelf.kept.retain(|kept| now.duration_since(kept.since) < IDLE);
            shelf.watched = !shelf.kept.is_empty();
            !shelf.watched
        })
    }

    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.shelf(|shelf| shelf.kept.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_used_is_kept_for_the_next_and_given_back_in_the_end() {
        tokio::time::pause();
        let memory = HashMemory::new(8);
        memory.with(|first| {
            assert_eq!(first.len(), 8);
            // Who comes in between has his own.
            memory.with(|second| assert_eq!(second.len(), 8));
        });
        assert_eq!(memory.kept(), 2);
        let at = memory.with(|blocks| blocks.as_ptr().addr());
        assert_eq!(memory.with(|blocks| blocks.as_ptr().addr()), at);
        assert_eq!(memory.kept(), 2);
        memory.watch();
        tokio::time::sleep(IDLE / 2).await;
        memory.with(|_| ());
        memory.watch();
        tokio::time::sleep(IDLE - Duration::from_millis(1)).await;
        assert_eq!(memory.kept(), 1, "one of them was used meanwhile");
        tokio::time::sleep(2 * IDLE).await;
        assert_eq!(memory.kept(), 0);
        // And once more: the watch has ended, and begins again.
        memory.with(|_| ());
        memory.watch();
        tokio::time::sleep(3 * IDLE).await;
        assert_eq!(memory.kept(), 0);
    }
}
