//! A lint that is switched off says why, so that the next reader can tell whether the reason still holds. Test code is
//! free.

use super::Problem;
use super::source::SourceFile;

pub(super) fn check(file: &SourceFile) -> Vec<Problem> {
    if file.is_test || file.is_generated {
        return Vec::new();
    }
    let code = &file.product_code;
    let mut problems = Vec::new();
    for (start, _) in code.match_indices('#') {
        let Some(attribute) = attribute_at(&code[start..]) else {
            continue;
        };
        for lint in ["allow", "expect"] {
            if switches_off(attribute, lint) && !attribute.contains("reason") {
                let message = format!("`{lint}` without a reason: add `reason = \"...\"`");
                problems.push(Problem::new(&file.path, file.line_of(start), message));
            }
        }
    }
    problems
}

/// The text between the brackets of an attribute that starts here.
fn attribute_at(code: &str) -> Option<&str> {
    let rest = code.strip_prefix('#')?;
    let inner = rest.strip_prefix('!').unwrap_or(rest).strip_prefix('[')?;
    let mut depth = 1;
    for (offset, c) in inner.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&inner[..offset]);
        }
    }
    None
}

/// Whether the attribute is `allow(...)` itself or carries it inside `cfg_attr(...)`.
fn switches_off(attribute: &str, lint: &str) -> bool {
    let call = format!("{lint}(");
    let attribute = attribute.trim_start();
    attribute.starts_with(&call)
        || (attribute.starts_with("cfg_attr(")
            && attribute.match_indices(&call).any(|(offset, _)| {
                attribute[..offset]
                    .chars()
                    .next_back()
                    .is_some_and(|c| !c.is_alphanumeric() && c != '_')
            }))
}
