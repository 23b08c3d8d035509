//! The end of a process, told to every task: no new work is begun, and what is under way is finished.

use tokio::sync::watch;

/// Knows whether the end has come. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// Brings the end about, when told to or when dropped.
#[derive(Debug)]
pub struct ShutdownTrigger(watch::Sender<bool>);

impl Shutdown {
    /// A trigger and the token that feels it.
    pub fn new() -> (ShutdownTrigger, Self) {
        let (sender, receiver) = watch::channel(false);
        (ShutdownTrigger(sender), Self(receiver))
    }

    /// Whether the end has come.
    pub fn is_shut_down(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits for the end.
    pub async fn wait(&mut self) {
        // An error says that the trigger is gone, which is the end as well.
        let _ = self.0.wait_for(|ended| *ended).await;
    }
}

impl ShutdownTrigger {
    /// Ends what holds the token.
    pub fn shut_down(&self) {
        self.0.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use super::Shutdown;

    #[tokio::test]
    async fn a_trigger_that_is_dropped_has_fired() {
        let (trigger, mut token) = Shutdown::new();
        assert!(!token.is_shut_down());
        drop(trigger);
        assert!(token.is_shut_down());
        token.wait().await;
    }

    #[tokio::test]
    async fn every_clone_feels_it() {
        let (trigger, token) = Shutdown::new();
        let mut other = token.clone();
        trigger.shut_down();
        other.wait().await;
        assert!(token.is_shut_down());
    }
}
