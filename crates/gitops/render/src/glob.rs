//! Patterns of files as Argo CD's `directory.include` and `exclude` have them: `*` also crosses directories, `{a,b}` is either.

use crate::error::Error;

/// The longest pattern: longer ones are mistakes.
const MAX: usize = 1024;

/// A pattern, compiled.
#[derive(Debug)]
pub(crate) struct Glob(fairway_text_glob::Glob);

impl Glob {
    pub(crate) fn new(pattern: &str) -> Result<Self, Error> {
        let refuse = |why: String| Error::Pattern {
            pattern: pattern.chars().take(80).collect(),
            why,
        };
        if pattern.len() > MAX {
            return Err(refuse("it is longer than 1024 characters".to_owned()));
        }
        fairway_text_glob::Glob::new(pattern, &[])
            .map(Self)
            .map_err(|error| refuse(error.to_string()))
    }

    pub(crate) fn matches(&self, path: &str) -> bool {
        self.0.matches(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern, path, expected) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "dir/a.yaml", true),
            ("{a,b}.yaml", "b.yaml", true),
            ("{a,b}.yaml", "c.yaml", false),
            ("{*.yml,*.yaml}", "x/y.yml", true),
            ("config-[0-9].json", "config-3.json", true),
            ("config-[!0-9].json", "config-3.json", false),
            ("**/secret?.yaml", "a/secret1.yaml", true),
            ("a+b.yaml", "a+b.yaml", true),
            ("a.yaml", "axyaml", false),
            ("[^a].yaml", "^.yaml", true),
            ("[^a].yaml", "b.yaml", false),
        ] {
            assert_eq!(
                Glob::new(pattern).unwrap().matches(path),
                expected,
                "{pattern} {path}"
            );
        }
        for (wrong, why) in [
            ("{a", "a `{` is not closed"),
            ("[a", "a `[` is not closed"),
            ("a\\", "the pattern ends in a backslash"),
            (&"a".repeat(MAX + 1), "it is longer than 1024 characters"),
        ] {
            let error = Glob::new(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
