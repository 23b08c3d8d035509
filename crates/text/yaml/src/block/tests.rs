//! Whatever this reader reads, the full reader reads alike; and what is common, it reads.

use proptest::prelude::*;
use serde_json::json;

use super::{read, read_keys};
use crate::{Limits, Resolution, from_str_with};

const DEPTH: usize = 8;

/// What both say of a text. The full reader may accept what this one leaves to it, never the other way round.
fn agree(text: &str) -> Result<bool, String> {
    let limits = Limits {
        depth: DEPTH,
        ..Limits::default()
    };
    for resolution in [Resolution::Yaml11, Resolution::Yaml12] {
        skims(text, limits, resolution)?;
        let Some(ours) = read(text, resolution, DEPTH) else {
            return Ok(false);
        };
        let full = from_str_with(text, limits, resolution);
        match full {
            Ok(full) if full.value == ours && full.duplicates.is_empty() => {}
            other => return Err(format!("{text:?}\n  read as {ours}\n  in full {other:?}")),
        }
    }
    Ok(true)
}

/// Whatever is skimmed can be read in full, and has the same keys.
fn skims(text: &str, limits: Limits, resolution: Resolution) -> Result<(), String> {
    const KEYS: [&str; 2] = ["a", "kind"];
    let Some(some) = read_keys(text, resolution, DEPTH, &KEYS) else {
        return Ok(());
    };
    let full = from_str_with(text, limits, resolution);
    let same = full
        .as_ref()
        .is_ok_and(|full| KEYS.iter().all(|key| full.value.get(key) == some.get(key)));
    match same {
        true => Ok(()),
        false => Err(format!("{text:?}\n  skimmed as {some}\n  in full {full:?}")),
    }
}

#[test]
fn skims_what_is_common() {
    for (text, value) in [
        (
            "kind: X\nspec:\n  a: [1, {b: \"c\"}]\n  t: |\n    text\n  x: 1\n  x: 2\na: 'y'\n",
            Some(json!({"kind": "X", "a": "y"})),
        ),
        // What is wrong anywhere is for the full reader.
        ("kind: X\nspec:\n  a: .nan\n", None),
        ("kind: X\nspec:\n  a: &b c\n", None),
        ("kind: X\nkind: Y\n", None),
        ("- kind: X\n", None),
    ] {
        assert_eq!(
            read_keys(text, Resolution::Yaml11, DEPTH, &["a", "kind"]),
            value,
            "{text}"
        );
    }
}

#[test]
fn reads_what_is_common() {
    for (text, value) in [
        ("a: 1\nb: x\n", json!({"a": 1, "b": "x"})),
        ("---\n# head\na: [] # none\nb: {}\n", json!({"a": [], "b": {}})),
        (
            "a:\n- x\n- p: 1\n  q: 2\nb:\n",
            json!({"a": ["x", {"p": 1, "q": 2}], "b": null}),
        ),
        ("- - 1\n  - 2\n-\n  a: b\n-\n", json!([[1, 2], {"a": "b"}, null])),
        (
            "a: one\n  two\n\n  three\nb: |\n  l1\n   l2\n\n  l3\nc: >-\n  f1\n  f2\n\n  f3\n",
            json!({"a": "one two\nthree", "b": "l1\n l2\n\nl3\n", "c": "f1 f2\nf3"}),
        ),
        (
            "a: \"x\\n\\\"y\\\"\" # c\n'b c': 'it''s'\n",
            json!({"a": "x\n\"y\"", "b c": "it's"}),
        ),
        ("a: |\n  text\n  without end", json!({"a": "text\nwithout end"})),
        (
            "args: [\"-v\", 3, true, a-b.c/d, {k: v}]\n",
            json!({"args": ["-v", 3, true, "a-b.c/d", {"k": "v"}]}),
        ),
        (
            "q: \"over\n  two \\\n  lines\n\n  \\u00e9\"\ns: 'it''s\n\n\n  late'\n",
            json!({"q": "over two lines\né", "s": "it's\n\nlate"}),
        ),
        ("k:\n  plain\n  over lines\n", json!({"k": "plain over lines"})),
        (
            "u: http://x:80/#y\nt: -1\nd: --flag=1\n",
            json!({"u": "http://x:80/#y", "t": -1, "d": "--flag=1"}),
        ),
    ] {
        assert_eq!(read(text, Resolution::Yaml11, DEPTH), Some(value), "{text:?}");
        assert_eq!(agree(text), Ok(true));
    }
}

#[test]
fn leaves_the_rest_to_the_full_reader() {
    for text in [
        "",
        "x\n",
        "a: &x 1\nb: *x\n",
        "a: !!str 1\n",
        "a: 1\na: 2\n",
        "<<: {a: 1}\n",
        "1: x\n",
        "? a\n: b\n",
        "a: 1\n---\nb: 2\n",
        "a:\tb\n",
        "a: \"\\U00000041\"\n",
        "a: |+\n  x\n\n",
        "a: |2\n    x\n",
        "a: [1,\n 2]\n",
        "a: b: c\n",
        "a: .inf\n",
        "a: 1\r\n",
        "a:\n - 1\n  - 2\n",
        "a: - 1\n",
        "%YAML 1.1\n---\na: 1\n",
        "{a: 1}\n",
        "a: @x\n",
        "a: \u{feff}x\n",
        "a: \u{85}x\n",
        "a: {b: {c: {d: {e: {f: {g: {h: {}}}}}}}}\n",
    ] {
        assert_eq!(read(text, Resolution::Yaml11, DEPTH), None, "{text:?}");
    }
}

