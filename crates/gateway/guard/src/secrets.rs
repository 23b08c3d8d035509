//! Which names stand for what nobody may read in an explanation: it is shown to people who may ask, not to the one who was asked
//! about.

/// What stands in the place of such a value.
pub const HIDDEN: &str = "(hidden)";

/// Parts of names that say so.
const TELLING: [&str; 12] = [
    "authorization",
    "cookie",
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "api-key",
    "credential",
    "private-key",
    "session",
    // It repeats what a Secret was applied with.
    "last-applied-configuration",
];

/// Whether what a header, a parameter or a field of this name says is a secret. Of an annotation's name only what is behind the
/// slash counts: `secret.kuadrant.io/plan-id` says a plan.
pub fn is_secret(name: &str) -> bool {
    let own = name.rsplit('/').next().unwrap_or(name);
    let plain: String = own
        .chars()
        .map(|c| if c == '_' { '-' } else { c.to_ascii_lowercase() })
        .collect();
    TELLING.iter().any(|word| plain.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell() {
        for (name, expected) in [
            ("Authorization", true),
            ("proxy-authorization", true),
            ("Set-Cookie", true),
            ("x-api-key", true),
            ("api_key", true),
            ("access_token", true),
            ("clientSecret", true),
            ("kubectl.kubernetes.io/last-applied-configuration", true),
            ("secret.kuadrant.io/plan-id", false),
            ("x-user", false),
            ("sub", false),
            ("plan", false),
        ] {
            assert_eq!(is_secret(name), expected, "{name}");
        }
    }
}
