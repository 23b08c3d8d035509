//! A deadline that is moved often and reached seldom.
//!
//! Moving one is an assignment: the timer is armed only when somebody waits, and when it fires early it is armed again. So
//! requests that are answered at once cost no timer at all.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

pub(crate) struct Watch {
    deadline: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Watch {
    pub(crate) fn new(after: Duration) -> Self {
        Self {
            deadline: Instant::now() + after,
            sleep: None,
        }
    }

    pub(crate) fn set(&mut self, after: Duration) {
        self.deadline = Instant::now() + after;
        // A timer that would ring too late is of no use; one that rings too early is armed again.
        if let Some(sleep) = &mut self.sleep
            && sleep.deadline() > self.deadline
        {
            sleep.as_mut().reset(self.deadline);
        }
    }

    /// Whether its time has come, without waiting for it.
    pub(crate) fn is_due(&self) -> bool {
        Instant::now() >= self.deadline
    }

    pub(crate) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline;
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        loop {
            match sleep.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) if Instant::now() >= deadline => return Poll::Ready(()),
                Poll::Ready(()) => sleep.as_mut().reset(deadline),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn rings_at_the_last_deadline_that_was_set() {
        let begun = Instant::now();
        let millis = Duration::from_millis;
        let mut watch = Watch::new(millis(10));
        // Armed for ten milliseconds, then moved.
        assert!(
            poll_fn(|cx| Poll::Ready(watch.poll_expired(cx)))
                .await
                .is_pending()
        );
        watch.set(millis(100));
        poll_fn(|cx| watch.poll_expired(cx)).await;
        assert!(begun.elapsed() >= millis(100), "not at the first deadline");
        watch.set(Duration::from_secs(100));
        assert!(
            poll_fn(|cx| Poll::Ready(watch.poll_expired(cx)))
                .await
                .is_pending()
        );
        watch.set(millis(10));
        poll_fn(|cx| watch.poll_expired(cx)).await;
        assert!(
            begun.elapsed() < Duration::from_secs(50),
            "an earlier deadline counts, too"
        );
    }
}
