//! Which user a machine runs as: a number that is nobody else's.
//!
//! Nobody makes accounts for machines: a number is enough for the kernel. It follows from the name of the machine's directory, so that the
//! same machine has the same number after a restart, and usually on another node, too; where two machines would have the same, the
//! second takes the next. Numbers that the host has given to somebody are passed over.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// How many numbers are tried for a machine.
const ATTEMPTS: u32 = 64;
/// The least number: what is below belongs to people and services.
const LEAST: u32 = 65_536;

/// Numbers that belong to machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl Default for Range {
    /// Above what systemd gives to containers (up to 1,879,048,191) and shadow to people's subordinates (up to 600,100,000), and below the numbers
    /// that programs take for negative ones.
    fn default() -> Self {
        Self {
            first: 1_900_000_000,
            count: 1_000_000,
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.first, self.count)
    }
}

/// Text that is no range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no range of users for machines; write FIRST:COUNT, such as 1900000000:1000000, with FIRST from {LEAST} and an end below 2147483648"
)]
pub struct NoRange(String);

impl FromStr for Range {
    type Err = NoRange;

    fn from_str(text: &str) -> Result<Self, NoRange> {
        let wrong = || NoRange(text.to_owned());
        let (first, count) = text.split_once(':').ok_or_else(wrong)?;
        let (first, count): (u32, u32) = (
            first.trim().parse().map_err(|_| wrong())?,
            count.trim().parse().map_err(|_| wrong())?,
        );
        let end = first.checked_add(count).ok_or_else(wrong)?;
        // Some programs keep such numbers with a sign.
        let is_right = first >= LEAST && count > 0 && end <= 1 << 31;
        is_right.then_some(Self { first, count }).ok_or_else(wrong)
    }
}

impl Range {
    /// Whether a user namespace has all of them, by its `/proc/self/uid_map` or `gid_map`. Where there is no such file there are no namespaces.
    pub fn is_mapped(self, map: &str) -> bool {
        let parts = map.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace().map(str::parse::<u64>);
            let (first, _, count) = (words.next()?.ok()?, words.next()?, words.next()?.ok()?);
            Some((first, count))
        });
        let (first, end) = (
            u64::from(self.first),
            u64::from(self.first) + u64::from(self.count),
        );
        let mut parts = parts.peekable();
        parts.peek().is_none() || parts.any(|(from, count)| from <= first && end <= from + count)
    }

    /// The numbers for the machine of this name, the best first. Each is in the range, and none comes twice.
    pub fn candidates(self, name: &str) -> impl Iterator<Item = u32> {
        let digest = Sha256::digest(name.as_bytes());
        let hash = digest
            .iter()
            .take(4)
            .fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        let (first, count) = (u64::from(self.first), u64::from(self.count.max(1)));
        (0..ATTEMPTS.min(self.count)).filter_map(move |attempt| {
            let place = (u64::from(hash) + u64::from(attempt)) % count;
            u32::try_from(first + place).ok()
        })
    }
}

/// Numbers that the host has given away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// First and count of each.
    ranges: Vec<(u32, u32)>,
}

impl Known {
    /// What these files say: `/etc/passwd` and `/etc/group` have a number in the third field, `/etc/subuid` and `/etc/subgid` a range in the last
    /// two. Lines that say nothing are passed over.
    pub fn read(accounts: &[&str], subordinates: &[&str]) -> Self {
        let number = |line: &str, field: usize| line.split(':').nth(field)?.trim().parse::<u32>().ok();
        let single = accounts.iter().flat_map(|text| text.lines());
        let single = single.filter_map(|line| Some((number(line, 2)?, 1)));
        let several = subordinates.iter().flat_map(|text| text.lines());
        let several = several.filter_map(|line| Some((number(line, 1)?, number(line, 2)?)));
        Self {
            ranges: single.chain(several).collect(),
        }
    }

    /// Whether a number is somebody's.
    pub fn has(&self, number: u32) -> bool {
        let is_in = |(first, count): &(u32, u32)| number >= *first && number - *first < *count;
        self.ranges.iter().any(is_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        for (text, expected, reason) in [
            ("2000000:1000", Some((2_000_000, 1000)), "first and count"),
            ("65536:1", Some((65_536, 1)), "the least"),
            ("2147483647:1", Some((2_147_483_647, 1)), "the last"),
            ("65535:10", None, "people's and services'"),
            ("0:4000000", None, "root's"),
            ("2000000:0", None, "none at all"),
            ("2147483647:2", None, "with a sign it would be negative"),
            ("4294967295:2", None, "beyond what there is"),
            ("2000000", None, "no count"),
            ("a:b", None, "no numbers"),
            ("-1:5", None, "below nothing"),
        ] {
            let found = text.parse::<Range>().ok().map(|it| (it.first, it.count));
            assert_eq!(found, expected, "{text}: {reason}");
        }
        let usual = Range::default();
        assert_eq!(
            usual.to_string().parse(),
            Ok(usual),
            "what is usual can be written"
        );
    }

    #[test]
    fn a_machine_has_its_number() {
        let range = Range {
            first: 100_000,
            count: 5,
        };
        let found: Vec<u32> = range.candidates("0123456789abcdef").collect();
        assert_eq!(found.len(), 5, "a small range has no more: {found:?}");
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [100_000, 100_001, 100_002, 100_003, 100_004], "each once");
        assert_eq!(
            range.candidates("0123456789abcdef").collect::<Vec<_>>(),
            found,
            "the same each time"
        );
        let large = Range::default();
        assert_eq!(large.candidates("a").count(), 64, "and then somebody is told");
        assert_ne!(large.candidates("a").next(), large.candidates("b").next());
    }

    #[test]
    fn namespaces_may_lack_them() {
        let range = Range {
            first: 100_000,
            count: 1000,
        };
        for (map, expected, reason) in [
            ("         0          0 4294967295\n", true, "the host itself"),
            ("0 1000 1\n", false, "a user that is root of its own"),
            ("0 1000 1\n1 100000 65536\n", false, "with the usual subordinates"),
            ("0 0 65536\n100000 500000 1000\n", true, "a second part has them"),
            ("0 0 100500\n", false, "half of them"),
            ("", true, "no namespaces"),
        ] {
            assert_eq!(range.is_mapped(map), expected, "{reason}");
        }
    }

    #[test]
    fn what_is_given_away_is_known() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\n# a comment\nbroken\nann:x:1900000007:100::/:/bin/sh\n";
        let group = "kvm:x:104:ann\n";
        let subuid = "ann:1900000100:65536\nbad:x:y\n";
        let known = Known::read(&[passwd, group], &[subuid]);
        for (number, expected, reason) in [
            (0, true, "root"),
            (104, true, "a group"),
            (1_900_000_007, true, "an account"),
            (1_900_000_008, false, "nobody's"),
            (1_900_000_099, false, "before the subordinates"),
            (1_900_000_100, true, "the first subordinate"),
            (1_900_065_635, true, "the last"),
            (1_900_065_636, false, "after them"),
        ] {
            assert_eq!(known.has(number), expected, "{number}: {reason}");
        }
    }
}
