//! What the portal has seen, and whom a change concerns.

use std::sync::Arc;

use fairway_api::Kind;
use fairway_api::gateway::{
    API_KEY, API_KEY_APPROVAL, API_KEY_REQUEST, API_PRODUCT, AUTH_POLICY, HTTP_ROUTE, PLAN_POLICY,
};
use fairway_controller::cache::Cache;
use fairway_controller::{Clients, Json, Manager, ObjectKey, Queue, Reach, Shutdown, WorkspaceId, watch};
use fairway_gateway_policy::portal::{
    KEY_OF, names, product_of, request_name, secret_name, without_document,
};
use fairway_gateway_routes::observed::Kind as Observable;
use kube::api::Api;
use kube::runtime::watcher::{Config, Event};
use serde_json::{Value, json};

use super::{SYSTEM_NAMESPACE, Work};
use crate::kinds::{resource, served};

/// Only these hold keys of APIs.
const SECRETS: &str = "type=Opaque";

/// Views of the kinds that decisions read.
pub(super) struct Seen {
    pub(super) products: Arc<Cache<Value>>,
    pub(super) keys: Arc<Cache<Value>>,
    pub(super) requests: Arc<Cache<Value>>,
    pub(super) approvals: Arc<Cache<Value>>,
    pub(super) routes: Arc<Cache<Value>>,
    pub(super) auth: Arc<Cache<Value>>,
    pub(super) plans: Arc<Cache<Value>>,
    /// There is something to do.
    needed: tokio::sync::watch::Sender<bool>,
}

impl Seen {
    pub(super) fn new(reach: &Reach) -> Self {
        let cache = || Arc::new(Cache::new(reach));
        Self {
            products: cache(),
            keys: cache(),
            requests: cache(),
            approvals: cache(),
            routes: cache(),
            auth: cache(),
            plans: cache(),
            needed: tokio::sync::watch::channel(false).0,
        }
    }

    /// Waits for the first product, key or request.
    async fn until_needed(&self) {
        // The sender lives as long as this does.
        let _ = self.needed.subscribe().wait_for(|needed| *needed).await.is_ok();
    }

    /// Whether absence means anything.
    pub(super) fn is_synced(&self) -> bool {
        let all = [
            &self.products,
            &self.keys,
            &self.requests,
            &self.approvals,
            &self.routes,
            &self.auth,
            &self.plans,
        ];
        all.iter().all(|cache| cache.is_synced())
    }

    fn cache(&self, kind: Watched) -> &Arc<Cache<Value>> {
        match kind {
            Watched::Product => &self.products,
            Watched::Key => &self.keys,
            Watched::Request => &self.requests,
            Watched::Approval => &self.approvals,
            Watched::Route => &self.routes,
            Watched::Auth => &self.auth,
            Watched::Plan => &self.plans,
        }
    }

    /// Keys for which something holds.
    fn keys_where(&self, workspace: &WorkspaceId, wanted: impl Fn(&Value) -> bool) -> Vec<Work> {
        let all = self.keys.of_workspace(workspace).into_iter();
        all.filter(|(_, key)| wanted(key))
            .map(|(key, _)| Work::Key(key))
            .collect()
    }

    /// What has to be looked at when an object has changed; `object` is none if it is gone.
    fn concerned(&self, kind: Watched, key: &ObjectKey, object: Option<&Value>) -> Vec<Work> {
        let workspace = &key.workspace;
        match kind {
            Watched::Product => {
                let of_it = |other: &Value| product_of(other) == (key.namespace.clone(), key.name.clone());
                let mut concerned = self.keys_where(workspace, of_it);
                concerned.push(Work::Product(key.clone()));
                concerned
            }
            Watched::Key => vec![Work::Key(key.clone())],
            Watched::Request => {
                let mut concerned = match object {
                    Some(request) => {
                        let of = &request["spec"]["apiKeyRef"];
                        let text = |field: &str| of[field].as_str().unwrap_or("").to_owned();
                        let named = ObjectKey::new(workspace, &text("namespace"), &text("name"));
                        vec![Work::Key(named)]
                    }
                    None => self.keys_where(workspace, |other| stands_for(key, other)),
                };
                let approvals = self.approvals.of_namespace(workspace, &key.namespace);
                let naming = approvals.into_iter().filter(|(_, approval)| {
                    approval["spec"]["apiKeyRequestRef"]["name"] == key.name.as_str()
                });
                concerned.extend(naming.map(|(key, _)| Work::Approval(key)));
                concerned
            }
            Watched::Approval => {
                // One that is gone does not tell what it was for.
                let request = object.map(|approval| &approval["spec"]["apiKeyRequestRef"]["name"]);
                let mut concerned = self.keys_where(workspace, |other| {
                    let (namespace, name) = names(other);
                    product_of(other).0 == key.namespace
                        && request.is_none_or(|request| *request == request_name(namespace, name).as_str())
                });
                concerned.push(Work::Approval(key.clone()));
                concerned
            }
            Watched::Route => self.products_where(workspace, |place, product| {
                place.namespace == key.namespace && product["spec"]["targetRef"]["name"] == key.name.as_str()
            }),
            Watched::Auth | Watched::Plan => self.products_where(workspace, |_, _| true),
        }
    }

