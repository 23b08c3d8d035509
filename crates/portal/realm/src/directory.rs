//! Who is known where: the realms, their users, groups, sessions and keys, as their objects say at this moment.
//!
//! It is fed object by object, before a write is acknowledged, and asked with every request that brings a token. So whoever joins a
//! group has its rights with the next request, and whoever leaves it, is disabled or signed out has them no longer. Nothing here
//! depends on the number of realms: a question is a few look-ups.

pub mod duties;
mod linked;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fairway_api::identity::{EVERYONE, SEPARATOR};
use serde_json::Value;

use crate::guard;
use crate::keys::{self, KeyEntry};
use crate::session::{Kind, Session};
use crate::settings::Settings;
use crate::time;
use duties::Duty;

/// The realm of the root workspace, and the workspace's id.
pub const ROOT: &str = "root";
/// The user that a new installation has.
pub const ADMINISTRATOR: &str = "admin";
/// The name of the Realm object and of the Credential with the realm's keys.
pub const REALM_OBJECT: &str = "realm";

/// Somebody who is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The realm.
    pub realm: String,
    /// The name in it.
    pub name: String,
    /// The identity, which another user of the same name does not have.
    pub uid: String,
    /// For people.
    pub display_name: String,
    /// The mail address.
    pub email: String,
    /// Names of the groups in the realm, in order.
    pub groups: Vec<String>,
}

impl Member {
    /// The name as Kubernetes knows it.
    pub fn username(&self) -> String {
        format!("{}{SEPARATOR}{}", self.realm, self.name)
    }

    /// The groups as Kubernetes knows them: each with its realm, and the one that everybody is in.
    pub fn usergroups(&self) -> Vec<String> {
        let groups = self
            .groups
            .iter()
            .map(String::as_str)
            .filter(|name| *name != EVERYONE);
        groups
            .chain([EVERYONE])
            .map(|name| format!("{}{SEPARATOR}{name}", self.realm))
            .collect()
    }
}

/// Issuer and subject.
type Identity = (Box<str>, Box<str>);

#[derive(Debug, Default)]
struct Person {
    uid: Box<str>,
    display_name: Box<str>,
    email: Box<str>,
    /// Who it is at another provider: issuer and subject.
    identity: Option<Identity>,
    disabled: bool,
    /// Whether it is being deleted, and waits for what was the user's to be cleared away.
    leaving: bool,
    /// Whether it waits for that at all.
    held: bool,
    /// When somebody has signed in with it, as far as it was noted.
    last_sign_in: Option<i64>,
}

impl Person {
    fn may_sign_in(&self) -> bool {
        !self.disabled && !self.leaving
    }
}

/// What is kept of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glimpse {
    /// Whose; empty while a device waits.
    pub user: Box<str>,
    /// What it is.
    pub kind: Kind,
    /// The browser's session that it came from.
    pub browser: Box<str>,
    /// When it ends.
    pub expires: i64,
}

/// What is kept of a group.
#[derive(Debug, Default)]
struct Circle {
    members: BTreeSet<Box<str>>,
    /// Groups of other providers, each with the provider's name.
    external: BTreeSet<Box<str>>,
}

#[derive(Debug, Default)]
struct Room {
    users: HashMap<Box<str>, Person>,
    /// Users by who they are at other providers.
    identities: HashMap<Identity, BTreeSet<Box<str>>>,
    groups: HashMap<Box<str>, Circle>,
    memberships: HashMap<Box<str>, BTreeSet<Box<str>>>,
    sessions: HashMap<Box<str>, Glimpse>,
    keys: Vec<KeyEntry>,
    settings: Option<Settings>,
}

impl Room {
    fn is_empty(&self) -> bool {
        self.users.is_empty()
            && self.groups.is_empty()
            && self.sessions.is_empty()
            && self.keys.is_empty()
            && self.settings.is_none()
    }
}

/// The kinds that it is fed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fed {
    /// `users`.
    User,
    /// `groups`.
    Group,
    /// `sessions`.
    Session,
    /// `credentials`, of which only the realm's keys are kept.
    Credential,
    /// `realms`.
    Realm,
}

