//! Upper and lower case, and words in the many styles of names. The rules for where a word ends are those of the Go
//! libraries that sprig uses, which differ from each other.

use crate::arg;
use crate::functions::{Func, Param};
use crate::text::is_space;

use Param::Str;

pub(super) const TABLE: &[Func] = &[
    Func::new("upper", &[Str], |_, args| {
        Ok(arg::text(args, 0)
            .chars()
            .map(to_upper)
            .collect::<String>()
            .into())
    }),
    Func::new("lower", &[Str], |_, args| {
        Ok(arg::text(args, 0)
            .chars()
            .map(to_lower)
            .collect::<String>()
            .into())
    }),
    Func::new("title", &[Str], |_, args| Ok(title(&arg::text(args, 0)).into())),
    Func::new("untitle", &[Str], |_, args| {
        Ok(untitle(&arg::text(args, 0)).into())
    }),
    Func::new("swapcase", &[Str], |_, args| {
        Ok(swap_case(&arg::text(args, 0)).into())
    }),
    Func::new("nospace", &[Str], |_, args| {
        // Go looks at bytes here.
        let kept = arg::bytes(args, 0)
            .iter()
            .filter(|byte| !is_space(char::from(**byte)));
        Ok(kept.map(|byte| char::from(*byte)).collect::<String>().into())
    }),
    Func::new("initials", &[Str], |_, args| {
        Ok(initials(&arg::text(args, 0)).into())
    }),
    Func::new("snakecase", &[Str], |_, args| {
        Ok(lower_words(&arg::text(args, 0), '_').into())
    }),
    Func::new("kebabcase", &[Str], |_, args| {
        Ok(lower_words(&arg::text(args, 0), '-').into())
    }),
    Func::new("camelcase", &[Str], |_, args| {
        Ok(pascal_case(&arg::text(args, 0)).into())
    }),
];

/// Go maps one character to one.
pub(super) fn to_upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

pub(super) fn to_lower(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

fn title(text: &str) -> String {
    let mut previous = ' ';
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let after_word =
            previous.is_alphanumeric() || previous == '_' || (!previous.is_ascii() && !is_space(previous));
        out.push(if after_word { c } else { to_upper(c) });
        previous = c;
    }
    out
}

fn untitle(text: &str) -> String {
    let mut at_start = true;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let is_start = at_start && !is_space(c);
        out.push(if is_start { to_lower(c) } else { c });
        at_start = is_space(c) || (at_start && !is_start);
    }
    out
}

/// goutils' `SwapCase`: upper becomes lower, lower becomes upper or, at the start of a word, title case.
fn swap_case(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            c if c.is_uppercase() => to_lower(c),
            c if c.is_lowercase() => to_upper(c),
            c => c,
        })
        .collect()
}

fn initials(text: &str) -> String {
    let mut at_start = true;
    let mut out = String::new();
    for c in text.chars() {
        if is_space(c) {
            at_start = true;
        } else if at_start {
            out.push(c);
            at_start = false;
        }
    }
    out
}

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || is_space(c)
}

fn pascal_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    let mut current = None;
    let mut first_is_upper = false;
    for c in chars.by_ref() {
        if !is_connector(c) {
            first_is_upper = c.is_uppercase();
            current = Some(to_upper(c));
            break;
        }
        out.push(c);
    }
    let Some(mut current) = current else {
        // Only connectors: the last one is written twice.
        out.extend(text.chars().next_back());
        return out;
    };
    for next in chars {
        let previous = std::mem::replace(&mut current, next);
        if is_connector(current) && is_connector(previous) {
            out.push(previous);
            continue;
        }
        if is_connector(previous) {
            first_is_upper = current.is_uppercase();
            current = to_upper(current);
            continue;
        }
        if first_is_upper {
            match current.is_uppercase() {
                true => current = to_lower(current),
                false => first_is_upper = false,
            }
        }
        out.push(previous);
    }
    out.push(current);
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    None,
    Number,
    Upper,
    Letters,
    Connector,
    Punctuation,
    Other,
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        // Unlike Rust's, Go's notion leaves out symbols.
        return c.is_ascii_punctuation() && !matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~');
    }
    matches!(c, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3003}' | '¡' | '§' | '«' | '¶' | '·' | '»' | '¿')
}

