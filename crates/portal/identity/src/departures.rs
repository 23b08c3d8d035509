//! Users who leave: what is kept under a name goes with its user, whoever deletes him and by whatever program.
//!
//! One task for all realms, as a user of its own: those who sign people in may not touch users and groups.

use std::sync::Arc;
use std::time::Duration;

use fairway_api::identity::{CREDENTIAL, GROUP_KIND, USER};
use fairway_controller::requests::version;
use fairway_controller::{Clients, Failure, Shutdown};
use fairway_portal_realm::directory::duties::{Chore, Duty, FINALIZER};
use serde_json::{Value, json};
use tracing::warn;

use crate::Realms;
use crate::objects::Objects;
use crate::sign_in::credential_of;

/// When something that failed is tried again.
const AGAIN: Duration = Duration::from_secs(10);
/// Done at most in one go: the rest waits for the next.
const BATCH: usize = 256;

/// Runs until the end. The clients are those of [`crate::DEPARTURES_USER`].
pub async fn run(realms: Arc<Realms>, clients: Clients, mut shutdown: Shutdown) {
    let objects = Objects::new(clients);
    loop {
        tokio::select! {
            () = realms.chores_came() => {}
            () = tokio::time::sleep(AGAIN), if realms.read(fairway_portal_realm::Directory::has_chores) => {}
            () = shutdown.wait() => return,
        }
        loop {
            let chores = realms.read(|all| all.chores(BATCH));
            let mut is_stuck = chores.is_empty();
            for chore in &chores {
                match attend(&realms, &objects, chore).await {
                    Ok(true) => realms.write(|all| all.done(chore)),
                    // It has changed meanwhile, which is told once more.
                    Ok(false) => is_stuck = true,
                    Err(failure) => {
                        let Chore { cluster, user, .. } = chore;
                        warn!(%failure, cluster, user, "what a user leaves behind could not be seen to; it is tried again");
                        is_stuck = true;
                    }
                }
            }
            if is_stuck {
                break;
            }
        }
    }
}

/// Does what is to be done; false if somebody was quicker.
pub(crate) async fn attend(realms: &Realms, objects: &Objects, chore: &Chore) -> Result<bool, Failure> {
    match chore.duty {
        Duty::Hold => hold(objects, chore, true).await,
        Duty::Release => {
            clear(objects, chore).await?;
            hold(objects, chore, false).await
        }
        // Whoever has the name by now has what he was given with it.
        Duty::Forget if realms.read(|all| all.has_user(&chore.cluster, &chore.user)) => Ok(true),
        Duty::Forget => clear(objects, chore).await.map(|()| true),
    }
}

/// Sets our finalizer, or takes it away.
async fn hold(objects: &Objects, chore: &Chore, is_held: bool) -> Result<bool, Failure> {
    let Some(read) = objects.get(&chore.cluster, USER, &chore.user).await? else {
        return Ok(true);
    };
    let before = read.pointer("/metadata/finalizers").and_then(Value::as_array);
    let others = before.into_iter().flatten().filter(|it| **it != FINALIZER);
    let mut finalizers: Vec<Value> = others.cloned().collect();
    if is_held {
        finalizers.push(json!(FINALIZER));
    }
    let patch = json!({"metadata": {"resourceVersion": version(&read), "finalizers": finalizers}});
    objects.patch(&chore.cluster, USER, &chore.user, &patch).await
}

/// Removes what is kept under the name: what he signs in with, and his place in groups. His sessions bear his identity, and are swept.
async fn clear(objects: &Objects, chore: &Chore) -> Result<(), Failure> {
    let Chore { cluster, user, .. } = chore;
    objects.delete(cluster, CREDENTIAL, &credential_of(user)).await?;
    for group in &chore.groups {
        let Some(read) = objects.get(cluster, GROUP_KIND, group).await? else {
            continue;
        };
        let members = read.pointer("/spec/members").and_then(Value::as_array);
        let others: Vec<&Value> = members.into_iter().flatten().filter(|it| *it != user).collect();
        if !objects
            .change(cluster, GROUP_KIND, &read, &json!({"members": others}))
            .await?
        {
            return Err(Failure::NotYet(format!(
                "the group {group} was changed by somebody else"
            )));
        }
    }
    Ok(())
}
