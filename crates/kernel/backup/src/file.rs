//! Files beside the store that a backup holds: where they may be.

/// The longest path.
const MAX_PATH: usize = 1024;

/// Whether a path can be that of a file in a backup: below `repositories/`, and nowhere else than it says.
#[must_use]
pub fn is_file_path(path: &str) -> bool {
    let is_plain = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part.bytes().all(|byte| (b' '..0x7f).contains(&byte))
    };
    path.len() <= MAX_PATH && path.starts_with("repositories/") && path.split('/').all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::is_file_path;

    #[test]
    fn paths_stay_where_they_are_meant() {
        for (path, good) in [
            ("repositories/root/app.git/HEAD", true),
            ("repositories/system_fairway/a.git/fairway/pulls.json", true),
            ("repositories/", false),
            ("repositories", false),
            ("repositories/../keys/x", false),
            ("repositories//x", false),
            ("repositories/./x", false),
            ("/repositories/x", false),
            ("keys/encryption.keys", false),
            ("repositories/a\0b", false),
            ("repositories/a\nb", false),
            ("", false),
        ] {
            assert_eq!(is_file_path(path), good, "{path:?}");
        }
        assert!(!is_file_path(&format!("repositories/{}", "x".repeat(1024))));
    }
}