/// The letters of alphabets with case; those without make words of their own.
fn is_letter(c: char) -> bool {
    c.is_alphabetic()
        && !matches!(c, '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}')
}

fn next_word(text: &str) -> (Word, &str, &str) {
    let Some(first) = text.chars().next() else {
        return (Word::None, "", "");
    };
    let run = |from: usize, belongs: &dyn Fn(char) -> bool| {
        let rest = &text[from..];
        from + rest.find(|c: char| !belongs(c)).unwrap_or(rest.len())
    };
    let lower = |c: char| is_letter(c) && !c.is_uppercase();
    let size = first.len_utf8();
    let (kind, end) = match first {
        c if is_connector(c) => (Word::Connector, run(size, &is_connector)),
        c if is_punctuation(c) => (Word::Punctuation, run(size, &is_punctuation)),
        c if c.is_uppercase() => {
            let uppers = run(0, &char::is_uppercase);
            let end = match text[uppers..].chars().next() {
                // `HTTPServer`: the last capital begins the next word.
                Some(next) if is_letter(next) => match text[..uppers].chars().count() {
                    1 => run(uppers, &lower),
                    _ => uppers - text[..uppers].chars().next_back().map_or(0, char::len_utf8),
                },
                _ => uppers,
            };
            (Word::Upper, end)
        }
        c if is_letter(c) => (Word::Letters, run(size, &lower)),
        c if c.is_numeric() => (Word::Number, run(size, &char::is_numeric)),
        _ => {
            let ends = |c: char| is_connector(c) || is_letter(c) || c.is_numeric() || is_punctuation(c);
            (Word::Other, run(size, &|c| !ends(c)))
        }
    };
    (kind, &text[..end], &text[end..])
}

fn push_lower(out: &mut String, kind: Word, word: &str, connector: char) {
    if kind != Word::Upper && kind != Word::Connector {
        out.push_str(word);
        return;
    }
    for c in word.chars() {
        out.push(match c {
            c if is_connector(c) => connector,
            c => to_lower(c),
        });
    }
}

/// xstrings' words in lower case with a connector between them.
fn lower_words(text: &str, connector: char) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let (mut kind, mut word, mut rest) = next_word(text);
    while !rest.is_empty() {
        if kind != Word::Connector {
            push_lower(&mut out, kind, word, connector);
        }
        let (previous, last) = (kind, word);
        (kind, word, rest) = next_word(rest);
        match previous {
            Word::Number => {
                while matches!(kind, Word::Letters | Word::Number) {
                    push_lower(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if !matches!(kind, Word::None | Word::Punctuation | Word::Connector) {
                    out.push(connector);
                }
            }
            Word::Connector => push_lower(&mut out, previous, last, connector),
            Word::Punctuation => {}
            _ if kind != Word::Number => {
                if !matches!(kind, Word::Connector | Word::Punctuation) {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = word;
                (kind, word, rest) = next_word(rest);
                if kind != Word::Letters {
                    push_lower(&mut out, Word::Number, number, connector);
                    if !matches!(kind, Word::Connector | Word::Punctuation) {
                        out.push(connector);
                    }
                    continue;
                }
                out.push(connector);
                push_lower(&mut out, Word::Number, number, connector);
                while matches!(kind, Word::Letters | Word::Number) {
                    push_lower(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if !matches!(kind, Word::None | Word::Connector | Word::Punctuation) {
                    out.push(connector);
                }
            }
        }
    }
    push_lower(&mut out, kind, word, connector);
    out
}
