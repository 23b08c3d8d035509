//! Keys and passwords that go into a running guest by its agent, and follow their Secrets.
//!
//! What goes where is decided by [`Wanted::of`], as upstream has it: the keys of a user are exactly those of the Secrets that name the
//! user; values of a Secret with passwords are by user.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{ObjectKey, Shutdown, watch};
use fairway_machines_plan::seed::{Objects, Reference};
use fairway_machines_plan::view::AccessCredential;
use fairway_machines_qemu::Agent;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PartialObjectMeta};
use kube::runtime::watcher::{Config, Event};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::input::Input;
use super::seeds;
use crate::context::Context;

/// How soon what failed is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// Changes that come together are made together.
const SETTLE: Duration = Duration::from_millis(200);
/// What the guest has changed is set right so often, as upstream does.
const AGAIN: Duration = Duration::from_secs(300);

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) is_done: bool,
    pub(crate) message: String,
}

/// What a guest is to have.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    /// Keys by user.
    keys: BTreeMap<String, Vec<String>>,
    /// Passwords by user.
    passwords: BTreeMap<String, String>,
}

impl Wanted {
    /// What credentials mean, given their Secrets; else which of them is missing.
    fn of(credentials: &[AccessCredential], objects: &Objects) -> Result<Self, String> {
        let mut wanted = Self::default();
        let content = |name: &str| {
            let found = objects.0.get(&Reference::Secret(name.to_owned()));
            found.ok_or_else(|| format!("Secret {name:?} does not exist; create it, or correct its name"))
        };
        for credential in credentials {
            if let Some(key) = &credential.ssh_public_key
                && let (Some(users), Some(name)) =
                    (&key.propagation_method.qemu_guest_agent, key.source.name())
            {
                let keys: Vec<String> = content(name)?
                    .values()
                    .flat_map(|value| lines(&String::from_utf8_lossy(value)))
                    .collect();
                for user in &users.users {
                    wanted
                        .keys
                        .entry(user.clone())
                        .or_default()
                        .extend(keys.iter().cloned());
                }
            }
            if let Some(password) = &credential.user_password
                && password.propagation_method.qemu_guest_agent.is_some()
                && let Some(name) = password.source.name()
            {
                for (user, value) in content(name)? {
                    let value = String::from_utf8_lossy(value).trim().to_owned();
                    if !value.is_empty() {
                        wanted.passwords.insert(user.clone(), value);
                    }
                }
            }
        }
        Ok(wanted)
    }
}

fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
    lines.map(str::to_owned).collect()
}

