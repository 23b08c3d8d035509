//! Where the control groups of machines go.
//!
//! Version 2 only: one hierarchy, whose parts can be given to somebody. Somebody who has none of it to give needs root, and then the groups go to
//! the top, beside those of systemd, which leaves alone what it did not make. Below a group that systemd has given to the node's service
//! they go only if the node itself is in a subgroup of it (`DelegateSubgroup=`): a group that has processes cannot have limited groups below it, and
//! one that has those could not take the service when it starts again.

use super::missing::NoGroups;

/// Controllers that machines are limited by.
pub const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
/// The group that the groups of machines are in, at the top of the hierarchy.
const AT_TOP: &str = "fairway";
/// The same within a group that was given to the node.
const WITHIN: &str = "machines";

/// What is known of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Given {
    /// It is this user's to divide: systemd has marked it, or it belongs to the user.
    pub is_delegated: bool,
    /// Groups can be made in it.
    pub is_writable: bool,
}

/// What a node sees of control groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Where version 2 is mounted.
    pub mount: Option<String>,
    /// The node's own group, as `/proc/self/cgroup` has it.
    pub own: Option<String>,
    /// What is known of that group, of the one above it, and of the top.
    pub own_given: Given,
    /// The one above.
    pub above: Given,
    /// The top.
    pub top: Given,
}

/// Where version 2 is mounted, by `/proc/self/mountinfo`.
pub fn mount(mountinfo: &str) -> Option<String> {
    mountinfo.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let is_two = kind.split_ascii_whitespace().next() == Some("cgroup2");
        // A blank is written as an octal number.
        let at = place.split_ascii_whitespace().nth(4)?.replace("\\040", " ");
        is_two.then_some(at)
    })
}

/// The own group of version 2, by `/proc/self/cgroup`.
pub fn own(text: &str) -> Option<String> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    // A process outside of its namespace's part is nowhere that one could write to.
    (path.starts_with('/') && !path.contains("/..")).then(|| path.trim_end().to_owned())
}

/// The way from the top to the group above a group.
pub fn above(own: &str) -> Option<&str> {
    let (above, name) = own.rsplit_once('/')?;
    (!name.is_empty()).then_some(above)
}

/// The group in which the groups of machines are: its parent, which has to let controllers through, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The parent.
    pub parent: String,
    /// The name below it.
    pub name: &'static str,
}

/// Where the groups of machines go, or why there are none.
pub fn place(seen: &Seen) -> Result<Place, NoGroups> {
    let mount = seen.mount.as_deref().ok_or(NoGroups::NotMounted)?;
    let mount = mount.trim_end_matches('/');
    let own = seen.own.as_deref().ok_or(NoGroups::NotMounted)?;
    let may = |given: Given| given.is_delegated && given.is_writable;
    if let Some(above) = above(own).filter(|_| may(seen.above)) {
        return Ok(Place {
            parent: format!("{mount}{above}"),
            name: WITHIN,
        });
    }
    // The top belongs to nobody, so that it is never marked.
    if seen.top.is_writable {
        return Ok(Place {
            parent: mount.to_owned(),
            name: AT_TOP,
        });
    }
    match may(seen.own_given) {
        true => Err(NoGroups::NoSubgroup),
        false => Err(NoGroups::NotDelegated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_version_two_is() {
        let hybrid = "\
30 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu
32 30 0:28 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw";
        let unified = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(mount(hybrid).as_deref(), Some("/sys/fs/cgroup/unified"));
        assert_eq!(mount(unified).as_deref(), Some("/sys/fs/cgroup"));
        assert_eq!(mount("1 2 0:3 / / rw - ext4 /dev/vda rw"), None);
        assert_eq!(own("8:pids:/\n0::/a/b\n").as_deref(), Some("/a/b"));
        assert_eq!(own("8:pids:/\n"), None, "version 1 alone");
        assert_eq!(own("0::/../x\n"), None, "outside of the namespace");
        assert_eq!(above("/a/b"), Some("/a"));
        assert_eq!(above("/a"), Some(""));
        assert_eq!(above("/"), None);
    }

    #[test]
    fn groups_go_where_they_may() {
        let given = Given {
            is_delegated: true,
            is_writable: true,
        };
        let writable = Given {
            is_writable: true,
            ..Given::default()
        };
        let seen = |own: &str, own_given: Given, above: Given, top: Given| Seen {
            mount: Some("/sys/fs/cgroup".to_owned()),
            own: Some(own.to_owned()),
            own_given,
            above,
            top,
        };
        let none = Given::default();
        let unit = "/system.slice/fairway.service";
        let sub = "/system.slice/fairway.service/fairway";
        let at = |parent: &str, name| {
            Ok(Place {
                parent: parent.to_owned(),
                name,
            })
        };
        for (seen, expected, reason) in [
            (
                seen(sub, writable, given, writable),
                at("/sys/fs/cgroup/system.slice/fairway.service", "machines"),
                "the service has a group, and the node is in a subgroup of it",
            ),
            (
                seen(sub, given, given, none),
                at("/sys/fs/cgroup/system.slice/fairway.service", "machines"),
                "the same without root",
            ),
            (
                seen(unit, given, writable, writable),
                at("/sys/fs/cgroup", "fairway"),
                "root whose own group is in use: at the top",
            ),
            (
                seen("/user.slice/session-1.scope", writable, writable, writable),
                at("/sys/fs/cgroup", "fairway"),
                "root in a shell: its session's group is not its own",
            ),
            (
                seen("/", writable, none, writable),
                at("/sys/fs/cgroup", "fairway"),
                "root where there is no systemd",
            ),
            (
                seen(unit, given, none, none),
                Err(NoGroups::NoSubgroup),
                "a user whose service has a group, but is in it itself",
            ),
            (
                seen("/user.slice/session-1.scope", none, none, none),
                Err(NoGroups::NotDelegated),
                "a user in a shell",
            ),
            (Seen::default(), Err(NoGroups::NotMounted), "version 1 alone"),
        ] {
            assert_eq!(place(&seen), expected, "{reason}");
        }
    }
}
