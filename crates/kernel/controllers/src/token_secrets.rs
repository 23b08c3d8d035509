//! Secrets of type `kubernetes.io/service-account-token` hold a token of the account that they name, the server's
//! certificates and their namespace, and go with the account.
//!
//! The token is asked for as anybody would (`serviceaccounts/token`), bound to the Secret: deleting the Secret ends it. No
//! content of a Secret is kept here, only what is missing in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_controller::cache::Cache;
use fairway_controller::error::{is_conflict, is_not_found};
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Manager, Metadata, ObjectKey, Outcome, Queue, Reconcile,
    watch,
};
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{
    Api, ApiResource, DeleteParams, PartialObjectMeta, Patch, PatchParams, PostParams, Preconditions,
};
use kube::runtime::watcher::{self, Event};
use kube::{Client, Error};
use serde_json::json;

use crate::trust::Certificates;
use crate::{Setup, trust, users};

const NAME: &str = "token-secrets";
const SECRET_TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
const CA: &str = "ca.crt";
const NAMESPACE: &str = "namespace";
const TOKEN: &str = "token";
/// The longest life that can be asked for: such a token ends with its Secret, not with time.
const LIFETIME: i64 = 1 << 32;
const WORKERS: usize = 2;

/// What is kept of a Secret.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    uid: String,
    version: String,
    account: String,
    account_uid: String,
    ca: Vec<u8>,
    /// What it lacks beside the right certificates.
    needs: Needs,
    /// It cannot be filled any more, or need not be.
    closed: bool,
}

/// What a Secret lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Needs {
    ca: bool,
    namespace: bool,
    token: bool,
}

struct TokenSecrets {
    clients: Clients,
    certificates: Certificates,
    secrets: Arc<Cache<Seen>>,
}

/// A Secret that is worked on.
struct Place<'k> {
    client: Client,
    certificates: &'k Certificates,
    key: &'k ObjectKey,
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let clients = manager.clients(users::TOKEN_CONTROLLER);
    let queue = Queue::default();
    let secrets = Arc::new(Cache::<Seen>::new(manager.reach()));
    let certificates = setup.options.root_ca.clone();
    let (sink, known) = (queue.clone(), Arc::clone(&secrets));
    manager.spawn(trust::follow(
        certificates.clone(),
        manager.shutdown(),
        move || known.all().into_iter().for_each(|(key, _)| sink.add(key)),
    ));
    let sink = queue.clone();
    manager.spawn(watch::follow_into(
        Api::<Secret>::all(clients.every()),
        watcher::Config::default().fields(&format!("type={SECRET_TYPE}")),
        manager.shutdown(),
        Arc::clone(&secrets),
        see,
        move |key| sink.add(key),
    ));
    let (sink, known, reach) = (queue.clone(), Arc::clone(&secrets), manager.reach().clone());
    // Every namespace of every workspace has an account, and few have such a Secret: nothing is kept of accounts.
    manager.spawn(watch::follow(
        Api::<Metadata>::all_with(clients.every(), &ApiResource::erase::<ServiceAccount>(&())),
        watcher::Config::default(),
        manager.shutdown(),
        move |event| match event {
            Event::Apply(account) | Event::Delete(account) => {
                let account = ObjectKey::of(&reach, &account.metadata);
                for (key, secret) in known.of_namespace(&account.workspace, &account.namespace) {
                    if secret.account == account.name {
                        sink.add(key);
                    }
                }
            }
            // What went while nobody watched is not told.
            Event::InitDone => known.all().into_iter().for_each(|(key, _)| sink.add(key)),
            Event::Init | Event::InitApply(_) => {}
        },
    ));
    let reconciler = TokenSecrets {
        clients,
        certificates,
        secrets,
    };
    let controller = Controller::new(NAME, queue, reconciler).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

fn see(secret: &Secret) -> Seen {
    let annotation = |key: &str| {
        let all = secret.metadata.annotations.as_ref();
        all.and_then(|a| a.get(key)).cloned().unwrap_or_default()
    };
    let data = |key: &str| {
        let all = secret.data.as_ref();
        all.and_then(|d| d.get(key))
            .map_or(&[][..], |ByteString(bytes)| bytes.as_slice())
    };
    Seen {
        uid: secret.metadata.uid.clone().unwrap_or_default(),
        version: secret.metadata.resource_version.clone().unwrap_or_default(),
        account: annotation(ACCOUNT_NAME),
        account_uid: annotation(ACCOUNT_UID),
        ca: data(CA).to_vec(),
        needs: Needs {
            ca: false,
            namespace: data(NAMESPACE).is_empty(),
            token: data(TOKEN).is_empty(),
        },
        closed: secret.immutable == Some(true) || secret.metadata.deletion_timestamp.is_some(),
    }
}

/// What to do with a Secret.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    /// Its account is gone, or another one has its name.
    Delete,
    Fill(Needs),
}

