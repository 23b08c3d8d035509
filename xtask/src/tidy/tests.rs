//! The repository itself must be tidy, and each check must be able to fail: a table of small offences per check.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::lock::{Lock, hash};
use super::source::SourceFile;
use super::workspace::Workspace;
use super::{attributes, check_repository, files, generated, layers, purity, repository_root};

#[test]
fn the_repository_is_tidy() {
    let (_, problems) = check_repository(&repository_root().unwrap()).unwrap();
    let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(list.is_empty(), "{}", list.join("\n"));
}

fn source(path: &str, text: &str) -> SourceFile {
    SourceFile::new(PathBuf::from(path), text.to_owned())
}

fn purity_lines(text: &str) -> Vec<usize> {
    purity::check_source(&source("crates/x/src/lib.rs", text))
        .iter()
        .map(|problem| problem.line)
        .collect()
}

#[test]
fn pure_source_names_nothing_outside() {
    let cases: &[(&str, &str, &[usize])] = &[
        ("a file system call", "//! x\nfn f() { std::fs::read(p); }", &[2]),
        (
            "a grouped import",
            "//! x\nuse std::{\n  collections::HashMap, fs};",
            &[2],
        ),
        (
            "a nested group",
            "use std::{io::{Read, Write}, net::{IpAddr, TcpStream}};",
            &[1],
        ),
        (
            "addresses are values",
            "use std::net::{IpAddr, Ipv4Addr};\nuse std::net::Ipv6Addr;",
            &[],
        ),
        ("the module itself", "use std::net;", &[1]),
        ("the environment", "let a = std::env::var(\"A\");", &[1]),
        ("compile-time environment", "let a = env!(\"A\");", &[]),
        ("the clock", "let now = jiff::Timestamp::now();", &[1]),
        ("a longer name", "let now = MyInstant::nowhere();", &[]),
        ("chance", "let x: u8 = rand::random();", &[1]),
        ("another word", "let x = operand::random();", &[]),
        ("waiting", "async fn f() { g().await }", &[1, 1]),
        (
            "a comment",
            "// std::fs::read\n/* Instant::now /* nested */ std::env */",
            &[],
        ),
        (
            "a string",
            "let s = \"std::fs\"; let r = r#\"std::fs \"quoted\" \"#; let c = '\"'; let b = b'\"';",
            &[],
        ),
        (
            "behind a string",
            "let s = \"\\\"\"; std::process::exit(1);",
            &[1],
        ),
        (
            "a lifetime is no character",
            "fn f<'a>(x: &'a str) { std::fs::read(x); }",
            &[1],
        ),
        (
            "test code",
            "#[cfg(test)]\nmod tests {\n fn f() { std::fs::read(p); }\n}",
            &[],
        ),
        (
            "behind test code",
            "#[cfg(test)]\nmod tests;\nfn f() { std::thread::yield_now(); }",
            &[3],
        ),
        (
            "a test-only import",
            "#[cfg(test)]\nuse std::fs;\nuse std::fs;",
            &[3],
        ),
    ];
    for (why, text, expected) in cases {
        assert_eq!(&purity_lines(text), expected, "{why}");
    }
}

#[test]
fn pure_rules_do_not_bind_test_files() {
    for path in [
        "crates/x/src/lib/tests.rs",
        "crates/x/tests/y.rs",
        "crates/x/benches/y.rs",
    ] {
        assert!(
            purity::check_source(&source(path, "std::fs::read(p)")).is_empty(),
            "{path}"
        );
    }
}

