//! One at a time for each name: who fetches something lets others wait, who then find what he fetched.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

/// Names that somebody is at.
#[derive(Debug, Default)]
pub(crate) struct Alone(Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>);

impl Alone {
    /// Waits until nobody else is at the name.
    pub(crate) async fn with(&self, name: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            names.retain(|_, lock| lock.strong_count() > 0);
            match names.get(name).and_then(Weak::upgrade) {
                Some(lock) => lock,
                None => {
                    let lock = Arc::new(tokio::sync::Mutex::new(()));
                    names.insert(name.to_owned(), Arc::downgrade(&lock));
                    lock
                }
            }
        };
        lock.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_are_apart() {
        let alone = Alone::default();
        let one = alone.with("a").await;
        let _other = alone.with("b").await;
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(10), alone.with("a"));
        assert!(waiting.await.is_err());
        drop(one);
        let _again = alone.with("a").await;
        assert_eq!(alone.0.lock().unwrap().len(), 2);
    }
}
