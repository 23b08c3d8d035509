//! What a host lacks for keeping machines in, each with what to do about it: the message of the Node's condition.

use super::users::Range;

/// Why machines have no control groups of their own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoGroups {
    /// There is no hierarchy of version 2.
    #[error("this host has no control groups of version 2: boot it with systemd.unified_cgroup_hierarchy=1")]
    NotMounted,
    /// The node has none to divide.
    #[error(
        "no control group was given to the node: run it as a service with Delegate=yes and DelegateSubgroup=fairway, or as root"
    )]
    NotDelegated,
    /// The node is itself in the group that it was given.
    #[error(
        "the node is itself in the control group that it was given, so that it cannot divide it: add DelegateSubgroup=fairway to its service (systemd 254 and later)"
    )]
    NoSubgroup,
    /// Something else.
    #[error("control groups of machines cannot be made: {0}")]
    Failed(String),
}

/// Why machines have no user of their own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoUsers {
    /// The node may not give them any.
    #[error(
        "all machines run as the node's user: run the node as root, and each machine gets an unprivileged user of its own"
    )]
    NotRoot,
    /// This root is one of a user namespace that does not have them.
    #[error(
        "machines run as root of the node's user namespace, which has no users {0}: map them, or choose a range that it has (--machine-users FIRST:COUNT)"
    )]
    NotMapped(Range),
    /// A program is missing.
    #[error(
        "machines run as root: setpriv is missing, which gives each a user of its own; install util-linux on this node"
    )]
    NoProgram,
    /// All users are given away.
    #[error(
        "machines run as root: every user of {0} that was tried is somebody else's; choose another range (--machine-users FIRST:COUNT)"
    )]
    None(Range),
    /// Whoever looks after the node wants it so.
    #[error("machines run as the node's user, because the node was told so (--machine-users none)")]
    SwitchedOff,
}

/// How a host keeps machines in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confined {
    /// Users of their own.
    pub users: Result<(), NoUsers>,
    /// Control groups, and the controllers that work in them.
    pub groups: Result<Vec<String>, NoGroups>,
}

/// What is missing, in the order in which it matters; nothing if all is there.
pub fn missing(confined: &Confined) -> Vec<String> {
    let mut found = Vec::new();
    if let Err(why) = &confined.users {
        found.push(why.to_string());
    }
    match &confined.groups {
        Err(why) => found.push(format!("machines have no limits beside their own size: {why}")),
        Ok(controllers) => {
            let is_there = |name: &&str| !controllers.iter().any(|it| it == name);
            let absent: Vec<&str> = super::groups::CONTROLLERS.into_iter().filter(is_there).collect();
            if !absent.is_empty() {
                found.push(format!(
                    "control groups of machines lack {}: version 1 of control groups has it, or nobody has let it through; boot the host with systemd.unified_cgroup_hierarchy=1",
                    absent.join(", ")
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_what_to_do() {
        let all = || Ok(["cpu", "io", "memory", "pids"].map(str::to_owned).to_vec());
        type Case = (
            Result<(), NoUsers>,
            Result<Vec<String>, NoGroups>,
            &'static [&'static str],
        );
        let cases: [Case; 6] = [
            (Ok(()), all(), &[]),
            (Err(NoUsers::NotRoot), all(), &["run the node as root"]),
            (
                Ok(()),
                Ok(vec!["pids".to_owned()]),
                &["lack cpu, memory: version 1"],
            ),
            (
                Err(NoUsers::None(Range::default())),
                Err(NoGroups::NotDelegated),
                &["--machine-users FIRST:COUNT", "DelegateSubgroup=fairway"],
            ),
            (
                Ok(()),
                Err(NoGroups::NoSubgroup),
                &["add DelegateSubgroup=fairway"],
            ),
            (
                Err(NoUsers::NoProgram),
                Err(NoGroups::NotMounted),
                &["install util-linux", "unified_cgroup_hierarchy=1"],
            ),
        ];
        for (users, groups, expected) in cases {
            let confined = Confined { users, groups };
            let found = missing(&confined);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (sentence, part) in found.iter().zip(expected) {
                assert!(sentence.contains(part), "{part}: {found:?}");
            }
        }
    }
}
