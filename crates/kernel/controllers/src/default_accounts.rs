//! Every namespace has the service account `default`; it is created anew when somebody deletes it.

use std::sync::Arc;

use fairway_controller::cache::Cache;
use fairway_controller::error::{is_already_exists, is_namespace_terminating, is_not_found};
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Manager, Metadata, ObjectKey, Outcome, Queue, Reconcile,
    watch,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, ApiResource, ObjectMeta, PostParams};
use kube::runtime::watcher;

use crate::{Setup, users};

const NAME: &str = "default-service-accounts";
const ACCOUNT: &str = "default";
const WORKERS: usize = 4;

struct DefaultAccounts {
    clients: Clients,
    /// Whether each namespace lives.
    namespaces: Arc<Cache<bool>>,
    accounts: Arc<Cache<()>>,
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let informer = manager.clients(users::INFORMER).every();
    let queue = Queue::default();
    let namespaces = setup.namespaces.tell(&queue);
    let accounts = Arc::new(Cache::new(manager.reach()));
    let sink = queue.clone();
    manager.spawn(watch::follow_news_into(
        Api::<Metadata>::all_with(informer, &ApiResource::erase::<ServiceAccount>(&())),
        watcher::Config::default().fields(&format!("metadata.name={ACCOUNT}")),
        manager.shutdown(),
        Arc::clone(&accounts),
        |_: Metadata| (),
        move |key| sink.add(key.to_namespace()),
    ));
    let (seen, made, sink) = (Arc::clone(&namespaces), Arc::clone(&accounts), queue.clone());
    let synced = (Arc::clone(&namespaces), Arc::clone(&accounts));
    manager.spawn(watch::once(
        move || synced.0.is_synced() && synced.1.is_synced(),
        manager.shutdown(),
        move || {
            let lacking =
                seen.keys_where(|key, lives| decide(Some(*lives), made.get(&account_in(key)).is_some()));
            lacking.into_iter().for_each(|key| sink.add(key));
        },
    ));
    let reconciler = DefaultAccounts {
        clients: manager.clients(users::SERVICE_ACCOUNT_CONTROLLER),
        namespaces,
        accounts,
    };
    let controller = Controller::new(NAME, queue, reconciler).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

fn account_in(namespace: &ObjectKey) -> ObjectKey {
    ObjectKey::new(&namespace.workspace, &namespace.name, ACCOUNT)
}

/// Whether an account must be created.
fn decide(namespace_lives: Option<bool>, account: bool) -> bool {
    namespace_lives == Some(true) && !account
}

impl Reconcile<ObjectKey> for DefaultAccounts {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        if !decide(
            self.namespaces.get(key).as_deref().copied(),
            self.accounts.get(&account_in(key)).is_some(),
        ) {
            return Ok(Outcome::Done);
        }
        let api: Api<ServiceAccount> = Api::namespaced(self.clients.of(&key.workspace), &key.name);
        let account = ServiceAccount {
            metadata: ObjectMeta {
                name: Some(ACCOUNT.to_owned()),
                ..ObjectMeta::default()
            },
            ..ServiceAccount::default()
        };
        match api.create(&PostParams::default(), &account).await {
            // It is there, or its namespace is going: the watches will tell.
            Err(e) if is_already_exists(&e) || is_namespace_terminating(&e) || is_not_found(&e) => {
                Ok(Outcome::Done)
            }
            answer => answer
                .attempting("create the default service account")
                .map(|_| Outcome::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::decide;

    #[test]
    fn accounts_are_created_where_a_namespace_lives_without_one() {
        for (lives, account, want) in [
            (Some(true), false, true),
            (Some(true), true, false),
            (Some(false), false, false),
            (None, false, false),
        ] {
            assert_eq!(decide(lives, account), want, "{lives:?} {account}");
        }
    }
}
