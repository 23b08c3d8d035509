//! The order of versions: `v2` before `v1` before `v1beta2` before `v1alpha1`, all others last.

use std::cmp::Ordering;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    Stable,
}

/// Stability, major and minor number of a version that is spelled as Kubernetes spells them.
fn parse(version: &str) -> Option<(Stability, u64, u64)> {
    fn number(text: &str) -> Option<(u64, &str)> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        Some((text[..digits].parse().ok()?, &text[digits..]))
    }
    let (major, rest) = number(version.strip_prefix('v')?)?;
    if rest.is_empty() {
        return Some((Stability::Stable, major, 0));
    }
    let (stability, rest) = match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
        (Some(rest), _) => (Stability::Alpha, rest),
        (_, Some(rest)) => (Stability::Beta, rest),
        _ => return None,
    };
    let (minor, rest) = number(rest)?;
    rest.is_empty().then_some((stability, major, minor))
}

/// Which of two versions is preferred; the greater one is.
pub fn compare(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // Foreign versions are preferred in alphabetical order.
        (None, None) => b.cmp(a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferred_first() {
        let mut versions = [
            "foo1",
            "v1alpha1",
            "v11alpha2",
            "v2",
            "foo10",
            "v1beta2",
            "v10",
            "v3beta1",
            "v1",
            "v11beta2",
            "V1",
        ];
        versions.sort_by(|a, b| compare(b, a));
        assert_eq!(
            versions,
            [
                "v10",
                "v2",
                "v1",
                "v11beta2",
                "v3beta1",
                "v1beta2",
                "v11alpha2",
                "v1alpha1",
                "V1",
                "foo1",
                "foo10"
            ]
        );
    }

    #[test]
    fn malformed_versions_are_foreign() {
        for version in [
            "v",
            "v1beta",
            "v1gamma1",
            "1",
            "v1beta1x",
            "v99999999999999999999999",
        ] {
            assert_eq!(compare(version, "v1alpha1"), Ordering::Less, "{version}");
        }
    }
}
