//! Owns the tasks of all controllers of a process, and hands out clients.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use tokio::task::JoinSet;
use tracing::error;

use crate::key::WorkspaceId;
use crate::metrics::Metrics;
use crate::shutdown::Shutdown;

/// Makes a client for a user in a workspace. With a kubeconfig the same client may serve all.
pub type ClientFactory = Arc<dyn Fn(&WorkspaceId, &str) -> Client + Send + Sync>;

/// The controllers of a process.
pub struct Manager {
    factory: ClientFactory,
    clients: Mutex<HashMap<(WorkspaceId, String), Client>>,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
    tasks: JoinSet<()>,
}

impl Manager {
    /// A manager without controllers.
    pub fn new(factory: ClientFactory, metrics: Arc<Metrics>, shutdown: Shutdown) -> Self {
        Self {
            factory,
            clients: Mutex::default(),
            metrics,
            shutdown,
            tasks: JoinSet::new(),
        }
    }

    /// The client of a user in a workspace; it is made once. Must be called within a runtime.
    pub fn client(&self, workspace: &WorkspaceId, user: &str) -> Client {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients
            .entry((workspace.clone(), user.to_owned()))
            .or_insert_with(|| (self.factory)(workspace, user))
            .clone()
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Manager;
    use crate::fake::Failing;
    use crate::key::WorkspaceId;
    use crate::shutdown::Shutdown;

    #[tokio::test]
    async fn a_client_is_made_once_for_each_user() {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let (end, shutdown) = Shutdown::new();
        let factory = Arc::new(move |_: &WorkspaceId, _: &str| {
            count.fetch_add(1, Ordering::SeqCst);
            Failing::with(500, "InternalError").client()
        });
        let mut manager = Manager::new(factory, Arc::default(), shutdown);
        for user in ["a", "b", "a"] {
            manager.client(&WorkspaceId::root(), user);
        }
        assert_eq!(made.load(Ordering::SeqCst), 2);
        manager.spawn(async { panic!("a task may fail without taking others along") });
        end.shut_down();
        manager.run().await;
    }
}
