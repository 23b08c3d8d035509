//! What a test does that cannot run because a program is missing: it says so, and where everything has to be there it fails.
//!
//! On a developer's machine without QEMU the tests that need none are still worth running. Where `FAIRWAY_TEST_REQUIRE=1` is set, as in
//! continuous integration, a test that was not run must not look like one that passed.

use std::fmt::Display;

/// Set to anything but nothing or 0: tests fail where programs are missing.
const REQUIRE: &str = "FAIRWAY_TEST_REQUIRE";

/// Says that a test, or a part of it, is not run, and why. The caller returns.
///
/// # Panics
///
/// Where everything has to be there.
#[expect(clippy::print_stderr, reason = "for whoever reads what the tests say")]
pub fn skipped(why: impl Display) {
    assert!(
        !is_required(std::env::var(REQUIRE).ok().as_deref()),
        "{why}; with {REQUIRE} a test that cannot run fails"
    );
    eprintln!("SKIPPED: {why}");
}

fn is_required(value: Option<&str>) -> bool {
    !matches!(value, None | Some("" | "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_requires_it_says_so() {
        for (value, expected) in [
            (None, false),
            (Some(""), false),
            (Some("0"), false),
            (Some("1"), true),
        ] {
            assert_eq!(is_required(value), expected, "{value:?}");
        }
    }
}