fn decide(secret: &Seen, account_uid: Option<&str>, certificates: &str) -> Step {
    let needs = Needs {
        ca: !certificates.is_empty() && secret.ca != certificates.as_bytes(),
        ..secret.needs
    };
    match account_uid {
        None => Step::Delete,
        Some(uid) if !secret.account_uid.is_empty() && secret.account_uid != uid => Step::Delete,
        Some(_) if secret.closed || needs == Needs::default() => Step::Nothing,
        Some(_) => Step::Fill(needs),
    }
}

impl Reconcile<ObjectKey> for TokenSecrets {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let Some(secret) = self.secrets.get(key).filter(|secret| !secret.account.is_empty()) else {
            return Ok(Outcome::Done);
        };
        let place = Place {
            client: self.clients.of(&key.workspace),
            certificates: &self.certificates,
            key,
        };
        let uid = place.account_uid(&secret).await?;
        let step = decide(&secret, uid.as_deref(), &self.certificates.borrow());
        let answer = match step {
            Step::Nothing => return Ok(Outcome::Done),
            Step::Delete => place.delete(&secret).await,
            Step::Fill(needs) => place.fill(&secret, needs, uid.unwrap_or_default()).await,
        };
        match answer {
            // It has gone or changed meanwhile: the watches will tell.
            Err(error) if is_not_found(&error) || is_conflict(&error) => Ok(Outcome::Done),
            answer => answer
                .attempting("fill or delete the token Secret")
                .map(|()| Outcome::Done),
        }
    }
}

impl Place<'_> {
    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.key.namespace)
    }

    /// The UID of the account that a Secret names.
    async fn account_uid(&self, secret: &Seen) -> Result<Option<String>, Failure> {
        let found = self.api::<PartialObjectMeta<ServiceAccount>>();
        let found = found.get_opt(&secret.account).await;
        let found = found.attempting("read the account of a token Secret")?;
        Ok(found.and_then(|account| account.metadata.uid))
    }

    async fn delete(&self, secret: &Seen) -> Result<(), Error> {
        let this_one = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(secret.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let api = self.api::<Secret>();
        api.delete(&self.key.name, &this_one).await.map(|_| ())
    }

    async fn fill(&self, secret: &Seen, needs: Needs, uid: String) -> Result<(), Error> {
        let mut data = BTreeMap::new();
        let mut put = |name: &str, text: String| data.insert(name.to_owned(), ByteString(text.into_bytes()));
        if needs.ca {
            put(CA, self.certificates.borrow().to_string());
        }
        if needs.namespace {
            put(NAMESPACE, self.key.namespace.clone());
        }
        if needs.token {
            put(TOKEN, self.token(secret).await?);
        }
        let patch = json!({
            "metadata": {
                "resourceVersion": secret.version,
                "annotations": {ACCOUNT_NAME: secret.account, ACCOUNT_UID: uid},
            },
            "data": data,
        });
        let api = self.api::<Secret>();
        let params = PatchParams::default();
        api.patch(&self.key.name, &params, &Patch::Merge(patch))
            .await
            .map(|_| ())
    }

    async fn token(&self, secret: &Seen) -> Result<String, Error> {
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Secret".to_owned()),
                    name: Some(self.key.name.clone()),
                    uid: Some(secret.uid.clone()),
                }),
                expiration_seconds: Some(LIFETIME),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let answer: TokenRequest = self
            .api::<ServiceAccount>()
            .create_subresource("token", &secret.account, &PostParams::default(), &request)
            .await?;
        Ok(answer.status.and_then(|status| status.token).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::{Value, json};

    use super::{Needs, Step, decide, see};

    fn secret(data: &Value, account_uid: &str) -> Secret {
        let mut secret = json!({
            "metadata": {"uid": "s", "annotations": {"kubernetes.io/service-account.name": "a"}},
            "type": "kubernetes.io/service-account-token", "data": data,
        });
        if !account_uid.is_empty() {
            secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] = account_uid.into();
        }
        serde_json::from_value(secret).unwrap()
    }

    #[test]
    fn steps() {
        let (ca, namespace, token) = (true, true, true);
        let full = json!({"ca.crt": "UEVN", "namespace": "bg==", "token": "dA=="});
        let old_ca = json!({"ca.crt": "T0xE", "namespace": "bg==", "token": "dA=="});
        let needs_ca = Step::Fill(Needs {
            ca,
            ..Needs::default()
        });
        for (name, secret, account, want) in [
            (
                "new",
                secret(&json!({}), ""),
                Some("u"),
                Step::Fill(Needs { ca, namespace, token }),
            ),
            ("filled", secret(&full, "u"), Some("u"), Step::Nothing),
            ("other certificates", secret(&old_ca, "u"), Some("u"), needs_ca),
            ("no account", secret(&full, "u"), None, Step::Delete),
            ("no account ever", secret(&json!({}), ""), None, Step::Delete),
            (
                "another account of this name",
                secret(&full, "u"),
                Some("v"),
                Step::Delete,
            ),
            (
                "immutable",
                Secret {
                    immutable: Some(true),
                    ..secret(&json!({}), "")
                },
                Some("u"),
                Step::Nothing,
            ),
        ] {
            assert_eq!(decide(&see(&secret), account, "PEM"), want, "{name}");
        }
    }
}
