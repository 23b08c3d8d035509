//! Users who come from other providers: who is linked with whom there, and the groups that follow theirs.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::{Directory, Identity, text};
use crate::external::entry::{Move, admits};

/// Who a User is at another provider.
pub(super) fn identity(user: &Value) -> Option<Identity> {
    let (issuer, subject) = (
        text(user, "/spec/identity/issuer"),
        text(user, "/spec/identity/subject"),
    );
    (!issuer.is_empty() && !subject.is_empty()).then_some((issuer, subject))
}

pub(super) fn forget(all: &mut HashMap<Identity, BTreeSet<Box<str>>>, identity: &Identity, name: &str) {
    if let Some(names) = all.get_mut(identity) {
        names.remove(name);
        if names.is_empty() {
            all.remove(identity);
        }
    }
}

impl Directory {
    /// The users of a realm who are this subject of an issuer, whatever they may do: one, unless somebody made a mistake.
    pub fn linked(&self, realm: &str, issuer: &str, subject: &str) -> Vec<String> {
        let room = self.cluster(realm).and_then(|cluster| self.rooms.get(cluster));
        let names = room.and_then(|room| room.identities.get(&(issuer.into(), subject.into())));
        names.into_iter().flatten().map(ToString::to_string).collect()
    }

    /// Whether a name is a user's, or a group waits for whoever will have it: its rights are not for the first who comes.
    pub fn is_spoken_for(&self, realm: &str, name: &str) -> bool {
        let room = self.cluster(realm).and_then(|cluster| self.rooms.get(cluster));
        room.is_some_and(|room| room.users.contains_key(name) || room.memberships.contains_key(name))
    }

    /// The groups that a user joins and leaves who has these groups at a provider.
    pub fn moves(&self, realm: &str, user: &str, provider: &str, groups: &BTreeSet<String>) -> Vec<Move> {
        let room = self.cluster(realm).and_then(|cluster| self.rooms.get(cluster));
        let all = room.into_iter().flat_map(|room| &room.groups);
        let moves = all.filter_map(|(name, group)| {
            let joins = admits(&group.external, provider, groups)?;
            (joins != group.members.contains(user)).then(|| Move {
                group: name.to_string(),
                joins,
            })
        });
        let mut moves: Vec<Move> = moves.collect();
        moves.sort_unstable_by(|one, other| one.group.cmp(&other.group));
        moves
    }
}
