//! How far machines are kept apart from the host and from each other, and what is missing for more.

use std::io;
use std::path::Path;

use fairway_machines_plan::confinement::limits::Limits;
use fairway_machines_plan::confinement::missing::{Confined, NoGroups, NoUsers, missing};
use fairway_machines_plan::confinement::starved::Starved;
use fairway_machines_plan::confinement::users::Range;
use fairway_machines_qemu::{Confinement, User};

use super::cgroups::Groups;
use super::users::{Users, device_groups, device_refused};

/// What keeps the processes of a node's machines in.
#[derive(Debug)]
pub(crate) struct Isolation {
    users: Result<Users, NoUsers>,
    groups: Result<Groups, NoGroups>,
}

impl Isolation {
    /// What there is for the machines in a directory.
    pub(crate) fn new(directory: &Path, users: Option<Range>) -> Self {
        Self {
            users: Users::new(directory, users),
            groups: Groups::new(directory),
        }
    }

    /// What is missing, each with what to do about it.
    pub(crate) fn missing(&self) -> Vec<String> {
        missing(&Confined {
            users: self.users.as_ref().map(drop).map_err(Clone::clone),
            groups: self
                .groups
                .as_ref()
                .map(|it| it.controllers.clone())
                .map_err(Clone::clone),
        })
    }

    /// Why machines must be emulated, whatever the host can do, if they must.
    pub(crate) fn emulated(&self) -> Option<String> {
        self.users.as_ref().ok().and_then(|_| device_refused())
    }

    /// Whether machines run as users of their own.
    pub(crate) fn has_users(&self) -> bool {
        self.users.is_ok()
    }

    /// What keeps a machine in that is about to start; its directory is there.
    pub(crate) fn admit(&self, machine: &str, limits: &Limits) -> io::Result<Confinement> {
        let user = match &self.users {
            Ok(users) => Some(user(users.claim(machine)?)),
            Err(_) => None,
        };
        let group = match &self.groups {
            Ok(groups) => Some(groups.make(machine, limits)?),
            Err(_) => None,
        };
        Ok(Confinement { user, group })
    }

    /// What keeps a machine in that runs. One that an earlier version of Fairway started has no user.
    pub(crate) fn of(&self, machine: &str) -> Confinement {
        let id = self.users.as_ref().ok().and_then(|it| it.find(machine));
        let group = self.groups.as_ref().ok().map(|it| it.of(machine));
        Confinement {
            user: id.map(user),
            group: group.filter(|it| it.exists()),
        }
    }

    /// Gives a machine that runs other limits.
    pub(crate) fn limit(&self, machine: &str, limits: &Limits) -> io::Result<()> {
        match &self.groups {
            Ok(groups) if groups.of(machine).exists() => groups.limit(machine, limits),
            _ => Ok(()),
        }
    }

    /// Whether a machine was ended for want of memory, and whose. Known until [`Self::ended`].
    pub(crate) fn starved(&self, machine: &str) -> Option<Starved> {
        self.groups.as_ref().ok()?.starved(machine)
    }

    /// A machine has ended: nothing of it is left in its group, nor the group.
    pub(crate) fn ended(&self, machine: &str) {
        if let Ok(groups) = &self.groups {
            let (groups, machine) = (groups.clone(), machine.to_owned());
            tokio::task::spawn_blocking(move || groups.remove(&machine));
        }
    }

    /// A machine's directory is gone: its user is free.
    pub(crate) fn gone(&self, machine: &str) {
        self.ended(machine);
        if let Ok(users) = &self.users {
            users.release(machine);
        }
    }
}

fn user(id: u32) -> User {
    User {
        id,
        groups: device_groups(),
    }
}
