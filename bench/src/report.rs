//! The report: floors first, then every figure of both servers side by side, then what the machine could do at best.

mod circumstances;
mod floors;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub(crate) use self::circumstances::{Circumstances, commit};
use crate::figures::{Figures, Key, Rounds, over_rounds};

/// Operations with a rate, latencies and CPU time, in the order of the table.
const LOADS: &[&str] = &[
    "create, 1 client",
    "create, 16 clients",
    "create, 64 clients",
    "GET, 1 client",
    "GET, 16 clients",
    "GET, 64 clients",
    "apply, create, 16 clients",
    "apply, update, 16 clients",
    "apply, update, 1 client",
    "LIST 10,000",
    "LIST 10,000, gzip",
    "watch, 1 writer",
    "watch, 16 writers",
];

/// Single figures: name, key, unit.
const SINGLE: &[(&str, Key, &str)] = &[
    ("ready after start", ("ready", "wall"), "ms"),
    ("CPU until ready", ("ready", "cpu"), "ms"),
    ("idle CPU", ("idle", "cpu percent"), "% of a core"),
    ("resident memory, idle", ("idle", "memory"), "MiB"),
    ("of it, without pages of files", ("idle", "anonymous"), "MiB"),
    (
        "resident memory, 10,000 objects",
        ("10,000 objects", "memory"),
        "MiB",
    ),
    ("size of LIST 10,000", ("LIST 10,000", "megabytes"), "MB"),
    (
        "size of LIST 10,000, gzip",
        ("LIST 10,000, gzip", "megabytes"),
        "MB",
    ),
    (
        "50 CRDs until established",
        ("50 CRDs, established", "wall"),
        "ms",
    ),
    (
        "50 CRDs until each is listed",
        ("50 CRDs, each listed", "wall"),
        "ms",
    ),
    ("CPU per CRD", ("50 CRDs", "cpu"), "ms"),
    ("memory per CRD", ("50 CRDs", "kilobytes each"), "KiB"),
];

/// Both servers, medians over the rounds, as Markdown.
pub(crate) fn compare(rounds: &Rounds, circumstances: &Circumstances) -> String {
    let mut text = circumstances.heading();
    if !rounds.fairway.is_empty() && !rounds.peer.is_empty() {
        text += &floors::table(rounds);
    }
    text += &loads_table(rounds);
    text += &single_table(rounds);
    text += &ceilings_table(rounds);
    text
}

/// The figures of one server, for a look at a running one.
pub(crate) fn one_server(figures: &Figures) -> String {
    let mut text = String::from("| operation | rate/s | p50 ms | p99 ms | CPU ms |\n|---|---|---|---|---|\n");
    for operation in LOADS {
        let cell = |what| number(figures.get((*operation, what)));
        let _ = writeln!(
            text,
            "| {operation} | {} | {} | {} | {} |",
            cell("rate"),
            cell("p50"),
            cell("p99"),
            cell("cpu")
        );
    }
    for (name, key, unit) in SINGLE {
        let _ = writeln!(text, "| {name} | {} {unit} | | | |", number(figures.get(*key)));
    }
    text
}

fn loads_table(rounds: &Rounds) -> String {
    let mut text = String::from(
        "\n## Operations\n\nCPU is user and system time of the server's processes per operation, the load generator \
         excluded.\n\n\
         | operation | CPU ms: Fairway | peer | peer / Fairway | rate/s: Fairway | peer | p50 / p99 ms: Fairway | peer |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for operation in LOADS {
        let ours = |what| over_rounds(&rounds.fairway, (*operation, what));
        let theirs = |what| over_rounds(&rounds.peer, (*operation, what));
        let _ = writeln!(
            text,
            "| {operation} | {} | {} | {} | {} | {} | {} / {} | {} / {} |",
            number(ours("cpu")),
            number(theirs("cpu")),
            number(ratio(theirs("cpu"), ours("cpu"))),
            number(ours("rate")),
            number(theirs("rate")),
            number(ours("p50")),
            number(ours("p99")),
            number(theirs("p50")),
            number(theirs("p99")),
        );
    }
    text
}