/// The Secrets whose content goes into a running guest.
pub(crate) fn secrets(credentials: &[AccessCredential]) -> Vec<String> {
    let mut names = Vec::new();
    for credential in credentials {
        let key = credential.ssh_public_key.as_ref();
        let key = key.filter(|it| it.propagation_method.qemu_guest_agent.is_some());
        names.extend(key.and_then(|it| it.source.name()));
        let password = credential.user_password.as_ref();
        let password = password.filter(|it| it.propagation_method.qemu_guest_agent.is_some());
        names.extend(password.and_then(|it| it.source.name()));
    }
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

/// Keeps the credentials of a guest as they should be, for as long as somebody listens.
pub(crate) async fn follow(
    context: Arc<Context>,
    key: ObjectKey,
    credentials: Vec<AccessCredential>,
    agent: Agent,
    listener: mpsc::Sender<Input>,
) {
    let changed = Arc::new(Notify::new());
    let mut watches = JoinSet::new();
    // A Secret each, by its name: a node has no business with others.
    let (_end, shutdown) = Shutdown::new();
    for name in secrets(&credentials) {
        let client = context.clients.of(&key.workspace);
        let api: Api<PartialObjectMeta<Secret>> = Api::namespaced(client, &key.namespace);
        let config = Config::default().fields(&format!("metadata.name={name}"));
        let (changed, shutdown) = (Arc::clone(&changed), shutdown.clone());
        watches.spawn(async move {
            watch::follow(api, config, shutdown, |event| {
                if matches!(event, Event::Apply(_) | Event::InitApply(_) | Event::Delete(_)) {
                    changed.notify_one();
                }
            })
            .await;
        });
    }
    loop {
        let outcome = set(&context, &key, &credentials, &agent).await;
        let pause = match outcome.is_done {
            true => AGAIN,
            false => RETRY,
        };
        if listener.send(Input::Credentials(outcome)).await.is_err() {
            return;
        }
        if tokio::time::timeout(pause, changed.notified()).await.is_ok() {
            tokio::time::sleep(SETTLE).await;
        }
    }
}

async fn set(context: &Context, key: &ObjectKey, credentials: &[AccessCredential], agent: &Agent) -> Outcome {
    match try_set(context, key, credentials, agent).await {
        Ok(()) => Outcome {
            is_done: true,
            message: String::new(),
        },
        Err(message) => Outcome {
            is_done: false,
            message,
        },
    }
}

async fn try_set(
    context: &Context,
    key: &ObjectKey,
    credentials: &[AccessCredential],
    agent: &Agent,
) -> Result<(), String> {
    if agent.ping().await.is_err() {
        return Err("Guest agent is offline".to_owned());
    }
    let names = secrets(credentials).into_iter().map(Reference::Secret);
    let objects = seeds::read(&context.api(key), key, names.collect()).await;
    let objects = objects.map_err(|error| error.to_string())?;
    let wanted = Wanted::of(credentials, &objects)?;
    for (user, keys) in &wanted.keys {
        let done = agent.set_ssh_keys(user, keys, true).await;
        done.map_err(|error| {
            format!("Error encountered writing ssh pub key access credentials for user [{user}]: {error}")
        })?;
    }
    for (user, password) in &wanted.passwords {
        let done = agent.set_password(user, password).await;
        done.map_err(|error| format!("Error encountered setting password for user [{user}]: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn credentials() -> Vec<AccessCredential> {
        serde_json::from_value(json!([
            {"sshPublicKey": {"source": {"secret": {"secretName": "keys"}}, "propagationMethod": {"qemuGuestAgent": {"users": ["ada", "bob"]}}}},
            {"sshPublicKey": {"source": {"secret": {"secretName": "more"}}, "propagationMethod": {"qemuGuestAgent": {"users": ["ada"]}}}},
            {"sshPublicKey": {"source": {"secret": {"secretName": "seed"}}, "propagationMethod": {"noCloud": {}}}},
            {"userPassword": {"source": {"secret": {"secretName": "words"}}, "propagationMethod": {"qemuGuestAgent": {}}}},
        ]))
        .unwrap()
    }

    #[test]
    fn keys_and_passwords_are_by_user() {
        let mut objects = Objects::default();
        for (name, data) in [
            ("keys", vec![("a", "one\n two \n"), ("b", "three")]),
            ("more", vec![("x", "four")]),
            ("words", vec![("ada", " secret \n"), ("nobody", " ")]),
        ] {
            let content = data
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()));
            objects
                .0
                .insert(Reference::Secret(name.to_owned()), content.collect());
        }
        let wanted = Wanted::of(&credentials(), &objects).unwrap();
        assert_eq!(wanted.keys["ada"], ["one", "two", "three", "four"]);
        assert_eq!(wanted.keys["bob"], ["one", "two", "three"]);
        assert_eq!(
            wanted.passwords,
            BTreeMap::from([("ada".to_owned(), "secret".to_owned())])
        );
        assert_eq!(secrets(&credentials()), ["keys", "more", "words"]);
        objects.0.remove(&Reference::Secret("more".to_owned()));
        let missing = Wanted::of(&credentials(), &objects).unwrap_err();
        assert!(missing.contains("Secret \"more\" does not exist"), "{missing}");
    }
}
