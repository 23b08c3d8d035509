//! The shape of source files: small rooms with a sign on the door. A file says at its top why it exists, stays short
//! enough to be read in one go, and has a name that says what is inside.

use super::Problem;
use super::source::SourceFile;

/// Above this a file must say why it is long.
const LONG: usize = 600;
/// Above this no reason is good enough.
const TOO_LONG: usize = 1000;
const LONG_MARK: &str = "// tidy: long: ";

/// Names that attract whatever has no better place.
const NAMELESS: &[&str] = &["common", "helper", "helpers", "misc", "util", "utils"];

pub(super) fn check(file: &SourceFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut report = |line, message: String| problems.push(Problem::new(&file.path, line, message));

    let stem = file
        .path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    if stem == "mod" {
        report(
            0,
            "name the file after the module (`foo.rs` beside `foo/`), not `mod.rs`".to_owned(),
        );
    }
    let names = file.path.iter().filter_map(|part| part.to_str()).chain([stem]);
    if let Some(name) = names.into_iter().find(|name| NAMELESS.contains(name)) {
        report(
            0,
            format!("`{name}` does not say what is inside; name the module after what it does"),
        );
    }
    if file.is_generated {
        return problems;
    }

    // A script's first line and a licence line would be the only reasons to come before it; neither is used here.
    if !file.text.starts_with("//!") {
        report(
            1,
            "open the file with a `//!` comment that says why it exists".to_owned(),
        );
    }
    let lines = file.text.lines().count();
    let has_reason = file
        .text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(LONG_MARK))
        .any(|reason| !reason.trim().is_empty());
    if lines > TOO_LONG {
        report(0, format!("{lines} lines: split the file (at most {TOO_LONG})"));
    } else if lines > LONG && !has_reason {
        report(
            0,
            format!("{lines} lines: split the file, or say why not in a line `{LONG_MARK}<reason>`"),
        );
    } else if lines <= LONG && has_reason {
        report(0, format!("{lines} lines need no `{LONG_MARK}` reason any more"));
    }
    problems
}
