//! Which of the versions that there are is meant, as Argo CD and Helm decide it with Masterminds' semver: a constraint
//! without a pre-release in it never chooses a pre-release. Argo CD has semver 3.4, Helm 3.3, and they differ where one
//! of several constraints names a pre-release.

use std::cmp::Ordering;

use fairway_text_gotemplate::sprig::semver::{Constraints, Version};

use crate::Unusable;

/// Whether a revision is one version, so that nobody need be asked what it means.
pub fn is_version(revision: &str) -> bool {
    Version::parse(revision).is_ok()
}

/// Whether a revision stands for one of several versions.
pub fn is_constraint(revision: &str) -> bool {
    !is_version(revision) && Constraints::parse(revision).is_ok()
}

/// What a revision stands for among the versions that there are: itself if it is a version; the highest that meets it if
/// it is a constraint; else itself, if there is such a one. As in Argo CD, the version comes as it was written.
pub fn resolve<'v>(revision: &str, versions: impl Iterator<Item = &'v str>) -> Result<String, Unusable> {
    if is_version(revision) {
        return Ok(revision.to_owned());
    }
    let constraints = match Constraints::parse(revision) {
        Ok(constraints) => constraints,
        Err(why) => {
            return match versions.into_iter().any(|version| version == revision) {
                true => Ok(revision.to_owned()),
                false => Err(Unusable(format!("failed to determine semver constraint: {why}"))),
            };
        }
    };
    let mut count = 0;
    let mut best: Option<Version> = None;
    for text in versions {
        count += 1;
        let Ok(version) = Version::parse(text) else {
            continue;
        };
        let is_better = best
            .as_ref()
            .is_none_or(|best| version.compare(best) == Ordering::Greater);
        if is_better && constraints.check_as_lists(&version) {
            best = Some(version);
        }
    }
    match best {
        Some(best) => Ok(best.original),
        None => Err(Unusable(format!(
            "version matching constraint not found in {count} tags"
        ))),
    }
}

/// Which version Helm takes where it is given a version, a constraint or nothing: one that is written just so, or the
/// highest that meets it. The result is a place in the list.
pub fn pick(wanted: &str, versions: &[&str]) -> Option<usize> {
    if !wanted.is_empty()
        && let Some(exact) = versions.iter().position(|version| *version == wanted)
    {
        return Some(exact);
    }
    let constraints = Constraints::parse(if wanted.is_empty() { "*" } else { wanted }).ok()?;
    let mut best: Option<(usize, Version)> = None;
    for (place, text) in versions.iter().enumerate() {
        let Ok(version) = Version::parse(text) else {
            continue;
        };
        let is_better = best
            .as_ref()
            .is_none_or(|(_, best)| version.compare(best) == Ordering::Greater);
        if is_better && constraints.check(&version) {
            best = Some((place, version));
        }
    }
    best.map(|(place, _)| place)
}

/// Whether two texts are the same version: `1.0` is `v1.0.0`.
pub fn is_same(left: &str, right: &str) -> bool {
    match (Version::parse(left), Version::parse(right)) {
        (Ok(left), Ok(right)) => left.compare(&right) == Ordering::Equal,
        _ => left == right,
    }
}

/// Whether a version meets a constraint; the reason if the constraint is none.
pub fn meets(constraint: &str, version: &str) -> Result<bool, Unusable> {
    let constraints = Constraints::parse(constraint).map_err(Unusable)?;
    Ok(Version::parse(version).is_ok_and(|version| constraints.check(&version)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAGS: &[&str] = &[
        "0.5.4",
        "0.7.1",
        "0.7.2",
        "1.2.0",
        "1.10.3",
        "1.9.9",
        "v2.0.0",
        "2.1.0-rc.1",
        "3.0.0-alpha.1",
        "3.0.0-alpha.2",
        "1.2.0+build.7",
        "nightly",
        "2024.03-LTS-RC19",
    ];

    #[test]
    fn revisions_stand_for_what_argo_cd_takes_them_for() {
        let cases: &[(&str, Result<&str, &str>)] = &[
            ("0.5.4", Ok("0.5.4")),
            // A version is believed, whether it is there or not.
            ("99.99", Ok("99.99")),
            ("v1.2", Ok("v1.2")),
            ("2024.03-LTS-RC19", Ok("2024.03-LTS-RC19")),
            ("*", Ok("v2.0.0")),
            ("1.*", Ok("1.10.3")),
            ("1.x", Ok("1.10.3")),
            ("~1.2", Ok("1.2.0")),
            ("^0.7", Ok("0.7.2")),
            (">=1.2.0", Ok("v2.0.0")),
            ("> 0.5.3, < 0.7.2", Ok("0.7.1")),
            ("0.5.x || 0.7.1", Ok("0.7.1")),
            ("0.5 - 0.7.1", Ok("0.7.1")),
            ("<1 || >=2", Ok("v2.0.0")),
            (">=2.1.0-0", Ok("2024.03-LTS-RC19")),
            (">=2.1.0-0, <4", Ok("3.0.0-alpha.2")),
            (">=1.0 <2", Ok("1.10.3")),
            ("!=1.2.0", Ok("v2.0.0")),
            ("=v2", Ok("v2.0.0")),
            ("~>0.7", Ok("0.7.2")),
            ("*-0", Ok("2024.03-LTS-RC19")),
            (
                "1.2.3.4",
                Err("failed to determine semver constraint: improper constraint: 1.2.3.4"),
            ),
            (">=2.1.0-0, <4-0", Ok("3.0.0-alpha.2")),
            (">3.0.0-alpha.1", Ok("2024.03-LTS-RC19")),
            ("~3.0.0-alpha", Ok("3.0.0-alpha.2")),
            (">3", Err("version matching constraint not found in 13 tags")),
            ("nightly", Ok("nightly")),
            (
                "latest",
                Err("failed to determine semver constraint: improper constraint: latest"),
            ),
            (
                "",
                Err("failed to determine semver constraint: improper constraint: "),
            ),
        ];
        for (revision, expected) in cases {
            let found = resolve(revision, TAGS.iter().copied());
            match expected {
                Ok(version) => assert_eq!(found.as_deref(), Ok(*version), "{revision}"),
                Err(why) => assert_eq!(found.unwrap_err().0, *why, "{revision}"),
            }
        }
    }

    #[test]
    fn helm_takes_what_is_written_just_so_before_what_fits() {
        for (wanted, expected) in [
            ("", Some("v2.0.0")),
            ("1.2.0", Some("1.2.0")),
            ("1.2.0+build.7", Some("1.2.0+build.7")),
            ("1.2", Some("1.2.0")),
            ("0.7", Some("0.7.2")),
            ("2.1.0-rc.1", Some("2.1.0-rc.1")),
            ("4", None),
            ("not one", None),
        ] {
            let found = pick(wanted, TAGS).map(|place| TAGS[place]);
            assert_eq!(found, expected, "{wanted}");
        }
        assert!(is_same("1.0", "v1.0.0") && !is_same("1.0", "1.0.1") && is_same("x", "x"));
        assert_eq!(meets("~1.2", "1.2.9"), Ok(true));
        assert_eq!(meets("~1.2", "what"), Ok(false));
        assert!(meets("~~", "1.0.0").is_err());
    }
}
