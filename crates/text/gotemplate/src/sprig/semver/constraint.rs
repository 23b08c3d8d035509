//! Constraints: `>= 1.2, < 2 || ~3.1`, with `x` for any number.

use std::sync::LazyLock;

use regex::Regex;

use super::{Parts, Version, compare_pre, is_digits, parts};

/// What a version must meet: all of one of the lists.
#[derive(Debug, Clone)]
pub struct Constraints(Vec<Vec<Constraint>>);

#[derive(Debug, Clone)]
struct Constraint {
    operator: Operator,
    version: Version,
    /// Which numbers were not given.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    TildeOrEqual,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

const NUMBERS: &str = r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
/// The empty operator comes second as in Go, where the first alternative that matches is taken.
const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";

struct Expressions {
    one: Regex,
    range: Regex,
    find: Regex,
    valid: Regex,
}

static EXPRESSIONS: LazyLock<Option<Expressions>> = LazyLock::new(|| {
    Some(Expressions {
        one: Regex::new(&format!(r"^\s*({OPERATORS})\s*({NUMBERS})\s*$")).ok()?,
        range: Regex::new(&format!(r"\s*({NUMBERS})\s+-\s+({NUMBERS})\s*")).ok()?,
        find: Regex::new(&format!(r"({OPERATORS})\s*({NUMBERS})")).ok()?,
        valid: Regex::new(&format!(
            r"^(\s*({OPERATORS})\s*({NUMBERS})\s*)((?:\s+|,\s*)({OPERATORS})\s*({NUMBERS})\s*)*$"
        ))
        .ok()?,
    })
});

fn is_any(text: &str) -> bool {
    matches!(text, "x" | "X" | "*" | "")
}

impl Constraints {
    /// Reads constraints.
    pub fn parse(text: &str) -> Result<Self, String> {
        let simple: Option<Vec<Vec<Constraint>>> = text.split("||").map(simple_list).collect();
        match simple {
            Some(lists) => Ok(Self(lists)),
            None => Self::parse_any(text),
        }
    }

    /// With the expressions by which the original takes a text apart. They take longer to compile than a small chart to
    /// render, and hardly anybody writes what needs them: ranges, and lists without commas.
    fn parse_any(text: &str) -> Result<Self, String> {
        let expressions = EXPRESSIONS.as_ref().ok_or("no expressions")?;
        let mut rewritten = text.to_owned();
        for found in expressions.range.captures_iter(text) {
            let group = |at: usize| found.get(at).map_or("", |group| group.as_str());
            let range = format!(">= {}, <= {} ", group(1), group(11));
            rewritten = rewritten.replacen(group(0), &range, 1);
        }
        let mut alternatives = Vec::new();
        for alternative in rewritten.split("||") {
            if !expressions.valid.is_match(alternative) {
                return Err(format!("improper constraint: {alternative}"));
            }
            let parts = expressions.find.find_iter(alternative);
            let parsed: Result<Vec<Constraint>, String> = parts
                .map(|part| Constraint::parse(part.as_str(), &expressions.one))
                .collect();
            alternatives.push(parsed?);
        }
        Ok(Self(alternatives))
    }

    /// Whether a version meets them.
    pub fn check(&self, version: &Version) -> bool {
        self.0
            .iter()
            .any(|all| all.iter().all(|constraint| constraint.check(version)))
    }

    /// The same by the rules of semver 3.4, which Argo CD has: where one part of a list asks for pre-releases, all of it
    /// does; and where none does, there are none, not even those that are only unlike something.
    pub fn check_as_lists(&self, version: &Version) -> bool {
        self.0.iter().any(|all| {
            let asks = all.iter().any(|constraint| !constraint.version.pre.is_empty());
            (asks || version.pre.is_empty()) && all.iter().all(|constraint| constraint.fits(version))
        })
    }
}

/// A list with commas between its parts, of which each is an operator and a version; none if it is anything else.
fn simple_list(text: &str) -> Option<Vec<Constraint>> {
    let is_number = |part: &str| is_digits(part) || matches!(part, "x" | "X" | "*");
    let one = |part: &str| {
        let part = part.trim_matches([' ', '\t']);
        let end = part.find(|c: char| !matches!(c, '=' | '!' | '<' | '>' | '~' | '^'))?;
        let operator = operator(&part[..end])?;
        let version = part[end..].trim_start_matches([' ', '\t']);
        Constraint::new(operator, parts(version, is_number)?, version).ok()
    };
    text.split(',').map(one).collect()
}

fn operator(text: &str) -> Option<Operator> {
    Some(match text {
        "" | "=" => Operator::TildeOrEqual,
        "!=" => Operator::NotEqual,
        ">" => Operator::Greater,
        "<" => Operator::Less,
        ">=" | "=>" => Operator::GreaterOrEqual,
        "<=" | "=<" => Operator::LessOrEqual,
        "~" | "~>" => Operator::Tilde,
        "^" => Operator::Caret,
        _ => return None,
    })
}

impl Constraint {
    fn parse(text: &str, expression: &Regex) -> Result<Self, String> {
        let found = expression
            .captures(text)
            .ok_or_else(|| format!("improper constraint: {text}"))?;
        let group = |at: usize| found.get(at).map_or("", |group| group.as_str());
        let operator = operator(group(1)).unwrap_or(Operator::TildeOrEqual);
        let found = Parts {
            major: group(3),
            minor: group(4).trim_start_matches('.'),
            patch: group(5).trim_start_matches('.'),
            pre: group(7),
            metadata: "",
        };
        Self::new(operator, found, group(2))
    }

