//! Semantic versions and constraints on them, by the rules of Masterminds' semver 3.3.

mod constraint;

use std::cmp::Ordering;

use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::machine::Machine;
use crate::text::lossy;
use crate::value::{FieldType, Struct, StructType, UintType, Value};

pub use constraint::Constraints;

use Param::Str;

type Answer = Result<Value, Fault>;

pub(super) const TABLE: &[Func] = &[
    Func::new("semver", &[Str], |_, args| {
        Ok(value(&Version::parse(&arg::text(args, 0))?))
    }),
    Func::new("semverCompare", &[Str, Str], compare),
];

fn compare(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    machine.spend_bytes(arg::bytes(args, 0).len())?;
    let constraints = Constraints::parse(&arg::text(args, 0))?;
    let version = Version::parse(&arg::text(args, 1))?;
    Ok(Value::Bool(constraints.check(&version)))
}

/// A version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its first number.
    pub major: u64,
    /// Its second number.
    pub minor: u64,
    /// Its third number.
    pub patch: u64,
    /// What follows the dash.
    pub pre: String,
    /// What follows the plus.
    pub metadata: String,
    /// As it was written.
    pub original: String,
}

/// The parts of a version as they are written.
#[derive(Debug, Clone, Copy, Default)]
struct Parts<'t> {
    major: &'t str,
    /// Nothing if it is not there, like the parts after it.
    minor: &'t str,
    patch: &'t str,
    /// Without the dash.
    pre: &'t str,
    metadata: &'t str,
}

/// Cuts a version into its parts. By hand: charts compare versions in every file, and the expression that says the same
/// takes longer to compile than a small chart to render.
fn parts(text: &str, is_number: fn(&str) -> bool) -> Option<Parts<'_>> {
    let identifiers = |text: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        text.split('.')
            .all(|part| !part.is_empty() && part.bytes().all(is_allowed))
    };
    let rest = text.strip_prefix('v').unwrap_or(text);
    let (rest, metadata) = match rest.split_once('+') {
        Some((rest, metadata)) if identifiers(metadata) => (rest, metadata),
        Some(_) => return None,
        None => (rest, ""),
    };
    let (numbers, pre) = match rest.split_once('-') {
        Some((numbers, pre)) if identifiers(pre) => (numbers, pre),
        Some(_) => return None,
        None => (rest, ""),
    };
    let mut numbers = numbers.split('.');
    let major = numbers.next().filter(|part| is_number(part))?;
    let mut further = || match numbers.next() {
        Some(part) if is_number(part) => Some(part),
        Some(_) => None,
        None => Some(""),
    };
    let (minor, patch) = (further()?, further()?);
    numbers.next().is_none().then_some(Parts {
        major,
        minor,
        patch,
        pre,
        metadata,
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Version {
    /// Reads a version, of which the second and third number may be missing.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found = parts(text, is_digits).ok_or("Invalid Semantic Version")?;
        let number = |text: &str| match text {
            "" => Ok(0),
            digits => digits.parse().map_err(|_| {
                let quoted = crate::text::quote(digits.as_bytes());
                format!(
                    "Error parsing version segment: strconv.ParseUint: parsing {quoted}: value out of range"
                )
            }),
        };
        let version = Self {
            major: number(found.major)?,
            minor: number(found.minor)?,
            patch: number(found.patch)?,
            pre: found.pre.to_owned(),
            metadata: found.metadata.to_owned(),
            original: text.to_owned(),
        };
        let leading_zero = |part: &str| {
            part.len() > 1 && part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if version.pre.split('.').any(leading_zero) {
            return Err("Version segment starts with 0".to_owned());
        }
        Ok(version)
    }

    /// Which of two versions is newer; metadata does not count.
    pub fn compare(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| compare_pre(&self.pre, &other.pre))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn compare_pre(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => return Ordering::Equal,
        // A release is newer than what came before it.
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(left), Some(right)) => match (left.parse::<u64>(), right.parse::<u64>()) {
                (Ok(left), Ok(right)) => left.cmp(&right),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => left.cmp(right),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

static VERSION_TYPE: StructType = StructType {
    name: "*semver.Version",
    pointer: true,
    fields: &[FieldType {
        name: "original",
        json: "",
        omit_empty: false,
    }],
    methods: &[
        Func::new("Major", &[], |_, args| Ok(uint(version(args, 0)?.major))),
        Func::new("Minor", &[], |_, args| Ok(uint(version(args, 0)?.minor))),
        Func::new("Patch", &[], |_, args| Ok(uint(version(args, 0)?.patch))),
        Func::new("Prerelease", &[], |_, args| Ok(version(args, 0)?.pre.into())),
        Func::new("Metadata", &[], |_, args| Ok(version(args, 0)?.metadata.into())),
        Func::new("Original", &[], |_, args| Ok(version(args, 0)?.original.into())),
        Func::new("String", &[], |_, args| Ok(version(args, 0)?.to_string().into())),
        Func::new("Compare", &[OTHER], |_, args| {
            Ok(Value::int(version(args, 0)?.compare(&version(args, 1)?) as i64))
        }),
        Func::new("Equal", &[OTHER], |_, args| is(args, Ordering::is_eq)),
        Func::new("LessThan", &[OTHER], |_, args| is(args, Ordering::is_lt)),
        Func::new("LessThanEqual", &[OTHER], |_, args| is(args, Ordering::is_le)),
        Func::new("GreaterThan", &[OTHER], |_, args| is(args, Ordering::is_gt)),
        Func::new("GreaterThanEqual", &[OTHER], |_, args| is(args, Ordering::is_ge)),
        Func::new("IncMajor", &[], |_, args| {
            let version = version(args, 0)?;
            next(&version, version.major.saturating_add(1), 0, 0)
        }),
        Func::new("IncMinor", &[], |_, args| {
            let version = version(args, 0)?;
            next(&version, version.major, version.minor.saturating_add(1), 0)
        }),
        Func::new("IncPatch", &[], |_, args| {
            let version = version(args, 0)?;
            let patch = version.patch.saturating_add(u64::from(version.pre.is_empty()));
            next(&version, version.major, version.minor, patch)
        }),
    ],
    display: Some(display),
    is_text: true,
    embedded: None,
};

const OTHER: Param = Param::Struct("*semver.Version");

fn display(value: &Struct) -> String {
    let original = value.fields.first().and_then(Value::as_str);
    let parsed = original.map(|text| Version::parse(&lossy(text)));
    parsed
        .and_then(Result::ok)
        .map_or_else(String::new, |version| version.to_string())
}

fn uint(number: u64) -> Value {
    Value::Uint(UintType::Uint64, number)
}

fn is(args: &[Value], test: fn(Ordering) -> bool) -> Answer {
    Ok(Value::Bool(test(version(args, 0)?.compare(&version(args, 1)?))))
}

fn next(version: &Version, major: u64, minor: u64, patch: u64) -> Answer {
    let prefix = if version.original.starts_with('v') {
        "v"
    } else {
        ""
    };
    Ok(value(&Version::parse(&format!(
        "{prefix}{major}.{minor}.{patch}"
    ))?))
}

/// The version behind a value.
fn version(args: &[Value], at: usize) -> Result<Version, String> {
    match args.get(at) {
        Some(Value::Struct(value)) => {
            let original = value.fields.first().and_then(Value::as_str);
            original.map_or(Err("not a version".to_owned()), |text| {
                Version::parse(&lossy(text))
            })
        }
        _ => Err("not a version".to_owned()),
    }
}

fn value(version: &Version) -> Value {
    Value::structure(&VERSION_TYPE, vec![version.original.as_str().into()])
}