#[test]
fn files_have_a_sign_a_size_and_a_name() {
    let long = |lines: usize, mark: &str| format!("//! x\n{mark}\n{}", "\n".repeat(lines - 2));
    let cases: &[(&str, &str, String, bool)] = &[
        (
            "well-formed",
            "crates/x/src/lib.rs",
            "//! Why.\n".to_owned(),
            true,
        ),
        ("no sign", "crates/x/src/lib.rs", "use x;\n".to_owned(), false),
        ("mod.rs", "crates/x/src/y/mod.rs", "//! Why.\n".to_owned(), false),
        (
            "nameless file",
            "crates/x/src/utils.rs",
            "//! Why.\n".to_owned(),
            false,
        ),
        (
            "nameless folder",
            "crates/x/src/common/y.rs",
            "//! Why.\n".to_owned(),
            false,
        ),
        ("long", "crates/x/src/lib.rs", long(601, ""), false),
        (
            "long with a reason",
            "crates/x/src/lib.rs",
            long(601, "// tidy: long: one table"),
            true,
        ),
        (
            "long with an empty reason",
            "crates/x/src/lib.rs",
            long(601, "// tidy: long: "),
            false,
        ),
        (
            "a reason no longer needed",
            "crates/x/src/lib.rs",
            long(600, "// tidy: long: one table"),
            false,
        ),
        (
            "too long",
            "crates/x/src/lib.rs",
            long(1001, "// tidy: long: one table"),
            false,
        ),
        (
            "generated",
            "crates/x/src/lib.rs",
            format!("// @generated\n{}", "\n".repeat(5000)),
            true,
        ),
    ];
    for (why, path, text, tidy) in cases {
        assert_eq!(files::check(&source(path, text)).is_empty(), *tidy, "{why}");
    }
}

#[test]
fn switched_off_lints_have_a_reason() {
    let cases: &[(&str, &str, usize)] = &[
        ("without", "#[allow(dead_code)]", 1),
        ("with", "#[allow(dead_code, reason = \"kept for the wire\")]", 0),
        ("of the crate", "#![expect(missing_docs)]", 1),
        ("conditional", "#[cfg_attr(feature = \"x\", allow(dead_code))]", 1),
        (
            "another word",
            "#[cfg_attr(feature = \"x\", disallow(dead_code))]",
            0,
        ),
        (
            "over lines",
            "#[expect(\n  clippy::panic,\n  reason = \"x\",\n)]",
            0,
        ),
        (
            "in test code",
            "#[cfg(test)]\nmod tests { #[allow(dead_code)] fn f() {} }",
            0,
        ),
        ("in a comment", "// #[allow(dead_code)]", 0),
    ];
    for (why, text, expected) in cases {
        assert_eq!(
            attributes::check(&source("crates/x/src/lib.rs", text)).len(),
            *expected,
            "{why}"
        );
    }
}

#[test]
fn generated_files_are_what_was_recorded() {
    let lock = Lock::parse(&format!("{}  a.rs\n", hash(b"one"))).unwrap();
    assert!(generated::check_hashes(&lock, |_| Some(b"one".to_vec())).is_empty());
    assert_eq!(generated::check_hashes(&lock, |_| Some(b"two".to_vec())).len(), 1);
    assert_eq!(generated::check_hashes(&lock, |_| None).len(), 1);
    assert!(Lock::parse("no hash here\n").is_err());
}

#[test]
fn generated_sources_are_recorded() {
    let file = || source("made.rs", "// @generated by xtask\n");
    let lock = Lock::parse(&format!("{}  made.rs\n", hash(b"one"))).unwrap();
    assert_eq!(generated::unrecorded(&Lock::default(), &[file()]).len(), 1);
    assert!(generated::unrecorded(&lock, &[file(), source("plain.rs", "//! Why.\n")]).is_empty());
}

/// A workspace from (folder, pure, dependencies); foreign crates are those that no folder names.
fn workspace(crates: &[(&str, bool, &[&str])]) -> Workspace {
    let kind = |name: &str| {
        if name.starts_with("dev:") {
            json!("dev")
        } else {
            Value::Null
        }
    };
    let plain = |name: &&str| name.trim_start_matches("dev:").to_owned();
    let mut foreign: Vec<String> = crates
        .iter()
        .flat_map(|(_, _, needs)| needs.iter().map(plain))
        .collect();
    foreign.retain(|name| crates.iter().all(|(folder, ..)| folder != name));
    foreign.sort();
    foreign.dedup();

    let mut packages: Vec<Value> = crates
        .iter()
        .map(|(folder, pure, _)| {
            json!({"id": folder, "name": folder, "manifest_path": format!("/repo/{folder}/Cargo.toml"),
                   "metadata": {"fairway": {"pure": pure}}, "targets": []})
        })
        .collect();
    packages.extend(
        foreign
            .iter()
            .map(|name| json!({"id": name, "name": name, "targets": []})),
    );
    let mut nodes: Vec<Value> = crates
        .iter()
        .map(|(folder, _, needs)| {
            let edge = |name: &&str| json!({"pkg": plain(name), "dep_kinds": [{"kind": kind(name)}]});
            json!({"id": folder, "deps": needs.iter().map(edge).collect::<Vec<_>>()})
        })
        .collect();
    nodes.extend(foreign.iter().map(|name| json!({"id": name, "deps": []})));
    let members: Vec<&str> = crates.iter().map(|(folder, ..)| *folder).collect();
    let metadata = json!({"packages": packages, "resolve": {"nodes": nodes}, "workspace_members": members});
    Workspace::from_metadata(Path::new("/repo"), &metadata).unwrap()
}

