//! Variables in a text, as the two programs called `envsubst` replace them.
//!
//! GNU's knows `$NAME` and `${NAME}` and makes nothing of a variable that is not set. The one by a8m, which Argo CD's
//! config-management plugins use, also knows the shell's forms with defaults, and `$$` for a dollar sign.

use std::collections::BTreeMap;

/// Whose rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dialect {
    /// GNU gettext's.
    Gnu,
    /// a8m's, with the shell's forms.
    #[default]
    Extended,
}

/// How deep a default may hold another variable.
const MAX_DEPTH: usize = 16;
/// The longest result.
const MAX_BYTES: usize = 256 << 20;

/// Replaces the variables of a text.
pub fn envsubst(text: &str, env: &BTreeMap<String, String>, dialect: Dialect) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    replace(text, env, dialect, 0, &mut out)?;
    Ok(out)
}

fn replace(
    text: &str,
    env: &BTreeMap<String, String>,
    dialect: Dialect,
    depth: usize,
    out: &mut String,
) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("defaults within defaults more than {MAX_DEPTH} deep"));
    }
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if out.len() > MAX_BYTES {
            return Err(format!("the result has more than the limit of {MAX_BYTES} bytes"));
        }
        if dialect == Dialect::Extended && rest.starts_with('$') {
            out.push('$');
            rest = &rest[1..];
            continue;
        }
        if let Some(inside) = rest.strip_prefix('{') {
            match braced(inside, dialect) {
                Some((name, form, after)) => {
                    expand(name, form, env, dialect, depth, out)?;
                    rest = after;
                }
                None => out.push('$'),
            }
            continue;
        }
        let length = name_length(rest);
        if length == 0 {
            out.push('$');
            continue;
        }
        out.push_str(env.get(&rest[..length]).map_or("", String::as_str));
        rest = &rest[length..];
    }
    out.push_str(rest);
    Ok(())
}

fn name_length(text: &str) -> usize {
    let starts = |c: char| c == '_' || c.is_ascii_alphabetic();
    if !text.starts_with(starts) {
        return 0;
    }
    text.find(|c: char| c != '_' && !c.is_ascii_alphanumeric())
        .unwrap_or(text.len())
}

/// Name, what follows it inside the braces, and what follows the braces.
fn braced(inside: &str, dialect: Dialect) -> Option<(&str, &str, &str)> {
    let length = name_length(inside);
    if length == 0 {
        return None;
    }
    let (name, rest) = inside.split_at(length);
    if let Some(after) = rest.strip_prefix('}') {
        return Some((name, "", after));
    }
    if dialect == Dialect::Gnu {
        return None;
    }
    let mut depth = 0usize;
    for (at, c) in rest.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some((name, &rest[..at], &rest[at + 1..])),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn expand(
    name: &str,
    form: &str,
    env: &BTreeMap<String, String>,
    dialect: Dialect,
    depth: usize,
    out: &mut String,
) -> Result<(), String> {
    let value = env.get(name).map(String::as_str);
    let (needs_text, form) = match form.strip_prefix(':') {
        Some(form) => (true, form),
        None => (false, form),
    };
    let is_set = value.is_some_and(|value| !needs_text || !value.is_empty());
    let Some(operator) = form.chars().next() else {
        if needs_text {
            return Err(format!("${{{name}:}} lacks what follows the colon"));
        }
        out.push_str(value.unwrap_or_default());
        return Ok(());
    };
    let word = &form[operator.len_utf8()..];
    match operator {
        '-' | '=' if is_set => out.push_str(value.unwrap_or_default()),
        '-' | '=' => replace(word, env, dialect, depth + 1, out)?,
        '+' if is_set => replace(word, env, dialect, depth + 1, out)?,
        '+' => {}
        '?' if is_set => out.push_str(value.unwrap_or_default()),
        '?' => {
            let why = if word.is_empty() { "not set" } else { word };
            return Err(format!("{name}: {why}"));
        }
        other => {
            return Err(format!(
                "${{{name}{other}…}}: no such form; see ${{NAME:-default}}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> BTreeMap<String, String> {
        [("A", "one"), ("EMPTY", ""), ("B_2", "two")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into()
    }

    #[test]
    fn forms_are_the_shells() {
        for (text, expected) in [
            ("$A ${A} x", "one one x"),
            ("$A-$B_2.", "one-two."),
            ("$MISSING|${MISSING}", "|"),
            ("${MISSING-d} ${MISSING:-d} ${EMPTY-d} ${EMPTY:-d}", "d d  d"),
            ("${A:-d} ${A:=d} ${A=d}", "one one one"),
            ("${MISSING:=d}", "d"),
            (
                "${A+yes} ${MISSING+yes}|${EMPTY+yes} ${EMPTY:+yes}|",
                "yes |yes |",
            ),
            ("${MISSING:-$A} ${MISSING:-${B_2}!}", "one two!"),
            ("$$A $$", "$A $"),
            ("100$ $1 ${} ${1}", "100$ $1 ${} ${1}"),
            ("${A", "${A"),
            ("${A?x}", "one"),
        ] {
            assert_eq!(
                envsubst(text, &env(), Dialect::Extended).unwrap(),
                expected,
                "{text}"
            );
        }
        assert!(
            envsubst("${MISSING:?say}", &env(), Dialect::Extended)
                .unwrap_err()
                .contains("say")
        );
        assert!(envsubst("${A%x}", &env(), Dialect::Extended).is_err());
    }

    #[test]
    fn gnu_knows_two_forms() {
        for (text, expected) in [
            ("$A ${A}", "one one"),
            ("$$A", "$one"),
            ("${MISSING:-d}", "${MISSING:-d}"),
            ("$MISSING|", "|"),
        ] {
            assert_eq!(envsubst(text, &env(), Dialect::Gnu).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let deep = "${X:-".repeat(100) + &"}".repeat(100);
        assert!(envsubst(&deep, &env(), Dialect::Extended).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in "[${}:A-C=+?x \\-]{0,60}") {
            let _ = envsubst(&text, &env(), Dialect::Extended);
            let _ = envsubst(&text, &env(), Dialect::Gnu);
        }
    }
}
