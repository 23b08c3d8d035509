//! Objects as upstream shows them when it prints its internal Go structs: every field, in the order of the struct and
//! under Go's names; and the difference between two of them.
//!
//! The fields are `go_types.txt`, written by `scripts/go-types.py`. It is read only to tell somebody what he did wrong,
//! so it is searched, not parsed at start.

use std::fmt::Write as _;

use serde::Serialize as _;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value};

use crate::read;

static TYPES: &str = include_str!("go_types.txt");

/// Lines around a change that are shown too.
const CONTEXT: usize = 3;
/// Above this many pairs of lines the middle of a difference is shown as replaced as a whole.
const PAIRS_MAX: usize = 1_000_000;

/// A pod spec in the form of the internal struct, which keeps what is shared with the host in the security context.
pub(crate) fn pod_spec(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for key in [
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "shareProcessNamespace",
        "hostUsers",
    ] {
        if let Some(value) = spec.get(key).cloned() {
            read::unset(&mut spec, key);
            read::set(read::part_mut(&mut spec, "securityContext"), key, value);
        }
    }
    dump("PodSpec", &spec)
}

/// A value of a struct.
pub(crate) fn dump(name: &str, value: &Value) -> Value {
    let mut shown = Map::new();
    fill(&mut shown, name, value);
    Value::Object(shown)
}

