//! What a build may cost. Repositories are not trusted: everything that a file can make large has a bound here.

use fairway_text_yaml::Limits as YamlLimits;

/// The bounds of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How each file is read.
    pub yaml: YamlLimits,
    /// How many resources may be held at a time.
    pub resources: usize,
    /// How many kustomizations may be entered, counted with repetition: each base of a diamond counts as often as it
    /// is used, because it costs as often.
    pub kustomizations: usize,
    /// How deep kustomizations may refer to each other.
    pub depth: usize,
    /// The size of the result in bytes, and of what transformers may add on the way.
    pub output_bytes: usize,
    /// The size of a compiled regular expression in bytes.
    pub regex_bytes: usize,
    /// How many bytes of files may be read, counted with repetition.
    pub read_bytes: usize,
}

impl Default for Limits {
    /// A hundred times what a large cluster's repository needs.
    fn default() -> Self {
        Self {
            yaml: YamlLimits {
                bytes: 32 * 1024 * 1024,
                depth: 256,
                aliased: 1_000_000,
            },
            resources: 200_000,
            kustomizations: 20_000,
            depth: 64,
            output_bytes: 256 * 1024 * 1024,
            regex_bytes: 1024 * 1024,
            read_bytes: 256 * 1024 * 1024,
        }
    }
}
