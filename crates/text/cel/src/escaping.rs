//! Kubernetes' escaping of field names into CEL identifiers.

use crate::parser::RESERVED;

/// Words that the CEL grammar keeps to itself, beside the parser's reserved ones.
const LITERALS: [&str; 4] = ["true", "false", "null", "in"];

fn is_kept(word: &str) -> bool {
    LITERALS.contains(&word) || RESERVED.contains(&word)
}

/// The CEL identifier for a field name: `namespace` becomes `__namespace__`, `a-b` becomes `a__dash__b`.
/// `None` for names that CEL cannot reach.
pub fn escape(field: &str) -> Option<String> {
    if field.is_empty() || field.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_kept(field) {
        return Some(format!("__{field}__"));
    }
    let mut out = String::with_capacity(field.len());
    let mut rest = field;
    while let Some(character) = rest.chars().next() {
        let (escaped, length) = match character {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            c if c.is_ascii_alphanumeric() || c == '_' => (&rest[..1], 1),
            _ => return None,
        };
        out.push_str(escaped);
        rest = &rest[length..];
    }
    Some(out)
}

/// The field name of a CEL identifier, or `None` if it holds an escape that does not exist.
pub fn unescape(identifier: &str) -> Option<String> {
    let mut out = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(start) = rest.find("__") {
        let inner = &rest[start + 2..];
        // An escape is two underscores, at least one other character, two underscores.
        let length = inner.find('_').unwrap_or(inner.len());
        if length == 0 || !inner[length..].starts_with("__") {
            out.push_str(&rest[..start + 1]);
            rest = &rest[start + 1..];
            continue;
        }
        out.push_str(&rest[..start]);
        match &inner[..length] {
            "underscores" => out.push_str("__"),
            "dot" => out.push('.'),
            "dash" => out.push('-'),
            "slash" => out.push('/'),
            word if is_kept(word) && word.len() + 4 == identifier.len() => out.push_str(word),
            _ => return None,
        }
        rest = &inner[length + 2..];
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{escape, unescape};

    #[test]
    fn names_escape_and_come_back() {
        for (field, identifier) in [
            ("foo", "foo"),
            ("namespace", "__namespace__"),
            ("in", "__in__"),
            ("a.b", "a__dot__b"),
            ("a-b/c", "a__dash__b__slash__c"),
            ("__x", "__underscores__x"),
            ("a_b", "a_b"),
            ("_", "_"),
            ("___", "__underscores___"),
            ("namespaces", "namespaces"),
            (".", "__dot__"),
        ] {
            assert_eq!(escape(field).as_deref(), Some(identifier), "{field}");
            assert_eq!(unescape(identifier).as_deref(), Some(field), "{identifier}");
        }
    }

    #[test]
    fn unreachable_names_have_no_identifier() {
        for field in ["", "0a", "a b", "ü", "a:b", "$"] {
            assert_eq!(escape(field), None, "{field}");
        }
        for identifier in ["__nosuch__", "a__if__b"] {
            assert_eq!(unescape(identifier), None, "{identifier}");
        }
    }
}