/// Pieces of lines, of which most are usual and some are traps.
const PIECES: &[&str] = &[
    "a",
    "b",
    "key",
    "a: ",
    "b: ",
    "key:",
    "c : ",
    "- ",
    "-",
    "- - ",
    "\"q\": ",
    "'s': ",
    "\"q\"",
    "'s''s'",
    "\"e\\n\"",
    "\"\\u00e9\\x41\"",
    "\"x \\",
    "y\"",
    "\"a \\ ",
    "\"open",
    "'",
    "|",
    "|-",
    "> ",
    ">-",
    "|+",
    ">2",
    "# c",
    " # c",
    "#x",
    "[]",
    "{}",
    "[a, b]",
    "[1, \"x\"]",
    "{k: v}",
    "{k: [v]}",
    "[a,",
    "{a}",
    "{\"a\":1}",
    "1",
    "-1",
    "1.5",
    "true",
    "no",
    "null",
    "~",
    "0x1f",
    "2001-01-01",
    "x y",
    "http://h:1/p",
    "a:b",
    ": x",
    ":x",
    "?",
    "? ",
    "*a",
    "&a ",
    "!t ",
    "---",
    "...",
    "%d",
    "@",
    "`",
    "<<: ",
    "=",
    "\t",
    " ",
    "  ",
    "é",
    "-x",
    "--x",
    ",",
    "x,y",
    "x: y: z",
    "key:\n",
    "key: |\n",
    "- |\n",
    "- >-\n",
    "- a\n",
    "\\",
];

fn soup() -> impl Strategy<Value = String> {
    let line = (
        0usize..7,
        prop::collection::vec(prop::sample::select(PIECES), 0..4),
    );
    (prop::collection::vec(line, 1..9), any::<bool>()).prop_map(|(lines, ends)| {
        let lines: Vec<String> = lines
            .into_iter()
            .map(|(indent, pieces)| format!("{}{}", " ".repeat(indent), pieces.concat()))
            .collect();
        let mut text = lines.join("\n");
        if ends {
            text.push('\n');
        }
        text
    })
}

/// Structure that is right, with scalars of all kinds in it, and now and then a line that is moved.
fn structured() -> impl Strategy<Value = String> {
    let scalar = prop::sample::select(PIECES).prop_map(str::to_owned);
    let block = (
        prop::sample::select(&["|", "|-", ">", ">-"][..]),
        prop::collection::vec(
            prop::sample::select(&["", "x", " y", "z: 1", "# n", "- i", "   ", "\tt"][..]),
            0..5,
        ),
    );
    let leaf = prop_oneof![
        3 => scalar.prop_map(|text| vec![text]),
        2 => block.prop_map(|(head, lines)| {
            let body = lines.iter().map(|line| format!("  {line}"));
            std::iter::once(head.to_owned()).chain(body).collect()
        }),
        1 => (prop::sample::select(&["w", "w x", "12", "\"w", "'w ", "\"w \\"][..]), prop::collection::vec(prop::sample::select(&["", "v", "- v", "v # c", "# c", "y:", "z\"", "z'", "z\" # c", "v\\", "a''b", "\\u00e9 "][..]), 1..4))
            .prop_map(|(head, lines)| std::iter::once(head.to_owned()).chain(lines.iter().map(|line| format!("  {line}"))).collect()),
    ];
    let node = leaf.prop_recursive(4, 24, 4, |inner| {
        let sequence =
            (prop::collection::vec(inner.clone(), 1..4), 0usize..2).prop_map(|(items, own_line)| {
                let mut lines = Vec::new();
                for item in items {
                    for (at, line) in item.into_iter().enumerate() {
                        match (at, own_line) {
                            (0, 0) => lines.push(format!("- {line}")),
                            (0, _) => lines.extend(["-".to_owned(), format!("  {line}")]),
                            _ => lines.push(format!("  {line}")),
                        }
                    }
                }
                lines
            });
        let mapping = (prop::collection::vec(inner, 1..4), 0usize..4).prop_map(|(values, style)| {
            let mut lines = Vec::new();
            for (key, value) in ["k", "l m", "'n'", "o"].iter().zip(values) {
                let is_item = value[0].starts_with("- ");
                let single = value.len() == 1 || value[0].starts_with(['|', '>', 'w', '1', '"', '\'']);
                if single && style != 3 {
                    lines.push(format!("{key}: {}", value[0]));
                    lines.extend(value.into_iter().skip(1));
                } else {
                    lines.push(format!("{key}:"));
                    let pad = if is_item && style == 0 { "" } else { "  " };
                    lines.extend(value.into_iter().map(|line| format!("{pad}{line}")));
                }
            }
            lines
        });
        prop_oneof![sequence, mapping]
    });
    (
        node,
        prop::option::of((any::<prop::sample::Index>(), 0usize..5)),
        any::<bool>(),
    )
        .prop_map(|(mut lines, moved, ends)| {
            if let Some((at, by)) = moved {
                let at = at.index(lines.len());
                lines[at] = match by {
                    0 => lines[at].trim_start().to_owned(),
                    by => format!("{}{}", " ".repeat(by), lines[at]),
                };
            }
            lines.join("\n") + if ends { "\n" } else { "" }
        })
}

/// Some seconds of tests; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let asked = ProptestConfig::default();
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => asked,
        None => ProptestConfig {
            cases: 4_000,
            ..asked
        },
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn agrees_on_soup(text in soup()) {
        agree(&text).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn agrees_on_structure(text in structured()) {
        agree(&text).map_err(TestCaseError::fail)?;
    }
}
