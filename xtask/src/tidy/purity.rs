//! Pure crates decide and nothing else: their answers depend on their arguments alone, which is what makes their
//! tests tables and their results repeatable. Two checks: what they link, and what their source names.

use super::Problem;
use super::source::SourceFile;
use super::workspace::Workspace;

/// Runtimes, sockets, files and log back ends: not even through another crate.
const NEVER_LINKED: &[&str] = &[
    "async-std",
    "axum",
    "env_logger",
    "h2",
    "hyper",
    "kube",
    "kube-client",
    "mio",
    "polling",
    "reqwest",
    "rusqlite",
    "rustls",
    "smol",
    "socket2",
    "tempfile",
    "tokio",
    "tracing-subscriber",
    "ureq",
];

/// Randomness: a crate below may seed a hash map with it, but a pure crate must not ask for it.
const NEVER_LISTED: &[&str] = &["fastrand", "getrandom", "oorandom", "rand", "rand_core"];

/// Modules of the standard library that reach outside the process or start work of their own.
const OUTSIDE_MODULES: &[&str] = &["env", "fs", "net", "os", "process", "thread"];

/// Plain values that happen to live in `std::net`.
const ADDRESS_TYPES: &[&str] = &[
    "AddrParseError",
    "IpAddr",
    "Ipv4Addr",
    "Ipv6Addr",
    "SocketAddr",
    "SocketAddrV4",
    "SocketAddrV6",
];

/// Calls whose result differs from one moment to the next, and what to do instead.
const CLOCK_AND_CHANCE: &[(&str, &str)] = &[
    ("SystemTime::now", "take the time as an argument"),
    ("Instant::now", "take the time as an argument"),
    ("Timestamp::now", "take the time as an argument"),
    ("Zoned::now", "take the time as an argument"),
    ("TimeZone::system", "take the time zone as an argument"),
    ("thread_rng", "take a seed as an argument"),
    ("rand::", "take a seed as an argument"),
    ("io::stdin", "take the input as an argument"),
    ("io::stdout", "return the output"),
    ("io::stderr", "return the output"),
];

pub(super) fn check_dependencies(workspace: &Workspace) -> Vec<Problem> {
    let mut problems = Vec::new();
    for member in workspace.crates.iter().filter(|member| member.pure) {
        let manifest = member.directory.join("Cargo.toml");
        for banned in NEVER_LINKED {
            if let Some(way) = member.reachable.get(*banned) {
                let message = format!("a pure crate must not link `{banned}` ({way})");
                problems.push(Problem::new(&manifest, 0, message));
            }
        }
        for banned in NEVER_LISTED
            .iter()
            .filter(|banned| member.direct.contains(**banned))
        {
            problems.push(Problem::new(
                &manifest,
                0,
                format!("a pure crate must not depend on `{banned}`"),
            ));
        }
    }
    problems
}

pub(super) fn check_source(file: &SourceFile) -> Vec<Problem> {
    if file.is_test {
        return Vec::new();
    }
    let code = &file.product_code;
    let mut problems = Vec::new();
    for (offset, path) in std_paths(code) {
        let module = path.split("::").next().unwrap_or_default();
        let is_address = module == "net"
            && path
                .split("::")
                .nth(1)
                .is_some_and(|name| ADDRESS_TYPES.contains(&name));
        if OUTSIDE_MODULES.contains(&module) && !is_address {
            let message = format!("a pure crate must not use `std::{module}`");
            problems.push(Problem::new(&file.path, file.line_of(offset), message));
        }
    }
    for (call, instead) in CLOCK_AND_CHANCE {
        for offset in words(code, call) {
            let message = format!("a pure crate must not use `{call}`: {instead}");
            problems.push(Problem::new(&file.path, file.line_of(offset), message));
        }
    }
    for keyword in ["async", ".await"] {
        for offset in words(code, keyword) {
            let message = format!("a pure crate must not use `{keyword}`: waiting is for the caller");
            problems.push(Problem::new(&file.path, file.line_of(offset), message));
        }
    }
    problems
}

/// Where `needle` stands as a whole word, not as a part of a longer name.
fn words<'a>(code: &'a str, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    code.match_indices(needle)
        .map(|(offset, _)| offset)
        .filter(move |&offset| {
            let before = code[..offset].chars().next_back();
            let after = code[offset + needle.len()..].chars().next();
            let starts = needle.starts_with('.') || !is_name(before);
            starts && (needle.ends_with(':') || !is_name(after))
        })
}

/// Every path below `std::` that the code names, without the `std::`, with groups (`std::{fs, net::IpAddr}`) taken
/// apart.
fn std_paths(code: &str) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    for offset in words(code, "std::") {
        let rest = &code[offset + "std::".len()..];
        for path in expand_group(rest) {
            paths.push((offset, path));
        }
    }
    paths
}

/// The paths that a use tree starts with; ends where the tree ends. Depth is bounded because hostile nesting would
/// not compile.
fn expand_group(tree: &str) -> Vec<String> {
    let tree = tree.trim_start();
    let Some(inner) = tree.strip_prefix('{') else {
        let name: String = tree
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let rest = &tree[name.len()..];
        let Some(below) = rest.trim_start().strip_prefix("::") else {
            return vec![name];
        };
        // What follows a generic argument (`Vec::<T>`) is not part of the path.
        return expand_group(below)
            .into_iter()
            .map(|path| {
                if path.is_empty() {
                    name.clone()
                } else {
                    format!("{name}::{path}")
                }
            })
            .collect();
    };
    let mut depth = 0;
    let mut start = 0;
    let mut paths = Vec::new();
    for (offset, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                if !inner[start..offset].trim().is_empty() {
                    paths.extend(expand_group(&inner[start..offset]));
                }
                start = offset + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    paths
}