fn single_table(rounds: &Rounds) -> String {
    let mut text = String::from(
        "\n## Start, memory, CRDs\n\n| what | unit | Fairway | peer | peer / Fairway |\n|---|---|---|---|---|\n",
    );
    for (name, key, unit) in SINGLE {
        let ours = over_rounds(&rounds.fairway, *key);
        let theirs = over_rounds(&rounds.peer, *key);
        let _ = writeln!(
            text,
            "| {name} | {unit} | {} | {} | {} |",
            number(ours),
            number(theirs),
            number(ratio(theirs, ours))
        );
    }
    text
}

fn ceilings_table(rounds: &Rounds) -> String {
    let ceiling = |key| over_rounds(&rounds.ceilings, key);
    let ours = |key| over_rounds(&rounds.fairway, key);
    let megabytes = ours(("LIST 10,000", "megabytes"));
    let per_list = |rate: Option<f64>| ratio(megabytes, rate);
    let rows = [
        (
            "fdatasync of 4 KiB, p50",
            ceiling(("fdatasync", "p50")),
            "ms",
            "create, 1 client, p50",
            ours(("create, 1 client", "p50")),
        ),
        (
            "fdatasync of 4 KiB, p99",
            ceiling(("fdatasync", "p99")),
            "ms",
            "create, 1 client, p99",
            ours(("create, 1 client", "p99")),
        ),
        (
            "copying the list's bytes once",
            per_list(ceiling(("memcpy", "gigabytes/s")).map(|rate| rate * 1e3)).map(|seconds| seconds * 1e3),
            "ms",
            "LIST 10,000, CPU",
            ours(("LIST 10,000", "cpu")),
        ),
        (
            "parsing the list's JSON once",
            per_list(ceiling(("JSON parse", "megabytes/s"))).map(|seconds| seconds * 1e3),
            "ms",
            "LIST 10,000, CPU",
            ours(("LIST 10,000", "cpu")),
        ),
    ];
    let mut text = format!(
        "\n## What the machine could do at best\n\n{} fdatasync/s one after another, memcpy {} GB/s, serde_json {} MB/s \
         (one core).\n\n| bound | {} | Fairway's figure | value | times the bound |\n|---|---|---|---|---|\n",
        number(ceiling(("fdatasync", "rate"))),
        number(ceiling(("memcpy", "gigabytes/s"))),
        number(ceiling(("JSON parse", "megabytes/s"))),
        "value",
    );
    for (bound, value, unit, figure, measured) in rows {
        let _ = writeln!(
            text,
            "| {bound} | {} {unit} | {figure} | {} {unit} | {} |",
            number(value),
            number(measured),
            number(ratio(measured, value))
        );
    }
    text
}

fn ratio(above: Option<f64>, below: Option<f64>) -> Option<f64> {
    match (above, below) {
        (Some(above), Some(below)) if below > 0.0 => Some(above / below),
        _ => None,
    }
}

/// Three significant digits: more would pretend a precision that the machine does not have.
pub(crate) fn number(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value.abs() >= 100.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) if value.abs() >= 1.0 => format!("{value:.2}"),
        Some(value) => format!("{value:.3}"),
    }
}

/// Writes the report under its date and commit, and says where.
pub(crate) fn write(folder: &Path, text: &str) -> Result<PathBuf> {
    write_named(folder, "", text)
}

/// The same, with something before the date.
pub(crate) fn write_named(folder: &Path, before: &str, text: &str) -> Result<PathBuf> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let path = folder.join(format!("{before}{date}-{}.md", commit()));
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let written: Vec<String> = [Some(1234.6), Some(56.78), Some(1.999), Some(0.04321), None]
            .map(number)
            .to_vec();
        assert_eq!(written, ["1235", "56.8", "2.00", "0.043", "–"]);
    }

    #[test]
    fn a_ratio_needs_both() {
        assert_eq!(ratio(Some(8.0), Some(2.0)), Some(4.0));
        assert_eq!(ratio(Some(8.0), Some(0.0)), None);
        assert_eq!(ratio(None, Some(2.0)), None);
    }
}
