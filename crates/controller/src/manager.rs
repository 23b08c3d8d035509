//! Owns the tasks of all controllers of a process, and hands out clients.

use std::future::Future;
use std::sync::Arc;

use tokio::task::JoinSet;
use tracing::error;

use crate::clients::{ClientFactory, Clients};
use crate::key::Reach;
use crate::metrics::Metrics;
use crate::shutdown::Shutdown;

/// The controllers of a process.
pub struct Manager {
    factory: ClientFactory,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
    tasks: JoinSet<()>,
}

impl Manager {
    /// A manager without controllers.
    pub fn new(factory: ClientFactory, metrics: Arc<Metrics>, shutdown: Shutdown) -> Self {
        Self {
            factory,
            metrics,
            shutdown,
            tasks: JoinSet::new(),
        }
    }

    /// The clients of a user. Must be called within a runtime.
    pub fn clients(&self, user: &str) -> Clients {
        self.factory.clients(user)
    }

    /// How far watches reach.
    pub fn reach(&self) -> &Reach {
        self.factory.reach()
    }

    /// The figures.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// The token that ends everything.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Starts a task. It must end by itself when [`Manager::shutdown`] says so.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Waits until the end, and until every task has finished what it was at.
    pub async fn run(mut self) {
        let mut shutdown = self.shutdown.clone();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(problem) = ended {
                error!(%problem, "a controller's task ended badly");
            }
        }
        // Without tasks there is still something to wait for: callers take the return for the end.
        shutdown.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Manager;
    use crate::clients::ClientFactory;
    use crate::fake::Failing;
    use crate::shutdown::Shutdown;

    #[tokio::test]
    async fn a_task_that_fails_takes_no_other_along() {
        let (end, shutdown) = Shutdown::new();
        let factory = ClientFactory::plain(|_| Failing::with(500, "InternalError").client());
        let mut manager = Manager::new(factory, Arc::default(), shutdown);
        let (tell, told) = tokio::sync::oneshot::channel();
        manager.spawn(async { panic!("a task may fail") });
        manager.spawn(async {
            let _ = tell.send(());
        });
        end.shut_down();
        manager.run().await;
        told.await.unwrap();
    }
}