/// Everybody.
#[derive(Debug, Default)]
pub struct Directory {
    /// Ids of workspaces by the names of realms.
    realms: HashMap<Box<str>, Box<str>>,
    names: HashMap<Box<str>, Box<str>>,
    rooms: HashMap<Box<str>, Room>,
    /// What is to be done about users, by workspace and name.
    duties: BTreeMap<(Box<str>, Box<str>), Duty>,
}

fn text(object: &Value, pointer: &str) -> Box<str> {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .into()
}

impl Directory {
    /// Takes in a Workspace of a parent, or that it is gone. Only organisations right below the root are realms.
    pub fn take_workspace(&mut self, parent: &str, name: &str, object: Option<&Value>) {
        if parent != ROOT || name == ROOT {
            return;
        }
        if let Some(id) = self.realms.remove(name) {
            self.names.remove(&id);
        }
        let Some(object) = object else { return };
        let is_organization = object
            .pointer("/spec/type/name")
            .is_some_and(|it| it == "organization")
            && object
                .pointer("/spec/type/path")
                .is_none_or(|path| path == ROOT || path == "");
        let id = text(object, "/spec/cluster");
        if is_organization && !id.is_empty() {
            self.names.insert(id.clone(), name.into());
            self.realms.insert(name.into(), id);
        }
    }

    /// Takes in an object of a workspace, or that it is gone. True if somebody may have lost a right by it.
    pub fn take(&mut self, fed: Fed, cluster: &str, name: &str, object: Option<&Value>) -> bool {
        let room = match self.rooms.get_mut(cluster) {
            Some(room) => room,
            None if object.is_none() => return false,
            None => self.rooms.entry(cluster.into()).or_default(),
        };
        let lost = match fed {
            Fed::User => {
                let (lost, duty) = take_user(room, name, object);
                let key = (cluster.into(), name.into());
                match duty {
                    Some(duty) => self.duties.insert(key, duty),
                    None => self.duties.remove(&key),
                };
                lost
            }
            Fed::Group => take_group(room, name, object),
            Fed::Session => take_session(room, name, object),
            Fed::Credential if name == REALM_OBJECT => {
                let before = std::mem::take(&mut room.keys);
                room.keys = object.map(keys::read).unwrap_or_default();
                before
                    .iter()
                    .any(|key| !room.keys.iter().any(|it| it.public == key.public))
            }
            Fed::Realm if name == REALM_OBJECT => {
                room.settings = object.map(Settings::read);
                false
            }
            Fed::Credential | Fed::Realm => false,
        };
        if room.is_empty() {
            self.rooms.remove(cluster);
        }
        lost
    }

    /// The workspace of a realm.
    pub fn cluster(&self, realm: &str) -> Option<&str> {
        match realm {
            ROOT => Some(ROOT),
            _ => self.realms.get(realm).map(AsRef::as_ref),
        }
    }

    /// The realm of a workspace, if it is one's.
    pub fn realm(&self, cluster: &str) -> Option<&str> {
        match cluster {
            ROOT => Some(ROOT),
            _ => self.names.get(cluster).map(AsRef::as_ref),
        }
    }

    /// Somebody in a realm who may sign in; none if there is no such user, or he is disabled or leaving.
    pub fn member(&self, realm: &str, name: &str) -> Option<Member> {
        let room = self.rooms.get(self.cluster(realm)?)?;
        let person = room.users.get(name).filter(|it| it.may_sign_in())?;
        let groups = room.memberships.get(name);
        Some(Member {
            realm: realm.to_owned(),
            name: name.to_owned(),
            uid: person.uid.to_string(),
            display_name: person.display_name.to_string(),
            email: person.email.to_string(),
            groups: groups.into_iter().flatten().map(ToString::to_string).collect(),
        })
    }

    /// The identity of a user of a workspace's realm who may sign in.
    pub fn standing(&self, cluster: &str, name: &str) -> Option<Box<str>> {
        let person = self.rooms.get(cluster)?.users.get(name)?;
        person.may_sign_in().then(|| person.uid.clone())
    }

