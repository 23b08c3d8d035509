//! What a user leaves behind. His password, his seed and his place in groups are kept under his name, and whoever gets the name next
//! must not get them with it, however the User was deleted. So each User is held by a finalizer until all of it is cleared away.

use super::Directory;

/// What holds a User.
pub const FINALIZER: &str = "fairway.dev/identity";

/// Something to be done about a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// He is new: see to it that he does not go unnoticed.
    Hold,
    /// He is being deleted: clear away what was his, and let go.
    Release,
    /// He is gone, and was never held: clear away what was his.
    Forget,
}

/// A duty, and about whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chore {
    /// The id of the workspace.
    pub cluster: String,
    /// The user.
    pub user: String,
    /// What.
    pub duty: Duty,
    /// The groups that name him.
    pub groups: Vec<String>,
}

impl Directory {
    /// Whether there is anything to do.
    pub fn has_chores(&self) -> bool {
        !self.duties.is_empty()
    }

    /// What is to be done, at most so much.
    pub fn chores(&self, most: usize) -> Vec<Chore> {
        let all = self.duties.iter().take(most).map(|((cluster, user), duty)| {
            let room = self.rooms.get(cluster);
            let groups = room.and_then(|room| room.memberships.get(user));
            Chore {
                cluster: cluster.to_string(),
                user: user.to_string(),
                duty: *duty,
                groups: groups.into_iter().flatten().map(ToString::to_string).collect(),
            }
        });
        all.collect()
    }

    /// Something was done. What has become necessary since stays.
    pub fn done(&mut self, chore: &Chore) {
        let key = (chore.cluster.as_str().into(), chore.user.as_str().into());
        if self.duties.get(&key) == Some(&chore.duty) {
            self.duties.remove(&key);
        }
    }

    /// Whether a user is there, whatever he may do.
    pub fn has_user(&self, cluster: &str, name: &str) -> bool {
        let room = self.rooms.get(cluster);
        room.is_some_and(|room| room.users.contains_key(name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Fed;
    use super::*;

    fn user(held: bool, leaving: bool) -> Value {
        let mut user = json!({"metadata": {"uid": "u-1"}, "spec": {}});
        if held {
            user["metadata"]["finalizers"] = json!(["other", FINALIZER]);
        }
        if leaving {
            user["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        user
    }

    fn directory(users: &[Option<Value>]) -> Directory {
        let mut all = Directory::default();
        let group = json!({"spec": {"members": ["alice", "bob"]}});
        all.take(Fed::Group, "root", "staff", Some(&group));
        for it in users {
            all.take(Fed::User, "root", "alice", it.as_ref());
        }
        all
    }

    #[test]
    fn nobody_goes_unnoticed() {
        let (new, held) = (Some(user(false, false)), Some(user(true, false)));
        let (leaving, freed) = (Some(user(true, true)), Some(user(false, true)));
        for (what, history, duty) in [
            ("new", vec![new.clone()], Some(Duty::Hold)),
            ("held", vec![new.clone(), held.clone()], None),
            (
                "deleted",
                vec![held.clone(), leaving.clone()],
                Some(Duty::Release),
            ),
            ("let go", vec![held.clone(), leaving.clone(), None], None),
            ("held by others only, and cleared", vec![leaving, freed], None),
            (
                "gone before he was held",
                vec![new.clone(), None],
                Some(Duty::Forget),
            ),
            ("gone, and another one came", vec![new, None, held], None),
            ("never there", vec![None], None),
        ] {
            let found = directory(&history).chores(9);
            assert_eq!(found.first().map(|it| it.duty), duty, "{what}");
            if let Some(chore) = found.first() {
                assert_eq!(chore.groups, ["staff"], "{what}");
            }
        }
    }

    #[test]
    fn who_leaves_is_out_at_once() {
        let mut all = directory(&[Some(user(true, false))]);
        assert!(all.member("root", "alice").is_some());
        assert!(all.take(Fed::User, "root", "alice", Some(&user(true, true))));
        assert!(all.member("root", "alice").is_none() && all.has_user("root", "alice"));
    }

    #[test]
    fn what_has_become_necessary_meanwhile_stays() {
        let mut all = directory(&[Some(user(false, false))]);
        let hold = all.chores(1).remove(0);
        all.take(Fed::User, "root", "alice", Some(&user(true, true)));
        all.done(&hold);
        let release = all.chores(1).remove(0);
        assert_eq!(release.duty, Duty::Release);
        all.done(&release);
        assert!(!all.has_chores());
    }
}