    fn new(operator: Operator, found: Parts<'_>, whole: &str) -> Result<Self, String> {
        let Parts {
            major,
            minor,
            patch,
            pre,
            ..
        } = found;
        let dash = if pre.is_empty() { "" } else { "-" };
        let (mut dirty, mut minor_dirty, mut patch_dirty) = (false, false, false);
        let version = if is_any(major) {
            dirty = true;
            format!("0.0.0{dash}{pre}")
        } else if is_any(minor) {
            (dirty, minor_dirty) = (true, true);
            format!("{major}.0.0{dash}{pre}")
        } else if is_any(patch) {
            (dirty, patch_dirty) = (true, true);
            format!("{major}.{minor}.0{dash}{pre}")
        } else {
            whole.to_owned()
        };
        let version = Version::parse(&version).map_err(|_| "constraint Parser Error".to_owned())?;
        Ok(Self {
            operator,
            version,
            dirty,
            minor_dirty,
            patch_dirty,
        })
    }

    fn check(&self, version: &Version) -> bool {
        let own = &self.version;
        // Those who ask for releases do not get what comes before one.
        let unasked_pre = !version.pre.is_empty() && own.pre.is_empty();
        if unasked_pre && (self.dirty || self.operator != Operator::NotEqual) {
            return false;
        }
        self.fits(version)
    }

    /// Whether a version fits, if it may be asked for at all.
    fn fits(&self, version: &Version) -> bool {
        let own = &self.version;
        match self.operator {
            Operator::NotEqual => self.not_equal(version),
            Operator::Less => version.compare(own).is_lt(),
            Operator::GreaterOrEqual => version.compare(own).is_ge(),
            Operator::Greater => match () {
                () if !self.dirty => version.compare(own).is_gt(),
                () if version.major != own.major => version.major > own.major,
                () if self.minor_dirty => false,
                () if self.patch_dirty => version.minor > own.minor,
                () => version.compare(own).is_gt(),
            },
            Operator::LessOrEqual => match self.dirty {
                false => version.compare(own).is_le(),
                true => {
                    let newer_minor =
                        version.major == own.major && version.minor > own.minor && !self.minor_dirty;
                    version.major <= own.major && !newer_minor
                }
            },
            Operator::Tilde => self.tilde(version),
            Operator::TildeOrEqual => match self.dirty {
                true => self.tilde(version),
                false => version.compare(own).is_eq(),
            },
            Operator::Caret => self.caret(version),
        }
    }

    fn not_equal(&self, version: &Version) -> bool {
        let own = &self.version;
        if self.dirty {
            if own.major != version.major {
                return true;
            }
            if own.minor != version.minor && !self.minor_dirty {
                return true;
            }
            if self.minor_dirty {
                return false;
            }
            if own.patch != version.patch && !self.patch_dirty {
                return true;
            }
            if self.patch_dirty {
                let any_pre = !version.pre.is_empty() || !own.pre.is_empty();
                return any_pre && compare_pre(&version.pre, &own.pre).is_ne();
            }
        }
        version.compare(own).is_ne()
    }

    fn tilde(&self, version: &Version) -> bool {
        let own = &self.version;
        if version.compare(own).is_lt() {
            return false;
        }
        let any = (own.major, own.minor, own.patch) == (0, 0, 0);
        if any && !self.minor_dirty && !self.patch_dirty {
            return true;
        }
        version.major == own.major && (version.minor == own.minor || self.minor_dirty)
    }

    fn caret(&self, version: &Version) -> bool {
        let own = &self.version;
        if version.compare(own).is_lt() {
            return false;
        }
        if own.major > 0 || self.minor_dirty {
            return version.major == own.major;
        }
        if version.major > 0 {
            return false;
        }
        if own.minor > 0 || self.patch_dirty {
            return version.minor == own.minor;
        }
        version.minor == 0 && own.patch == version.patch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_simple_is_read_as_the_expressions_read_it() {
        for text in [
            "1.2.3",
            "=1.2",
            "!=1",
            ">=1.21-0",
            ">= 1.21.0-0",
            "<2,>1.2",
            " > 1 , <= 3.x ",
            "^1.2.3-beta.1",
            "~1.2",
            "~>1",
            "=>1",
            "=<v2.0.0+build.5",
            "*",
            "x",
            ">=1.x.x",
            "1.*.3",
            "1.2 || >=3, <4",
            ">=01.2",
        ] {
            let simple: Option<Vec<Vec<Constraint>>> = text.split("||").map(simple_list).collect();
            let simple = simple.unwrap_or_else(|| panic!("{text} is simple"));
            let any = Constraints::parse_any(text).unwrap();
            assert_eq!(format!("{simple:?}"), format!("{:?}", any.0), "{text}");
        }
        for text in [
            "1.2 - 1.4",
            ">=1 <2",
            "1|2",
            "1.2.3-",
            ">>1",
            "",
            "1.2.3.4",
            "1x",
            ">=1.2-01",
            "a",
            ">=1,",
        ] {
            let simple: Option<Vec<Vec<Constraint>>> = text.split("||").map(simple_list).collect();
            assert!(simple.is_none(), "{text}");
        }
    }
}