    fn products_where(
        &self,
        workspace: &WorkspaceId,
        wanted: impl Fn(&ObjectKey, &Value) -> bool,
    ) -> Vec<Work> {
        let all = self.products.of_workspace(workspace).into_iter();
        all.filter(|(key, product)| wanted(key, product))
            .map(|(key, _)| Work::Product(key))
            .collect()
    }

    /// Whom a Secret concerns.
    fn readers(&self, key: &ObjectKey, secret: &Value) -> Vec<Work> {
        let of = secret
            .pointer("/metadata/annotations")
            .and_then(|all| all.get(KEY_OF));
        let of = of.and_then(Value::as_str).and_then(|text| text.split_once('/'));
        if let (true, Some((namespace, name))) = (key.namespace == SYSTEM_NAMESPACE, of) {
            return vec![Work::Key(ObjectKey::new(&key.workspace, namespace, name))];
        }
        let of_namespace = self.keys.of_namespace(&key.workspace, &key.namespace);
        let reading = of_namespace
            .into_iter()
            .filter(|(_, other)| secret_name(other) == key.name);
        reading.map(|(key, _)| Work::Key(key)).collect()
    }
}

fn stands_for(request: &ObjectKey, key: &Value) -> bool {
    let (namespace, name) = names(key);
    request_name(namespace, name) == request.name
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Watched {
    Product,
    Key,
    Request,
    Approval,
    Route,
    Auth,
    Plan,
}

impl Watched {
    /// The kinds by which is seen whether anybody uses the portal.
    const FIRST: [Self; 3] = [Self::Product, Self::Key, Self::Request];
    const THEN: [Self; 4] = [Self::Approval, Self::Route, Self::Auth, Self::Plan];

    fn kind(self) -> Kind {
        match self {
            Self::Product => API_PRODUCT,
            Self::Key => API_KEY,
            Self::Request => API_KEY_REQUEST,
            Self::Approval => API_KEY_APPROVAL,
            Self::Route => HTTP_ROUTE,
            Self::Auth => AUTH_POLICY,
            Self::Plan => PLAN_POLICY,
        }
    }

    /// What is kept of an object. There may be very many routes, and documents are large.
    fn keep(self, object: Value) -> Value {
        match self {
            Self::Product => without_document(object),
            Self::Route => json!({
                "metadata": {"namespace": object["metadata"]["namespace"], "name": object["metadata"]["name"]},
                "spec": {
                    "parentRefs": object["spec"]["parentRefs"], "hostnames": object["spec"]["hostnames"],
                },
                "status": {"parents": object["status"]["parents"]},
            }),
            _ => object,
        }
    }
}

/// Follows the kinds of the portal, and the others once there is something to do.
pub(super) fn watch(manager: &mut Manager, clients: &Clients, seen: &Arc<Seen>, queue: &Queue<Work>) {
    for kind in Watched::FIRST {
        let (clients, seen, queue) = (clients.clone(), Arc::clone(seen), queue.clone());
        manager.spawn(follow(clients, kind, seen, queue, manager.shutdown()));
    }
    for kind in Watched::THEN {
        let (clients, seen, queue) = (clients.clone(), Arc::clone(seen), queue.clone());
        let mut shutdown = manager.shutdown();
        manager.spawn(async move {
            tokio::select! {
                () = shutdown.wait() => return,
                () = seen.until_needed() => {}
            }
            follow(clients, kind, seen, queue, shutdown).await;
        });
    }
    let (clients, seen, queue) = (clients.clone(), Arc::clone(seen), queue.clone());
    let mut shutdown = manager.shutdown();
    manager.spawn(async move {
        tokio::select! {
            () = shutdown.wait() => return,
            () = seen.until_needed() => {}
        }
        follow_secrets(clients, seen, queue, shutdown).await;
    });
}

async fn follow(clients: Clients, kind: Watched, seen: Arc<Seen>, queue: Queue<Work>, shutdown: Shutdown) {
    let api: Api<Json> = Api::all_with(clients.every(), &resource(&kind.kind()));
    let cache = Arc::clone(seen.cache(kind));
    watch::follow(api, Config::default(), shutdown, |event: Event<Json>| {
        for key in cache.take(event, |object| kind.keep(object.value)) {
            if Watched::FIRST.contains(&kind) {
                seen.needed
                    .send_if_modified(|needed| !std::mem::replace(needed, true));
            }
            let object = cache.get(&key);
            for work in seen.concerned(kind, &key, object.as_deref()) {
                queue.add(work);
            }
        }
    })
    .await;
}

async fn follow_secrets(clients: Clients, seen: Arc<Seen>, queue: Queue<Work>, shutdown: Shutdown) {
    let api: Api<Json> = Api::all_with(clients.every(), &resource(&served(Observable::Secret)));
    let config = Config::default().fields(SECRETS);
    let reach = clients.reach().clone();
    watch::follow(api, config, shutdown, |event: Event<Json>| match event {
        Event::Init | Event::InitDone => {}
        Event::InitApply(secret) | Event::Apply(secret) | Event::Delete(secret) => {
            let key = ObjectKey::of(&reach, &secret.metadata);
            for work in seen.readers(&key, &secret.value) {
                queue.add(work);
            }
        }
    })
    .await;
}