fn fill(shown: &mut Map<String, Value>, name: &str, value: &Value) {
    let fields = TYPES
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        .unwrap_or("");
    for field in fields.split(", ") {
        let mut words = field.split(' ');
        let (Some(go), Some(key), Some(kind)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if let Some(embedded) = kind.strip_prefix('+') {
            fill(shown, embedded, value);
            continue;
        }
        let given = value.get(key).filter(|v| !v.is_null());
        shown.insert(go.to_owned(), field_value(kind, given));
    }
}

fn field_value(kind: &str, given: Option<&Value>) -> Value {
    match (kind, given) {
        ("text" | "number" | "flag" | "null", Some(given)) => read::sorted(given),
        ("text", None) => Value::from(""),
        ("number", None) => Value::from(0),
        ("flag", None) => Value::from(false),
        ("null", None) => Value::Null,
        (kind, given) => {
            if let Some(element) = kind.strip_prefix("[]") {
                let items = given.and_then(Value::as_array);
                items.map_or(Value::Null, |items| {
                    items.iter().map(|item| dump(element, item)).collect()
                })
            } else if let Some(target) = kind.strip_prefix('*') {
                given.map_or(Value::Null, |given| dump(target, given))
            } else {
                dump(kind, given.unwrap_or(&Value::Null))
            }
        }
    }
}

/// What changed between two dumps, as a unified difference of their indented JSON.
pub(crate) fn difference(old: &Value, new: &Value) -> String {
    let (old, new) = (indented(old), indented(new));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    unified(&old, &new)
}

fn indented(value: &Value) -> String {
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(b" "));
    // Values have only string keys, and memory takes every byte: this cannot fail.
    let _ = value.serialize(&mut serializer);
    // As Go's encoder escapes what could be taken for HTML.
    String::from_utf8(out)
        .unwrap_or_default()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

/// A run of lines that both have: where it begins in each, and how long it is.
struct Same {
    old: usize,
    new: usize,
    length: usize,
}

fn unified(old: &[&str], new: &[&str]) -> String {
    let mut out = String::new();
    let mut hunk: Vec<String> = Vec::new();
    let (mut hunk_old, mut hunk_new) = (0, 0);
    let (mut at_old, mut at_new) = (0, 0);
    for same in common(old, new) {
        let changed = same.old > at_old || same.new > at_new;
        if changed && hunk.is_empty() {
            (hunk_old, hunk_new) = (at_old, at_new);
        }
        hunk.extend(old[at_old..same.old].iter().map(|line| format!("-{line}")));
        hunk.extend(new[at_new..same.new].iter().map(|line| format!("+{line}")));
        (at_old, at_new) = (same.old + same.length, same.new + same.length);
        let lines = &old[same.old..at_old];
        let last = at_old == old.len() && at_new == new.len();
        if !hunk.is_empty() {
            if lines.len() <= 2 * CONTEXT && !last {
                hunk.extend(lines.iter().map(|line| format!(" {line}")));
                continue;
            }
            hunk.extend(lines.iter().take(CONTEXT).map(|line| format!(" {line}")));
            write_hunk(&mut out, hunk_old, hunk_new, &hunk);
            hunk.clear();
        }
        if !last {
            let skipped = lines.len().saturating_sub(CONTEXT);
            hunk.extend(lines[skipped..].iter().map(|line| format!(" {line}")));
            (hunk_old, hunk_new) = (same.old + skipped, same.new + skipped);
        }
    }
    out
}

fn write_hunk(out: &mut String, old: usize, new: usize, lines: &[String]) {
    let range = |start: usize, without: char| {
        let count = lines.iter().filter(|line| !line.starts_with(without)).count();
        match count {
            0 => format!("{start},0"),
            1 => format!("{}", start + 1),
            _ => format!("{},{count}", start + 1),
        }
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "@@ -{} +{} @@", range(old, '+'), range(new, '-'));
    for line in lines {
        out.push_str(line);
        out.push('\n');
    }
}

/// The runs that both have, in order; the last one ends both, and may be empty.
fn common(old: &[&str], new: &[&str]) -> Vec<Same> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (rest_old, rest_new) = (&old[head..], &new[head..]);
    let tail = rest_old
        .iter()
        .rev()
        .zip(rest_new.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let middle_old = &rest_old[..rest_old.len() - tail];
    let middle_new = &rest_new[..rest_new.len() - tail];
    let mut runs = vec![Same {
        old: 0,
        new: 0,
        length: head,
    }];
    for (i, j) in pairs(middle_old, middle_new) {
        let (i, j) = (head + i, head + j);
        match runs.last_mut() {
            Some(run) if run.old + run.length == i && run.new + run.length == j => run.length += 1,
            _ => runs.push(Same {
                old: i,
                new: j,
                length: 1,
            }),
        }
    }
    runs.push(Same {
        old: old.len() - tail,
        new: new.len() - tail,
        length: tail,
    });
    runs
}

/// The longest common subsequence, as pairs of places.
fn pairs(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    if old.len().saturating_mul(new.len()) > PAIRS_MAX {
        return Vec::new();
    }
    let width = new.len() + 1;
    let mut best = vec![0_usize; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            best[i * width + j] = if old[i] == new[j] {
                best[(i + 1) * width + j + 1] + 1
            } else {
                best[(i + 1) * width + j].max(best[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut found) = (0, 0, Vec::new());
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            found.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[(i + 1) * width + j] >= best[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn structs_show_every_field() {
        let shown = dump("TypedObjectReference", &json!({"kind": "Pod", "apiGroup": "x"}));
        let want = json!({"APIGroup": "x", "Kind": "Pod", "Name": "", "Namespace": null});
        assert_eq!(shown.to_string(), want.to_string());
        let probe = dump("Probe", &json!({"exec": {}, "periodSeconds": 5}));
        assert_eq!(probe["Exec"], json!({"Command": null}));
        assert_eq!(probe["PeriodSeconds"], 5);
    }

    #[test]
    fn differences_have_three_lines_around_them() {
        let lines = |text: &'static str| text.split(' ').collect::<Vec<_>>();
        for (old, new, want) in [
            ("a b c d e", "a b c d e", ""),
            ("a", "b", "@@ -1 +1 @@\n-a\n+b\n"),
            (
                "a b c d e f g h i",
                "a b c d x f g h i",
                "@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+x\n f\n g\n h\n",
            ),
            ("a b c", "a b b b c", "@@ -1,3 +1,5 @@\n a\n b\n+b\n+b\n c\n"),
            (
                "x 1 2 3 4 5 6 7 y",
                "X 1 2 3 4 5 6 7 Y",
                "@@ -1,4 +1,4 @@\n-x\n+X\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-y\n+Y\n",
            ),
        ] {
            assert_eq!(unified(&lines(old), &lines(new)), want, "{old} -> {new}");
        }
    }
}
