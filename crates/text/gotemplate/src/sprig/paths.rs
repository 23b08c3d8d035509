//! Paths with slashes, by Go's `path`.

use crate::arg;
use crate::functions::{Func, Param};
use crate::value::Value;

use Param::Str;

pub(super) const TABLE: &[Func] = &[
    Func::new("base", &[Str], |_, args| Ok(base(&arg::text(args, 0)).into())),
    Func::new("dir", &[Str], |_, args| Ok(dir(&arg::text(args, 0)).into())),
    Func::new("clean", &[Str], |_, args| Ok(clean(&arg::text(args, 0)).into())),
    Func::new("ext", &[Str], |_, args| Ok(ext(&arg::text(args, 0)).into())),
    Func::new("isAbs", &[Str], |_, args| {
        Ok(Value::Bool(arg::bytes(args, 0).starts_with(b"/")))
    }),
    Func::new("osBase", &[Str], |_, args| Ok(base(&arg::text(args, 0)).into())),
    Func::new("osDir", &[Str], |_, args| Ok(dir(&arg::text(args, 0)).into())),
    Func::new("osClean", &[Str], |_, args| Ok(clean(&arg::text(args, 0)).into())),
    Func::new("osExt", &[Str], |_, args| Ok(ext(&arg::text(args, 0)).into())),
    Func::new("osIsAbs", &[Str], |_, args| {
        Ok(Value::Bool(arg::bytes(args, 0).starts_with(b"/")))
    }),
];

fn base(path: &str) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    let trimmed = path.trim_end_matches('/');
    match trimmed.rsplit('/').next() {
        Some("") | None => "/".to_owned(),
        Some(name) => name.to_owned(),
    }
}

fn dir(path: &str) -> String {
    clean(path.rfind('/').map_or("", |at| &path[..=at]))
}

fn ext(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or("");
    name.rfind('.').map_or("", |at| &name[at..])
}

fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&"..") | None if !rooted => parts.push(".."),
                _ => {
                    parts.pop();
                }
            },
            name => parts.push(name),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}