#[test]
fn dependencies_point_one_way() {
    const SERVER: &str = "crates/kernel/apiserver";
    const STORE: &str = "crates/kernel/store";
    const SCHEMA: &str = "crates/kernel/schema";
    let all = |from: &'static str, to: &'static [&'static str]| {
        let folders = [
            ("crates/fairway", false),
            ("crates/api", true),
            ("crates/controller", false),
            ("crates/text/yaml", true),
            (SERVER, false),
            (STORE, false),
            (SCHEMA, true),
            ("crates/gitops/engine", false),
            ("crates/gitops/sync", true),
            ("crates/machines/engine", false),
            ("crates/machines/plan", true),
            ("xtask", false),
        ];
        let crates: Vec<_> = folders
            .iter()
            .map(|(folder, pure)| (*folder, *pure, if *folder == from { to } else { &[][..] }))
            .collect();
        layers::check(&workspace(&crates)).len()
    };
    let cases: &[(&str, &'static str, &'static [&'static str], usize)] = &[
        (
            "the binary wires",
            "crates/fairway",
            &[SERVER, STORE, "crates/gitops/engine"],
            0,
        ),
        (
            "a server uses its adapters",
            SERVER,
            &[STORE, SCHEMA, "crates/text/yaml"],
            0,
        ),
        (
            "a pure crate uses wire types",
            SCHEMA,
            &["crates/api", "crates/text/yaml"],
            0,
        ),
        ("wire types use no pure crate", "crates/api", &[SCHEMA], 1),
        ("an adapter uses no server", STORE, &[SERVER], 1),
        ("a pure crate uses no adapter", SCHEMA, &[STORE], 1),
        ("nothing uses the binary", SERVER, &["crates/fairway"], 1),
        (
            "an engine uses its domain",
            "crates/gitops/engine",
            &["crates/gitops/sync", "crates/controller"],
            0,
        ),
        (
            "an engine has no way into the store",
            "crates/gitops/engine",
            &[STORE],
            1,
        ),
        ("an engine calls no server", "crates/gitops/engine", &[SERVER], 1),
        ("renderers know schemas", "crates/gitops/sync", &[SCHEMA], 0),
        (
            "domains are apart",
            "crates/gitops/sync",
            &["crates/machines/plan"],
            1,
        ),
        (
            "what all share knows no domain",
            "crates/controller",
            &["crates/machines/plan"],
            1,
        ),
        (
            "what all share has no way into the store",
            "crates/controller",
            &[STORE],
            1,
        ),
        ("the product uses no chores", SCHEMA, &["xtask"], 1),
        ("chores use everything", "xtask", &[SERVER, SCHEMA], 0),
        ("tests are free", SCHEMA, &["dev:crates/kernel/store"], 0),
    ];
    for (why, from, to, expected) in cases {
        assert_eq!(all(from, to), *expected, "{why}");
    }
}

#[test]
fn pure_crates_link_no_runtime() {
    let check = |needs: &'static [&'static str]| {
        let crates: &[(&str, bool, &[&str])] = &[
            ("crates/text/yaml", true, needs),
            ("crates/controller", false, &["tokio"]),
        ];
        purity::check_dependencies(&workspace(crates)).len()
    };
    let cases: &[(&str, &'static [&'static str], usize)] = &[
        ("values only", &["serde_json"], 0),
        ("a runtime", &["tokio"], 1),
        ("a runtime for tests", &["dev:tokio"], 0),
        ("a runtime through another crate", &["crates/controller"], 1),
        ("randomness", &["rand"], 1),
    ];
    for (why, needs, expected) in cases {
        assert_eq!(check(needs), *expected, "{why}");
    }
}
