//! Letting people in who come from other providers: the first time they become users, and each time the groups follow that name
//! groups of theirs.
//!
//! It is done with the rights of a user of its own: those who sign people in may not touch users and groups.

use fairway_api::identity::{GROUP_KIND, USER};
use fairway_controller::{Clients, Failure};
use fairway_portal_realm::Member;
use fairway_portal_realm::external::IdentityProvider;
use fairway_portal_realm::external::entry::{Entry, Move, Refusal, decide};
use fairway_portal_realm::external::visitor::Visitor;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tracing::info;

use crate::Realms;
use crate::objects::Objects;
use crate::provider::Call;

/// How often a group is changed again that somebody else has changed meanwhile.
const ATTEMPTS: usize = 5;

/// What lets people in.
pub(crate) struct Entries {
    objects: Objects,
    /// Held while somebody becomes a user: the same person in two windows is one.
    making: Mutex<()>,
}

/// Why somebody is not let in.
#[derive(Debug)]
pub(crate) enum NotIn {
    /// An administrator has to do something.
    Refused(Refusal),
    /// The user may not sign in.
    Disabled,
    /// Something of ours failed.
    Failed(Failure),
}

impl From<Failure> for NotIn {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Entries {
    pub(crate) fn new(clients: Clients) -> Self {
        Self {
            objects: Objects::new(clients),
            making: Mutex::default(),
        }
    }

    /// The user that a visitor is, in the groups that follow from his.
    pub(crate) async fn let_in(
        &self,
        realms: &Realms,
        call: &Call<'_>,
        provider: &IdentityProvider,
        visitor: &Visitor,
    ) -> Result<Member, NotIn> {
        let name = self.user(realms, call, provider, visitor).await?;
        // Whoever is locked out changes nothing.
        let member = |name: &str| realms.read(|all| all.member(call.realm, name));
        member(&name).ok_or(NotIn::Disabled)?;
        let moves = realms.read(|all| all.moves(call.realm, &name, &provider.name, &visitor.groups));
        for it in &moves {
            self.follow(call, &name, it).await?;
        }
        member(&name).ok_or(NotIn::Disabled)
    }

    async fn user(
        &self,
        realms: &Realms,
        call: &Call<'_>,
        provider: &IdentityProvider,
        visitor: &Visitor,
    ) -> Result<String, NotIn> {
        let found = || realms.read(|all| decide(all, call.realm, provider, visitor));
        if let Entry::Known(name) = found() {
            return Ok(name);
        }
        let _making = self.making.lock().await;
        let name = match found() {
            Entry::Known(name) => return Ok(name),
            Entry::Refused(why) => return Err(NotIn::Refused(why)),
            Entry::New(name) => name,
        };
        let spec = json!({
            "displayName": visitor.display_name, "email": visitor.email,
            "identity": {"issuer": provider.issuer, "subject": visitor.subject},
        });
        match self.objects.create(call.cluster, USER, &name, &spec).await? {
            true => {
                info!(
                    realm = call.realm,
                    user = name,
                    provider = provider.name,
                    "somebody became a user"
                );
                Ok(name)
            }
            // An administrator was quicker.
            false => Err(NotIn::Refused(Refusal::Taken(name))),
        }
    }

    async fn follow(&self, call: &Call<'_>, user: &str, it: &Move) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let Some(read) = self.objects.get(call.cluster, GROUP_KIND, &it.group).await? else {
                return Ok(());
            };
            let members = read.pointer("/spec/members").and_then(Value::as_array);
            let mut members: Vec<&str> = members.into_iter().flatten().filter_map(Value::as_str).collect();
            members.retain(|member| *member != user);
            if it.joins {
                members.push(user);
            }
            let change = json!({"members": members});
            if self
                .objects
                .change(call.cluster, GROUP_KIND, &read, &change)
                .await?
            {
                info!(
                    realm = call.realm,
                    user,
                    group = it.group,
                    joins = it.joins,
                    "a group follows a provider's"
                );
                return Ok(());
            }
        }
        let group = &it.group;
        Err(Failure::NotYet(format!(
            "the group {group} changes too often; try again"
        )))
    }
}