    /// Whether a user of this identity may sign in, whatever became of his sessions.
    pub fn counts(&self, realm: &str, name: &str, uid: &str) -> bool {
        let cluster = self.cluster(realm);
        let found = cluster.and_then(|cluster| self.standing(cluster, name));
        !uid.is_empty() && found.is_some_and(|found| *found == *uid)
    }

    /// Whether a name is that of a user who is disabled or gone. Where a realm has never had anybody, another issuer may stand in for it
    /// with names of the same form: of those nothing is known.
    pub fn is_out(&self, realm: &str, name: &str) -> bool {
        let Some(room) = self.cluster(realm).and_then(|cluster| self.rooms.get(cluster)) else {
            return false;
        };
        match room.users.get(name) {
            Some(person) => !person.may_sign_in(),
            // The keys are made at the first sign-in, and outlive the last user.
            None => !room.users.is_empty() || !room.keys.is_empty(),
        }
    }

    /// When a user has signed in, as far as it was noted.
    pub fn last_sign_in(&self, realm: &str, name: &str) -> Option<i64> {
        let room = self.rooms.get(self.cluster(realm)?)?;
        room.users.get(name)?.last_sign_in
    }

    /// Somebody by identity, in a session that goes on. Why not, otherwise.
    pub fn signed_in(
        &self,
        realm: &str,
        name: &str,
        uid: &str,
        session: &str,
        now: i64,
    ) -> Result<Member, &'static str> {
        let member = self.member(realm, name).filter(|it| it.uid == uid);
        let member = member.ok_or("the user is gone or disabled")?;
        let glimpse = self.session(realm, session).ok_or("the session has ended")?;
        match &*glimpse.user == name && now < glimpse.expires {
            true => Ok(member),
            false => Err("the session has ended"),
        }
    }

    /// Why an identity in a session no longer counts, for tokens that need not tell a name; none if it does.
    pub fn lapsed(&self, realm: &str, uid: &str, session: &str, now: i64) -> Option<&'static str> {
        let room = self.cluster(realm).and_then(|cluster| self.rooms.get(cluster));
        let glimpse = room
            .and_then(|room| room.sessions.get(session))
            .filter(|it| now < it.expires);
        let (Some(room), Some(glimpse)) = (room, glimpse) else {
            return Some("the session has ended");
        };
        let person = room.users.get(&glimpse.user);
        match person.is_some_and(|it| it.may_sign_in() && *it.uid == *uid) {
            true => None,
            false => Some("the user is gone or disabled"),
        }
    }

    /// A session.
    pub fn session(&self, realm: &str, name: &str) -> Option<&Glimpse> {
        self.rooms.get(self.cluster(realm)?)?.sessions.get(name)
    }

    /// Seconds that a user still has to wait because of wrong attempts that were written down.
    pub fn locked(&self, realm: &str, user: &str, now: i64) -> Option<i64> {
        let lock = self.session(realm, &guard::lock_name(realm, user))?;
        (&*lock.user == user && now < lock.expires).then(|| lock.expires - now)
    }

    /// The names of sessions that a browser's session has led to, and its own.
    pub fn sessions_of_browser(&self, realm: &str, browser: &str) -> Vec<String> {
        self.sessions(realm)
            .filter(|(name, it)| &***name == browser || &*it.browser == browser)
            .map(|(name, _)| name.to_string())
            .collect()
    }

    /// A user's sessions of a kind, those that end first before the others.
    pub fn sessions_of_user(&self, realm: &str, user: &str, kind: Kind) -> Vec<String> {
        // Whoever has to wait is not let in by signing in often enough elsewhere.
        let lock = guard::lock_name(realm, user);
        let mut found: Vec<_> = self
            .sessions(realm)
            .filter(|(name, it)| &*it.user == user && it.kind == kind && ***name != *lock)
            .map(|(name, it)| (it.expires, name.to_string()))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// How many devices wait in a realm.
    pub fn waiting(&self, realm: &str, now: i64) -> usize {
        self.sessions(realm)
            .filter(|(_, it)| it.kind == Kind::Device && now < it.expires)
            .count()
    }

    fn sessions(&self, realm: &str) -> impl Iterator<Item = (&Box<str>, &Glimpse)> {
        let room = self.cluster(realm).and_then(|cluster| self.rooms.get(cluster));
        room.into_iter().flat_map(|room| &room.sessions)
    }

    /// Sessions that can be removed: workspace and name of each, at most so many.
    pub fn over(&self, now: i64, most: usize) -> Vec<(String, String)> {
        let rooms = self.rooms.iter().flat_map(|(cluster, room)| {
            let is_over = move |it: &Glimpse| {
                now >= it.expires || (!it.user.is_empty() && !room.users.contains_key(&it.user))
            };
            room.sessions
                .iter()
                .filter(move |(_, it)| is_over(it))
                .map(move |(name, _)| (cluster.to_string(), name.to_string()))
        });
        rooms.take(most).collect()
    }

    /// The keys of a realm.
    pub fn keys(&self, realm: &str) -> &[KeyEntry] {
        let room = self.cluster(realm).and_then(|cluster| self.rooms.get(cluster));
        room.map(|room| room.keys.as_slice()).unwrap_or_default()
    }

    /// The settings of a realm.
    pub fn settings(&self, realm: &str) -> Settings {
        let room = self.cluster(realm).and_then(|cluster| self.rooms.get(cluster));
        room.and_then(|room| room.settings.clone()).unwrap_or_default()
    }
}

