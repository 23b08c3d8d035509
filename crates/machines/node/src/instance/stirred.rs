//! Claims that change while somebody looks at them.
//!
//! Whoever finds a claim unbound waits to be told that it has changed. If it was bound after it was read and before that look was over, the
//! change was told when nobody waited for it, and nobody tells again. So what changes during a look is remembered, and then the look is
//! made anew.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// Tells a task which claims have changed. Whoever tells never waits, however busy the task is, and a claim that changes often
/// takes no more room than one that changes once.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    names: Mutex<BTreeSet<String>>,
    rung: Notify,
}

impl Bell {
    /// A claim has changed.
    pub(crate) fn ring(&self, name: &str) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.contains(name) {
            names.insert(name.to_owned());
        }
        drop(names);
        self.rung.notify_one();
    }

    /// Waits until claims have changed, and takes their names. Nothing is lost if the waiting is given up.
    pub(crate) async fn heard(&self) -> BTreeSet<String> {
        loop {
            let names = std::mem::take(&mut *self.names.lock().unwrap_or_else(PoisonError::into_inner));
            if !names.is_empty() {
                return names;
            }
            self.rung.notified().await;
        }
    }
}

/// Which claims have changed since a look at some of them began.
#[derive(Debug, Default)]
pub(crate) struct Stirred {
    /// Nothing while nobody looks.
    since: Option<BTreeSet<String>>,
}

impl Stirred {
    /// Somebody begins to look.
    pub(crate) fn look(&mut self) {
        self.since = Some(BTreeSet::new());
    }

    /// A claim has changed.
    pub(crate) fn changed(&mut self, name: &str) {
        if let Some(since) = &mut self.since {
            since.insert(name.to_owned());
        }
    }

    /// The look is over, whatever it has found.
    pub(crate) fn over(&mut self) -> Meanwhile {
        Meanwhile(self.since.take().unwrap_or_default())
    }
}

/// Which claims have changed during a look.
#[derive(Debug)]
pub(crate) struct Meanwhile(BTreeSet<String>);

impl Meanwhile {
    /// These were found unbound: whom to wait for, or nothing if what was found may be old by now and has to be looked at again.
    pub(crate) fn waits_for(&self, unbound: Vec<String>) -> Option<Vec<String>> {
        (!unbound.iter().any(|it| self.0.contains(it))).then_some(unbound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&it| it.to_owned()).collect()
    }

    #[test]
    fn what_changed_during_a_look_is_looked_at_again() {
        for (before, during, unbound, waits, reason) in [
            (&[][..], &[][..], &["root"][..], true, "nothing has happened"),
            (&[], &["root"], &["root"], false, "bound after it was read"),
            (&["root"], &[], &["root"], true, "the look has seen that change"),
            (&[], &["other"], &["root"], true, "nobody looked at that one"),
            (&[], &["data"], &["root", "data"], false, "one of two is enough"),
        ] {
            let mut stirred = Stirred::default();
            for name in before {
                stirred.changed(name);
            }
            stirred.look();
            for name in during {
                stirred.changed(name);
            }
            let expected = waits.then(|| names(unbound));
            assert_eq!(stirred.over().waits_for(names(unbound)), expected, "{reason}");
        }
    }

    #[test]
    fn one_look_has_nothing_to_do_with_the_next() {
        let mut stirred = Stirred::default();
        stirred.look();
        stirred.changed("root");
        assert_eq!(stirred.over().waits_for(names(&["root"])), None);
        stirred.changed("root");
        stirred.look();
        assert_eq!(stirred.over().waits_for(names(&["root"])), Some(names(&["root"])));
    }

    #[tokio::test]
    async fn the_bell_keeps_what_nobody_has_heard() {
        let bell = Bell::default();
        for name in ["b", "a", "b"] {
            bell.ring(name);
        }
        assert_eq!(bell.heard().await, names(&["a", "b"]).into_iter().collect());
        // Somebody waits in vain, and gives up.
        let waited = tokio::time::timeout(std::time::Duration::from_millis(5), bell.heard()).await;
        assert!(waited.is_err());
        let (heard, ()) = tokio::join!(bell.heard(), async {
            tokio::task::yield_now().await;
            bell.ring("c");
        });
        assert_eq!(heard, names(&["c"]).into_iter().collect());
    }
}
