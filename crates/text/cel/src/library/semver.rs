//! Semantic versions.

use std::cmp::Ordering;

use super::{Opaque, arg, opaque};
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::Registry;
use crate::meter::Meter;
use crate::value::Value;

/// A version by <https://semver.org>; build metadata is checked and dropped, since it has no precedence.
#[derive(Clone, Debug)]
pub struct Semver {
    numbers: [u64; 3],
    prerelease: Vec<Identifier>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Identifier {
    Number(u64),
    Text(Box<str>),
}

pub(super) fn register(r: &mut Registry) {
    r.add("semver", "(string) -> semver", Cost::ScanArgument, semver);
    r.add("semver", "(string, bool) -> semver", Cost::ScanArgument, semver);
    r.add("isSemver", "(string) -> bool", Cost::ScanArgument, |_, args| {
        Ok(Value::Bool(read(args)?.is_ok()))
    });
    r.add(
        "isSemver",
        "(string, bool) -> bool",
        Cost::ScanArgument,
        |_, args| Ok(Value::Bool(read(args)?.is_ok())),
    );
    r.add(
        "isGreaterThan",
        "semver.(semver) -> bool",
        Cost::Fixed(1),
        |_, args| {
            Ok(Value::Bool(
                opaque!(args, 0, Semver)
                    .precedence(opaque!(args, 1, Semver))
                    .is_gt(),
            ))
        },
    );
    r.add(
        "isLessThan",
        "semver.(semver) -> bool",
        Cost::Fixed(1),
        |_, args| {
            Ok(Value::Bool(
                opaque!(args, 0, Semver)
                    .precedence(opaque!(args, 1, Semver))
                    .is_lt(),
            ))
        },
    );
    r.add(
        "compareTo",
        "semver.(semver) -> int",
        Cost::Fixed(1),
        |_, args| {
            Ok(Value::Int(
                opaque!(args, 0, Semver).precedence(opaque!(args, 1, Semver)) as i64,
            ))
        },
    );
    r.add("major", "semver.() -> int", Cost::Fixed(1), |_, args| {
        Ok(Value::Int(opaque!(args, 0, Semver).numbers[0] as i64))
    });
    r.add("minor", "semver.() -> int", Cost::Fixed(1), |_, args| {
        Ok(Value::Int(opaque!(args, 0, Semver).numbers[1] as i64))
    });
    r.add("patch", "semver.() -> int", Cost::Fixed(1), |_, args| {
        Ok(Value::Int(opaque!(args, 0, Semver).numbers[2] as i64))
    });
}

/// Reads the arguments of `semver` and `isSemver`; the outer error is for wrong types.
fn read(args: &[Value<'_>]) -> Result<Result<Semver, String>, Error> {
    let text = arg!(args, 0, String);
    Ok(match args.get(1).and_then(Value::as_bool) {
        Some(true) => normalize(text).and_then(|text| Semver::parse(&text)),
        _ => Semver::parse(text),
    })
}

fn semver<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match read(args)? {
        Ok(version) => Ok(Value::opaque(Opaque::Semver(version))),
        Err(why) => Err(Error::invalid(why)),
    }
}

/// Drops a leading `v` and leading zeros, and fills up `1` and `1.2` to three numbers.
fn normalize(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
    for part in parts.iter_mut().filter(|part| part.len() > 1) {
        let trimmed = part.trim_start_matches('0');
        let number = trimmed.starts_with(|c: char| c.is_ascii_digit());
        *part = if number {
            trimmed.to_owned()
        } else {
            format!("0{trimmed}")
        };
    }
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
    }
    Ok(parts.join("."))
}

fn number(text: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in number {text:?}"));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("Number must not contain leading zeroes {text:?}"));
    }
    text.parse().map_err(|_| format!("Number out of range {text:?}"))
}

fn identifier(text: &str) -> Result<(), String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Err(format!("Invalid character(s) found in identifier {text:?}"));
    }
    Ok(())
}

impl Semver {
    fn parse(text: &str) -> Result<Semver, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, patch] = parts[..] else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (patch, build) = patch
            .split_once('+')
            .map_or((patch, None), |(rest, build)| (rest, Some(build)));
        let (patch, prerelease) = patch
            .split_once('-')
            .map_or((patch, None), |(rest, pre)| (rest, Some(pre)));
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            identifier(part)?;
        }
        let mut identifiers = Vec::new();
        for part in prerelease.into_iter().flat_map(|pre| pre.split('.')) {
            identifier(part)?;
            identifiers.push(if part.bytes().all(|b| b.is_ascii_digit()) {
                Identifier::Number(number(part)?)
            } else {
                Identifier::Text(part.into())
            });
        }
        Ok(Semver {
            numbers: [number(major)?, number(minor)?, number(patch)?],
            prerelease: identifiers,
        })
    }

    /// The order of versions: a prerelease comes before its release.
    pub(crate) fn precedence(&self, other: &Semver) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => {
                    let pairs = self.prerelease.iter().zip(&other.prerelease);
                    let first = pairs.map(|(a, b)| a.precedence(b)).find(|order| order.is_ne());
                    first.unwrap_or_else(|| self.prerelease.len().cmp(&other.prerelease.len()))
                }
            }
        })
    }
}

impl Identifier {
    fn precedence(&self, other: &Identifier) -> Ordering {
        match (self, other) {
            (Identifier::Number(a), Identifier::Number(b)) => a.cmp(b),
            (Identifier::Number(_), Identifier::Text(_)) => Ordering::Less,
            (Identifier::Text(_), Identifier::Number(_)) => Ordering::Greater,
            (Identifier::Text(a), Identifier::Text(b)) => a.cmp(b),
        }
    }
}