fn take_user(room: &mut Room, name: &str, object: Option<&Value>) -> (bool, Option<Duty>) {
    let before = room.users.remove(name);
    if let Some(identity) = before.as_ref().and_then(|it| it.identity.as_ref()) {
        linked::forget(&mut room.identities, identity, name);
    }
    let Some(object) = object else {
        // Whoever was held had everything cleared before; whoever was not, was gone too soon.
        let duty = before.as_ref().filter(|it| !it.held).map(|_| Duty::Forget);
        return (before.is_some(), duty);
    };
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    let person = Person {
        uid: text(object, "/metadata/uid"),
        display_name: text(object, "/spec/displayName"),
        email: text(object, "/spec/email"),
        identity: linked::identity(object),
        disabled: object.pointer("/spec/disabled").is_some_and(|it| it == true),
        leaving: object.pointer("/metadata/deletionTimestamp").is_some(),
        held: finalizers.is_some_and(|all| all.iter().any(|it| it == duties::FINALIZER)),
        last_sign_in: time::read(&text(object, "/status/lastSignIn")),
    };
    let duty = match (person.leaving, person.held) {
        (false, false) => Some(Duty::Hold),
        (true, true) => Some(Duty::Release),
        (false, true) | (true, false) => None,
    };
    let lost = !person.may_sign_in() && before.is_some_and(|it| it.may_sign_in());
    if let Some(identity) = person.identity.clone() {
        room.identities.entry(identity).or_default().insert(name.into());
    }
    room.users.insert(name.into(), person);
    (lost, duty)
}

fn take_group(room: &mut Room, name: &str, object: Option<&Value>) -> bool {
    let list = |pointer: &str| -> BTreeSet<Box<str>> {
        let items = object.and_then(|it| it.pointer(pointer)?.as_array());
        let items = items.map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(Value::as_str).map(Into::into).collect()
    };
    let members = list("/spec/members");
    let before = room.groups.remove(name).unwrap_or_default().members;
    for gone in before.difference(&members) {
        if let Some(groups) = room.memberships.get_mut(gone) {
            groups.remove(name);
            if groups.is_empty() {
                room.memberships.remove(gone);
            }
        }
    }
    for new in members.difference(&before) {
        room.memberships
            .entry(new.clone())
            .or_default()
            .insert(name.into());
    }
    let lost = !before.is_subset(&members);
    if object.is_some() {
        let external = list("/spec/externalGroups");
        room.groups.insert(name.into(), Circle { members, external });
    }
    lost
}

fn take_session(room: &mut Room, name: &str, object: Option<&Value>) -> bool {
    let Some(session) = object.and_then(Session::read) else {
        return room.sessions.remove(name).is_some();
    };
    let glimpse = Glimpse {
        user: session.user.as_str().into(),
        kind: session.kind,
        browser: session.browser.as_str().into(),
        expires: time::read(&session.expires_at).unwrap_or(0),
    };
    room.sessions.insert(name.into(), glimpse);
    false
}

#[cfg(test)]
mod tests;
